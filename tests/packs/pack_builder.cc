#include "tests/packs/pack_builder.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "core/weights/sha256.h"

namespace mk {
namespace {

using mergekernel::v1::Manifest;

void AddTensor(google::protobuf::RepeatedPtrField<mergekernel::v1::Tensor>* list,
               const std::string& name, const std::string& dtype,
               const std::vector<int64_t>& shape) {
  auto* tensor = list->Add();
  tensor->set_name(name);
  tensor->set_datatype(dtype);
  for (const int64_t dim : shape) tensor->add_shape(dim);
}

PackSpec Base(const std::string& library, const std::string& code_name, int64_t code_version) {
  PackSpec spec;
  spec.library = ReadRunfile(library);
  spec.manifest.mutable_code()->set_file("pack.so");
  spec.manifest.mutable_code()->set_name(code_name);
  spec.manifest.mutable_code()->set_version(code_version);
  spec.manifest.mutable_code()->set_abi_major(1);
  spec.manifest.add_devices("cpu");
  return spec;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

}  // namespace

std::string ReadFileOrEmpty(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
  EXPECT_TRUE(out.good()) << path;
}

std::string ReadRunfile(const std::string& path) {
  // Tests are started at the top of their runfiles.
  const std::string bytes = ReadFileOrEmpty(path);
  EXPECT_FALSE(bytes.empty()) << path;
  return bytes;
}

PackSpec EchoSpec(const std::string& tensors) {
  PackSpec spec = Base("packs/echo/echo.so", "echo", 1);
  (*spec.manifest.mutable_parameters())["tensors"] = tensors;
  for (const std::string& entry : Split(tensors, ' ')) {
    const std::vector<std::string> fields = Split(entry, ':');
    std::vector<int64_t> shape;
    if (fields.size() > 2) {
      for (const std::string& dim : Split(fields[2], ',')) shape.push_back(std::stoll(dim));
    }
    AddTensor(spec.manifest.mutable_inputs(), fields[0], fields[1], shape);
    AddTensor(spec.manifest.mutable_outputs(), "OUTPUT" + fields[0].substr(5), fields[1], shape);
  }
  return spec;
}

PackSpec FixtureSpec(const std::string& fixture, int64_t code_version) {
  PackSpec spec = Base("tests/packs/" + fixture + ".so", "fixture", code_version);
  AddTensor(spec.manifest.mutable_inputs(), "INPUT0", "UINT8", {-1});
  AddTensor(spec.manifest.mutable_outputs(), "VERSION", "INT64", {1});
  return spec;
}

PackSpec Sum2Spec() {
  PackSpec spec = Base("tests/packs/sum2.so", "fixture", 1);
  AddTensor(spec.manifest.mutable_inputs(), "INPUT0", "INT32", {4});
  AddTensor(spec.manifest.mutable_inputs(), "INPUT1", "INT32", {4});
  AddTensor(spec.manifest.mutable_outputs(), "OUTPUT0", "INT32", {4});
  return spec;
}

PackSpec HitsSpec() {
  PackSpec spec = Base("tests/packs/hits.so", "fixture", 1);
  AddTensor(spec.manifest.mutable_inputs(), "INPUT0", "FP32", {-1});
  AddTensor(spec.manifest.mutable_outputs(), "HITS", "FP32", {-1, 4});
  return spec;
}

PackSpec AffineSpec(const std::string& safetensors) {
  PackSpec spec = Base("tests/packs/affine.so", "fixture", 1);
  AddTensor(spec.manifest.mutable_inputs(), "X", "FP32", {-1});
  AddTensor(spec.manifest.mutable_outputs(), "Y", "FP32", {-1});
  spec.manifest.mutable_memory()->set_weights_bytes(8);
  spec.weights["model.safetensors"] = safetensors;
  return spec;
}

PackSpec AffineOnDeviceSpec(const std::string& safetensors) {
  PackSpec spec = AffineSpec(safetensors);
  spec.library = ReadRunfile("tests/packs/affine_on_device.so");
  spec.manifest.mutable_code()->set_name("affine");
  spec.manifest.mutable_code()->set_abi_minor(1);
  spec.manifest.add_devices("cuda");
  spec.manifest.mutable_memory()->set_scratch_bytes(1 << 20);
  return spec;
}

TestRepository::TestRepository() {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string pattern = std::string(base ? base : "/tmp") + "/repository-XXXXXX";
  root_ = mkdtemp(pattern.data());
}

TestRepository::~TestRepository() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

std::string TestRepository::Folder(const std::string& name, int64_t version) const {
  return root_ + "/" + name + "/" + std::to_string(version);
}

void TestRepository::Install(const std::string& name, int64_t version, PackSpec spec) {
  const std::string folder = Folder(name, version), beside = root_ + "/" + name + "/new.tmp";
  std::filesystem::create_directories(beside);
  if (spec.manifest.name().empty()) spec.manifest.set_name(name);
  if (spec.manifest.version() == 0) spec.manifest.set_version(version);
  const auto add = [&](const std::string& file, const std::string& bytes,
                       mergekernel::v1::File::Kind kind) {
    WriteFile(beside + "/" + file, bytes);
    auto* entry = spec.manifest.add_files();
    entry->set_name(file);
    entry->set_sha256(Sha256Hex(bytes));
    entry->set_kind(kind);
  };
  add("pack.so", spec.library, mergekernel::v1::File::SMALL);
  for (const auto& [file, bytes] : spec.small) add(file, bytes, mergekernel::v1::File::SMALL);
  for (const auto& [file, bytes] : spec.weights) add(file, bytes, mergekernel::v1::File::WEIGHTS);
  std::string text;
  google::protobuf::TextFormat::PrintToString(spec.manifest, &text);
  WriteFile(beside + "/manifest.textproto", text);
  std::filesystem::remove_all(folder);
  std::filesystem::rename(beside, folder);
}

}  // namespace mk
