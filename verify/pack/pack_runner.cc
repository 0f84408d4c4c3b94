// Level 4 of `mk verify`: a pack of a repository in this process, as the daemon runs it (sealed,
// mapped, created, run through core/run), behind the line protocol of verify/run/README.md.
//
//   pack_runner REPOSITORY PACK GOLDEN DEVICE THREADS
//
// The first answer is {"ready": {...}} or {"failed": {"class", "text"}}. Then, one JSON line each:
//
//   answers PATH   every case of GOLDEN once; outputs as safetensors, case<k>.output.<name>
//   time N         N runs, the cases in turn: {"seconds": [...]}
//   cold N         the same, with memory larger than any cache written before each
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/base/version.h"
#include "core/device/open_device.h"
#include "core/loader/golden.h"
#include "core/loader/loaded_model.h"
#include "core/loader/repository.h"
#include "core/loader/single_lane.h"

namespace mk {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxSmallBytes = uint64_t{256} << 20;
constexpr size_t kColdBytes = size_t{256} << 20;
constexpr int kMaxRuns = 1'000'000;

const char* StoredName(mk_dtype dtype) {
  switch (dtype) {
    case MK_DTYPE_BOOL:
      return "BOOL";
    case MK_DTYPE_UINT8:
      return "U8";
    case MK_DTYPE_UINT16:
      return "U16";
    case MK_DTYPE_UINT32:
      return "U32";
    case MK_DTYPE_UINT64:
      return "U64";
    case MK_DTYPE_INT8:
      return "I8";
    case MK_DTYPE_INT16:
      return "I16";
    case MK_DTYPE_INT32:
      return "I32";
    case MK_DTYPE_INT64:
      return "I64";
    case MK_DTYPE_FP16:
      return "F16";
    case MK_DTYPE_BF16:
      return "BF16";
    case MK_DTYPE_FP32:
      return "F32";
    case MK_DTYPE_FP64:
      return "F64";
    default:
      return "";  // BYTES have no such form
  }
}

// The golden of the command line, not the pack's own: all levels are held against the same.
absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  return bytes.str();
}

class PackRunner {
 public:
  static absl::StatusOr<std::unique_ptr<PackRunner>> Open(const std::string& root,
                                                          const std::string& name,
                                                          const std::string& golden,
                                                          const std::string& device, int threads) {
    MK_ASSIGN_OR_RETURN(const std::unique_ptr<Repository> repository, Repository::Open(root));
    MK_ASSIGN_OR_RETURN(const Repository::Versions versions, repository->ListVersions(name));
    if (versions.complete.empty()) {
      return absl::NotFoundError(absl::StrCat("no complete version of '", name, "' in ", root));
    }
    const int64_t version = versions.complete.back();
    MK_ASSIGN_OR_RETURN(const Fd folder, repository->OpenVersion(name, version));
    MK_ASSIGN_OR_RETURN(
        std::shared_ptr<const SealedPack> sealed,
        SealedPack::Read(folder.get(), name, version, kMaxSmallBytes, absl::StrCat(name, ".v")));
    auto runner = std::unique_ptr<PackRunner>(new PackRunner(threads));
    MK_RETURN_IF_ERROR(runner->Load(std::move(sealed), golden, device));
    return runner;
  }

  json Facts() const {
    return {
        {"runtime", absl::StrCat("mergekernel ", kVersion)}, {"device", device_->facts().name},
        {"version", model_->sealed().manifest.version()},    {"digest", model_->sealed().digest},
        {"includes", "preprocessing, copies in and out"},    {"build_seconds", load_seconds_}};
  }

  absl::StatusOr<json> Answer(const std::string& word, const std::string& argument) {
    if (word == "answers") return Answers(argument);
    int count = 0;
    if ((word != "time" && word != "cold") || !absl::SimpleAtoi(argument, &count) || count < 1 ||
        count > kMaxRuns) {
      return absl::InvalidArgumentError(
          absl::StrCat("not understood: '", word, " ", argument, "'"));
    }
    return Time(count, word == "cold");
  }

 private:
  explicit PackRunner(int threads)
      : services_([threads] {
          HostServicesOptions options;
          options.threads = threads;
          return options;
        }()) {}

  absl::Status Load(std::shared_ptr<const SealedPack> sealed, const std::string& golden,
                    const std::string& device_name) {
    const int64_t begin = SystemClock().NowNs();
    OpenDeviceOptions options;
    options.name = device_name;
    MK_ASSIGN_OR_RETURN(device_, OpenDevice(options));
    MK_ASSIGN_OR_RETURN(model_,
                        LoadedModel::Create(std::move(sealed), *device_, services_, nullptr));
    MK_ASSIGN_OR_RETURN(lane_, SingleLane::Create(*model_, *device_));
    MK_ASSIGN_OR_RETURN(golden_bytes_, ReadWhole(golden));
    MK_ASSIGN_OR_RETURN(cases_, ReadGolden(golden_bytes_, model_->signature()));
    load_seconds_ = static_cast<double>(SystemClock().NowNs() - begin) * 1e-9;
    return absl::OkStatus();
  }

  absl::StatusOr<InferResponse> Run(size_t index) { return lane_->Run(cases_[index].request); }

  absl::StatusOr<json> Answers(const std::string& path) {
    json header = json::object();
    std::string body;
    for (size_t k = 0; k < cases_.size(); ++k) {
      MK_ASSIGN_OR_RETURN(const InferResponse response, Run(k));
      for (const OutputTensor& output : response.outputs) {
        const std::string type = StoredName(output.dtype);
        if (type.empty()) continue;
        const size_t begin = body.size();
        body.append(static_cast<const char*>(output.block.data()), output.block.size());
        header[absl::StrCat("case", k, ".output.", output.name)] = {
            {"dtype", type}, {"shape", output.shape}, {"data_offsets", {begin, body.size()}}};
      }
    }
    std::string text = header.dump();
    text.append((8 - text.size() % 8) % 8, ' ');
    const uint64_t size = text.size();
    std::ofstream file(path, std::ios::binary);
    for (int i = 0; i < 8; ++i) file.put(static_cast<char>(size >> (8 * i) & 0xff));
    file << text << body;
    if (!file.flush()) return absl::InternalError(absl::StrCat("cannot write ", path));
    return json::object();
  }

  absl::StatusOr<json> Time(int count, bool cold) {
    std::vector<double> seconds;
    std::vector<char> sweep(cold ? kColdBytes : 0);
    for (int i = 0; i < count; ++i) {
      const size_t index = turn_++ % cases_.size();
      for (size_t at = 0; at < sweep.size(); at += 64) ++sweep[at];
      const int64_t begin = SystemClock().NowNs();
      const auto response = Run(index);
      seconds.push_back(static_cast<double>(SystemClock().NowNs() - begin) * 1e-9);
      MK_RETURN_IF_ERROR(response.status());
    }
    return json{{"seconds", seconds}};
  }

  const HostServices services_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<LoadedModel> model_;
  std::unique_ptr<SingleLane> lane_;
  std::string golden_bytes_;  // the cases point into it
  std::vector<GoldenCase> cases_;
  double load_seconds_ = 0;
  size_t turn_ = 0;
};

int Say(const json& answer) {
  std::cout << answer.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
  return 0;
}

int Failed(const absl::Status& status) {
  return Say({{"failed",
               {{"class", absl::StatusCodeToString(status.code())},
                {"text", std::string(status.message())}}}});
}

int Main(int argc, char** argv) {
  int threads = 0;
  if (argc != 6 || !absl::SimpleAtoi(argv[5], &threads) || threads < 1) {
    std::cerr << "usage: pack_runner REPOSITORY PACK GOLDEN DEVICE THREADS\n";
    return 2;
  }
  auto runner = PackRunner::Open(argv[1], argv[2], argv[3], argv[4], threads);
  if (!runner.ok()) return Failed(runner.status());
  Say({{"ready", (*runner)->Facts()}});
  for (std::string line; std::getline(std::cin, line);) {
    const size_t space = line.find(' ');
    const auto answer =
        (*runner)->Answer(line.substr(0, space), space == line.npos ? "" : line.substr(space + 1));
    if (!answer.ok()) return Failed(answer.status());
    Say(*answer);
  }
  return 0;
}

}  // namespace
}  // namespace mk

int main(int argc, char** argv) { return mk::Main(argc, argv); }
