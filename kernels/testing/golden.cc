#include "kernels/testing/golden.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/weights/safetensors.h"
#include "kernels/testing/generator.h"

namespace mk::testing {
namespace {

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "golden: %s\n", message.c_str());
  std::abort();
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Die("cannot open " + path);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

GoldenTensor Copy(const StoredTensor& stored, std::string_view data) {
  GoldenTensor tensor;
  tensor.shape = stored.shape;
  if (stored.type == StoredType::kF32) {
    tensor.values.resize(data.size() / sizeof(float));
    std::memcpy(tensor.values.data(), data.data(), data.size());
  } else if (stored.type == StoredType::kU8) {
    tensor.bytes.assign(data.begin(), data.end());
  } else {
    Die(stored.name + " is neither F32 nor U8");
  }
  return tensor;
}

template <typename Map>
const auto& Find(const Map& map, const std::string& key, const char* what) {
  const auto entry = map.find(key);
  if (entry == map.end()) Die(std::string("no ") + what + " " + key);
  return entry->second;
}

}  // namespace

const GoldenTensor& GoldenFile::At(const std::string& name) const {
  return Find(tensors, name, "tensor");
}

int64_t GoldenFile::Integer(const std::string& key) const {
  return std::stoll(Find(metadata, key, "metadata"));
}

GoldenFile GoldenFile::Read(const std::string& path) {
  const std::string bytes = ReadAll(path);
  const auto view = SafetensorsView::Parse(bytes);
  if (!view.ok()) Die(path + ": " + std::string(view.status().message()));
  GoldenFile file;
  file.metadata = view->header().metadata;
  for (const StoredTensor& stored : view->header().tensors) {
    file.tensors[stored.name] = Copy(stored, view->Data(stored));
  }
  return file;
}

const GoldenTensor& OpCase::Input(const std::string& input) const {
  return Find(inputs, input, "input");
}

std::vector<OpCase> ReadOpCases(const std::string& path, const std::string& op) {
  const GoldenFile file = GoldenFile::Read(path);
  const auto index = nlohmann::json::parse(Find(file.metadata, "index", "metadata"));
  std::vector<OpCase> cases;
  for (const auto& entry : index) {
    if (entry.at("op") != op) continue;
    OpCase op_case;
    op_case.name = entry.at("case");
    const std::string prefix = op + "/" + op_case.name + "/";
    for (const auto& input : entry.at("inputs")) {
      const std::string name = input.at("name");
      GoldenTensor& tensor = op_case.inputs[name];
      tensor.shape = input.at("shape").get<std::vector<int64_t>>();
      tensor.values =
          Generate(prefix + name, entry.at("seed").get<uint64_t>(), ElementCount(tensor.shape),
                   static_cast<float>(input.at("lo").get<double>()),
                   static_cast<float>(input.at("hi").get<double>()));
    }
    op_case.output = file.At(prefix + "output");
    for (const auto& [key, value] : entry.at("attributes").items()) {
      op_case.attributes[key] =
          value.is_boolean() ? (value.get<bool>() ? 1.0 : 0.0) : value.get<double>();
    }
    cases.push_back(std::move(op_case));
  }
  if (cases.empty()) Die(path + " has no case of " + op);
  return cases;
}

}  // namespace mk::testing
