// The probe's own process.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "core/device/open_device.h"
#include "core/loader/golden.h"
#include "core/loader/loaded_model.h"
#include "core/loader/manifest.h"
#include "core/loader/measure_pack.h"
#include "core/loader/plan_pack.h"
#include "core/loader/probe.h"
#include "core/loader/single_lane.h"
#include "core/weights/sha256.h"

namespace mk {
namespace {

constexpr int kResultFd = 3;
constexpr uint64_t kHeadroomBytes = uint64_t{2} << 30;  // beyond what the manifest declares

absl::Status RunGolden(LoadedModel& model, Device& device) {
  const auto& manifest = model.sealed().manifest;
  if (!manifest.has_golden()) return absl::OkStatus();
  const std::string_view bytes = model.sealed().small.at(manifest.golden().file())->bytes();
  MK_ASSIGN_OR_RETURN(const std::vector<GoldenCase> cases, ReadGolden(bytes, model.signature()));
  MK_ASSIGN_OR_RETURN(const std::unique_ptr<SingleLane> lane, SingleLane::Create(model, device));
  // So that what will serve is what was tried: a run by launches, a captured one, a replayed one.
  const int runs = lane->captures() ? 3 : 1;
  const double max_rel_l2 = GoldenToleranceOn(manifest, device.facts().kind);
  for (size_t i = 0; i < cases.size(); ++i) {
    for (int run = 0; run < runs; ++run) {
      const auto response = lane->Run(cases[i].request);
      const absl::Status status =
          response.ok()
              ? CompareGolden(i, cases[i], *response, max_rel_l2)
              : absl::Status(response.status().code(),
                             absl::StrCat("golden case ", i, ": ", response.status().message()));
      if (!status.ok()) {
        return absl::Status(status.code(),
                            absl::StrCat(status.message(), run == 0   ? ""
                                                           : run == 1 ? " (as it was captured)"
                                                                      : " (as a replayed graph)"));
      }
    }
  }
  return absl::OkStatus();
}

void LimitResources(const mergekernel::v1::Manifest& manifest, bool host_memory) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody waits for a result when the daemon is gone
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
#ifndef MK_SANITIZED
  // A pack that eats memory without end meets this and not the machine's last page. Sanitizers map
  // far more.
  // Nor does the limit hold for a GPU's driver, which maps what it likes.
  if (!host_memory) return;
  const uint64_t bytes =
      manifest.memory().weights_bytes() * 2 + manifest.memory().scratch_bytes() + kHeadroomBytes;
  const rlimit data = {bytes, bytes};
  setrlimit(RLIMIT_DATA, &data);
#else
  static_cast<void>(manifest), static_cast<void>(host_memory);
#endif
}

// "NAME:FD" of an argument behind its flag.
absl::StatusOr<std::pair<std::string, int>> NameAndFd(std::string_view text) {
  const size_t colon = text.rfind(':');
  int fd = -1;
  if (colon == text.npos || !absl::SimpleAtoi(std::string(text.substr(colon + 1)), &fd) || fd < 4) {
    return absl::InvalidArgumentError(absl::StrCat("bad argument '", std::string(text), "'"));
  }
  return std::make_pair(std::string(text.substr(0, colon)), fd);
}

struct Task {
  int threads = 1;
  std::string device = "cpu";
  bool plan = false;
  PlanOptions plan_options;
};

absl::StatusOr<std::shared_ptr<const SealedPack>> FromArguments(int argc, char** argv, Task* task) {
  auto pack = std::make_shared<SealedPack>();
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--threads=")) {
      if (!absl::SimpleAtoi(argument, &task->threads))
        return absl::InvalidArgumentError("--threads");
    } else if (absl::ConsumePrefix(&argument, "--device=")) {
      task->device = std::string(argument);
    } else if (absl::ConsumePrefix(&argument, "--plan=")) {
      task->plan = true;
      task->plan_options.board = std::string(argument);
    } else if (absl::ConsumePrefix(&argument, "--measure=")) {
      task->plan_options.measure_on = std::string(argument);
    } else if (absl::ConsumePrefix(&argument, "--runs=")) {
      if (!absl::SimpleAtoi(argument, &task->plan_options.runs)) {
        return absl::InvalidArgumentError("--runs");
      }
    } else if (absl::ConsumePrefix(&argument, "--input=")) {
      MK_ASSIGN_OR_RETURN(PlannedInput input, ParsePlannedInput(std::string(argument)));
      task->plan_options.inputs.push_back(std::move(input));
    } else if (absl::ConsumePrefix(&argument, "--manifest=")) {
      MK_ASSIGN_OR_RETURN(const auto file, NameAndFd({argument.data(), argument.size()}));
      MK_ASSIGN_OR_RETURN(pack->manifest_file, SealedFile::Adopt(Fd(file.second)));
    } else if (absl::ConsumePrefix(&argument, "--small=")) {
      MK_ASSIGN_OR_RETURN(const auto file, NameAndFd({argument.data(), argument.size()}));
      MK_ASSIGN_OR_RETURN(pack->small[file.first], SealedFile::Adopt(Fd(file.second)));
    } else if (absl::ConsumePrefix(&argument, "--weights=")) {
      MK_ASSIGN_OR_RETURN(const auto file, NameAndFd({argument.data(), argument.size()}));
      pack->weights[file.first] = Fd(file.second);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("unknown argument '", argv[i], "'"));
    }
  }
  if (pack->manifest_file == nullptr) return absl::InvalidArgumentError("--manifest is missing");
  MK_ASSIGN_OR_RETURN(pack->manifest, ParseManifest(pack->manifest_file->bytes()));
  MK_RETURN_IF_ERROR(
      ValidateManifest(pack->manifest, pack->manifest.name(), pack->manifest.version()));
  for (const auto& file : pack->manifest.files()) {
    if (pack->small.count(file.name()) + pack->weights.count(file.name()) != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("file '", file.name(), "' was not handed over"));
    }
  }
  pack->digest = Sha256Hex(pack->manifest_file->bytes());
  return std::shared_ptr<const SealedPack>(std::move(pack));
}

// What the parent is to read behind the code: nothing of a trial, a plan's bytes.
absl::StatusOr<std::string> Try(int argc, char** argv) {
  Task task;
  MK_ASSIGN_OR_RETURN(std::shared_ptr<const SealedPack> pack, FromArguments(argc, argv, &task));
  const bool measure = !task.plan_options.measure_on.empty();
  LimitResources(pack->manifest, task.plan ? !measure : task.device == "cpu");
  if (task.plan) {
    MK_ASSIGN_OR_RETURN(mergekernel::v1::Plan plan, PlanPack(pack, task.plan_options));
    if (measure) MK_RETURN_IF_ERROR(MeasurePack(std::move(pack), task.plan_options, plan));
    return plan.SerializeAsString();
  }
  MK_RETURN_IF_ERROR(TryPack(std::move(pack), task.threads, task.device));
  return std::string();
}

}  // namespace

absl::Status TryPack(std::shared_ptr<const SealedPack> pack, int threads,
                     const std::string& device_name) {
  OpenDeviceOptions device_options;
  device_options.name = device_name;
  MK_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, OpenDevice(device_options));
  if (!device->facts().host_addressable) MK_RETURN_IF_ERROR(AdmitByPlan(pack, device->facts()));
  HostServicesOptions options;
  options.threads = threads;
  const HostServices services(options);
  MK_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedModel> model,
                      LoadedModel::Create(std::move(pack), *device, services, nullptr));
  MK_RETURN_IF_ERROR(RunGolden(*model, *device));
  bool retired = false;
  return model->Unload(&retired);
}

int ProbeMain(int argc, char** argv) {
  const absl::StatusOr<std::string> tried = Try(argc, argv);
  const absl::Status& status = tried.status();
  const std::string result =
      absl::StrCat(status.raw_code(), "\n", tried.ok() ? *tried : std::string(status.message()));
  size_t done = 0;
  while (done < result.size()) {
    const ssize_t wrote = write(kResultFd, result.data() + done, result.size() - done);
    if (wrote <= 0) return 1;
    done += static_cast<size_t>(wrote);
  }
  return 0;
}

}  // namespace mk
