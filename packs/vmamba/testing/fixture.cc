#include "packs/vmamba/testing/fixture.h"

#include <google/protobuf/text_format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/weights/testing/write_safetensors.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/golden.h"
#include "packs/vmamba/weights.h"

namespace mk::vmamba {
namespace {

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "fixture: %s\n", message.c_str());
  std::abort();
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Die("cannot open " + path);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

testing::TestHostOptions OptionsFor(const Parameters& parameters, const std::string& weights_path,
                                    int threads, const char* device) {
  testing::TestHostOptions options;
  options.threads = threads;
  options.device = device;
  options.parameters = parameters;
  if (!weights_path.empty()) options.weights_files[kWeightsFile] = weights_path;
  return options;
}

Host OpenServices(testing::TestHost& host) {
  Result<Host> services = Host::Open(host.table());
  return *services;  // ends the process with the message when there is none
}

}  // namespace

mergekernel::v1::Manifest PicoManifest() {
  mergekernel::v1::Manifest manifest;
  const std::string text = ReadAll(std::string(kPicoFolder) + "manifest.in.textproto");
  if (!google::protobuf::TextFormat::ParseFromString(text, &manifest)) {
    Die("the pico manifest does not parse");
  }
  return manifest;
}

Parameters PicoParameters() {
  const mergekernel::v1::Manifest manifest = PicoManifest();
  Parameters parameters;
  for (const auto& [key, value] : manifest.parameters()) parameters[key] = value;
  return parameters;
}

Parameters PlainParameters() {
  return {{"config.in_chans", "3"},
          {"config.embed_dim", "8"},
          {"config.depths", "1-1-2-1"},
          {"config.num_classes", "7"},
          {"config.ssm_ratio", "1.0"},
          {"config.d_state", "1"},
          {"config.dt_rank", "auto"},
          {"config.mlp_ratio", "4.0"},
          {"preprocess.resize", "0"},
          {"preprocess.crop", "0"},
          {"preprocess.pad", "0"},
          {"preprocess.channels", "3"},
          {"preprocess.mean", "0.5,0.25,0.125"},
          {"preprocess.std", "0.5,1,2"},
          {"preprocess.max_encoded_pixels", "65536"}};
}

std::string WriteWeights(const Parameters& parameters, uint64_t seed,
                         void (*edit)(std::vector<FileTensor>&)) {
  ModelHost host(parameters, "");
  Result<Description> description = ParseDescription(host.services());
  std::vector<FileTensor> tensors;
  for (const WeightSpec& spec : WeightTable(*description)) {
    tensors.push_back(
        {spec.name, spec.shape, testing::GenerateByRule(spec.name, spec.shape, seed)});
  }
  if (edit != nullptr) edit(tensors);
  std::vector<TestTensor> stored;
  for (const FileTensor& tensor : tensors) {
    stored.push_back({tensor.name, "F32", tensor.shape, FloatBytes(tensor.values)});
  }
  const char* folder = std::getenv("TEST_TMPDIR");
  std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/vmamba_XXXXXX";
  const int fd = mkstemp(path.data());
  if (fd < 0) Die("cannot create " + path);
  close(fd);
  std::ofstream(path, std::ios::binary) << WriteSafetensors(stored);
  return path;
}

ModelHost::ModelHost(const Parameters& parameters, const std::string& weights_path, int threads,
                     const char* device)
    : test_host_(OptionsFor(parameters, weights_path, threads, device)),
      services_(OpenServices(test_host_)) {}

OpenModel::OpenModel(const Parameters& parameters, const std::string& weights_path, int threads)
    : host_(std::make_unique<ModelHost>(parameters, weights_path, threads)) {
  Result<std::unique_ptr<VMamba>> model = VMamba::Create(host_->services());
  if (!model.ok()) Die(model.status().message() + " " + host_->test_host().error());
  model_ = std::move(*model);
}

OpenModel OpenModel::Pico(int threads) {
  return OpenModel(PicoParameters(), std::string(kPicoFolder) + kWeightsFile, threads);
}

Status OpenModel::Run(testing::TestRun& run) {
  Context context(host_->services(), *run.table());
  return model_->Run(context);
}

void Recorder::See(void* self, const char* name, const Map& map) {
  const std::vector<float> tokens(map.data, map.data + map.tokens() * map.channels);
  static_cast<Recorder*>(self)->seen_[name] =
      testing::Transposed(tokens, map.tokens(), map.channels);
}

void AddImage(testing::TestRun& run, int64_t height, int64_t width, int64_t channels,
              const std::vector<uint8_t>& pixels) {
  run.AddInput("image", MK_DTYPE_UINT8, {height, width, channels}, pixels.data(), pixels.size());
}

std::vector<float> Logits(const testing::TestRun& run) {
  const testing::TestRun::Output& output = run.outputs().at("logits");
  std::vector<float> logits(output.bytes.size() / sizeof(float));
  std::memcpy(logits.data(), output.bytes.data(), output.bytes.size());
  return logits;
}

}  // namespace mk::vmamba
