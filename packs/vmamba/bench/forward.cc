// A VMamba with generated weights behind a line protocol on standard input and output, so that a
// script can time it in turn with another implementation and compare every stage.
//
//   forward KEY=VALUE...    keys of the description without their prefix (embed_dim=96 depths=2-2
//                           ...), and height, width, threads, seed
//
// Answers "ready", then one line to each command:
//
//   time N      N passes, each timed: nanoseconds, separated by spaces
//   dump PATH   one pass; every step as a safetensors file, channel-first: "PATH"
//   memory      "resident R peak P scratch S weights W map M", bytes; M is the first stage's map
//   roof        FLOP per second of multiply-adds in registers, on all threads at once
//   isa         the instruction set of the kernels
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "core/weights/testing/write_safetensors.h"
#include "kernels/simd/testing/isas.h"
#include "kernels/simd/testing/map.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/golden.h"
#include "packs/vmamba/memory.h"
#include "packs/vmamba/testing/fixture.h"

namespace mk::vmamba {
namespace {

struct Options {
  Parameters parameters = PlainParameters();
  int64_t height = 224;
  int64_t width = 224;
  int threads = 1;
  uint64_t seed = 1;
};

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals);
    const std::string value = equals == argument.npos ? "" : argument.substr(equals + 1);
    if (key == "height") {
      options.height = std::atoll(value.c_str());
    } else if (key == "width") {
      options.width = std::atoll(value.c_str());
    } else if (key == "threads") {
      options.threads = std::atoi(value.c_str());
    } else if (key == "seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else {
      options.parameters["config." + key] = value;
    }
  }
  if (options.parameters["config.in_chans"] == "1") {
    options.parameters["preprocess.channels"] = "1";
    options.parameters["preprocess.mean"] = "0";
    options.parameters["preprocess.std"] = "1";
  }
  return options;
}

long StatusKiB(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key, 0) == 0) return std::atol(line.c_str() + std::strlen(key) + 1);
  }
  return 0;
}

OpenModel Open(const Options& options) {
  const std::string weights = WriteWeights(options.parameters, options.seed);
  OpenModel open(options.parameters, weights, options.threads);
  unlink(weights.c_str());
  return open;
}

class Session {
 public:
  explicit Session(const Options& options)
      : options_(options),
        open_(Open(options)),
        context_(open_.host().services(), *run_.table()),
        logits_(static_cast<size_t>(d().num_classes)) {
    const std::vector<int64_t> shape = {d().in_chans, options.height, options.width};
    input_ = testing::Transposed(testing::GenerateByRule("input", shape, options.seed),
                                 d().in_chans, options.height * options.width);
  }

  std::string Answer(const std::string& command, const std::string& argument) {
    if (command == "time") return Time(std::atoll(argument.c_str()));
    if (command == "dump") return Dump(argument);
    if (command == "memory") return Memory();
    if (command == "roof") return Roof();
    if (command == "isa") return IsaName(BestIsa());
    return "unknown command " + command;
  }

 private:
  const Description& d() { return open_.model().description(); }

  void Pass(const Tap* tap) {
    const Status status = RunNetwork(context_, d(), open_.model().weights(),
                                     {input_.data(), options_.height, options_.width, d().in_chans},
                                     logits_.data(), tap);
    if (status.ok()) return;
    std::fprintf(stderr, "forward: %s\n", status.message().c_str());
    std::exit(1);
  }

  std::string Time(int64_t count) {
    std::string answer;
    for (int64_t i = 0; i < count; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      Pass(nullptr);
      answer += std::to_string((std::chrono::steady_clock::now() - begin).count()) + " ";
    }
    return answer;
  }

  std::string Dump(const std::string& path) {
    std::vector<TestTensor> tensors;
    const Tap tap = {&tensors, &Keep};
    Pass(&tap);
    std::ofstream(path, std::ios::binary) << WriteSafetensors(tensors);
    return path;
  }

  static void Keep(void* self, const char* name, const Map& map) {
    const std::vector<float> tokens(map.data, map.data + map.tokens() * map.channels);
    TestTensor tensor;
    tensor.name = name;
    tensor.dtype = "F32";
    tensor.shape = {map.channels, map.height, map.width};
    tensor.data = FloatBytes(testing::Transposed(tokens, map.tokens(), map.channels));
    static_cast<std::vector<TestTensor>*>(self)->push_back(tensor);
  }

  std::string Memory() {
    const int64_t map = (options_.height / 4) * (options_.width / 4) * d().embed_dim * 4;
    return "resident " + std::to_string(StatusKiB("VmRSS:") * 1024) + " peak " +
           std::to_string(StatusKiB("VmHWM:") * 1024) + " scratch " +
           std::to_string(run_.scratch_peak_bytes()) + " weights " +
           std::to_string(WeightsBytes(d())) + " map " + std::to_string(map);
  }

  std::string Roof() {
    constexpr mk_i64 kRounds = 20'000'000;
    const Isa isa = BestIsa();
    std::vector<float> sums(static_cast<size_t>(options_.threads));
    double best = 0;
    for (int repeat = 0; repeat < 3; ++repeat) {
      const auto begin = std::chrono::steady_clock::now();
      context_.ParallelFor(options_.threads, 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          sums[static_cast<size_t>(i)] = MK_SIMD_PICK(isa, Peak)(kRounds);
        }
      });
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      const double flop = 2.0 * kRounds * kPeakChains *
                          static_cast<double>(MK_SIMD_PICK(isa, Lanes)()) * options_.threads;
      best = std::max(best, flop / seconds.count());
    }
    return std::to_string(best);
  }

  const Options options_;
  OpenModel open_;
  testing::TestRun run_;
  Context context_;
  std::vector<float> input_;
  std::vector<float> logits_;
};

}  // namespace
}  // namespace mk::vmamba

int main(int argc, char** argv) {
  mk::vmamba::Session session(mk::vmamba::ParseOptions(argc, argv));
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const size_t space = line.find(' ');
    const std::string argument = space == line.npos ? "" : line.substr(space + 1);
    std::cout << session.Answer(line.substr(0, space), argument) << std::endl;
  }
  return 0;
}
