// The broken and the right kernels under ThreadSanitizer, which is told of fibers, barriers and
// waits, and judges by its own means. Kernels are compiled with it, the emulator is not. Run by
// tsan_test.sh.
#include <cstdio>
#include <string>
#include <vector>

#include "kernels/device/convert.h"
#include "kernels/emulator/broken_tsan_emulated.h"
#include "kernels/emulator/emulator.h"
#include "kernels/emulator/sample_gemm_tsan_emulated.h"
#include "kernels/emulator/sample_reduce_tsan_emulated.h"
#include "kernels/emulator/samples/samples_params.h"
#include "kernels/emulator/sweep.h"

namespace {

int reports = 0;

}  // namespace

// ThreadSanitizer calls these.
extern "C" void __tsan_on_report(void*);
extern "C" void __tsan_on_report(void*) { ++reports; }
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "exitcode=0:suppress_equal_addresses=0"; }

namespace mk {
namespace emu {
namespace {

// Our own detectors are off, so that what is seen is ThreadSanitizer's.
Options Watched(Schedule schedule) {
  Options options;
  options.schedule = schedule;
  options.races = options.uninitialised = options.count = false;
  return options;
}

class Check {
 public:
  // Runs under every schedule and both kinds of copies; says how many runs had a report.
  template <class Launch>
  int Schedules(const Launch& launch) {
    int seen = 0;
    for (const Schedule schedule : kAllSchedules) {
      for (const AsyncCopies async : {AsyncCopies::kLazy, AsyncCopies::kEager}) {
        Options options = Watched(schedule);
        options.async = async;
        const int before = reports;
        launch(options);
        seen += reports > before ? 1 : 0;
      }
    }
    return seen;
  }

  void Expect(bool holds, const std::string& what) {
    std::printf("%s %s\n", holds ? "ok    " : "FAILED", what.c_str());
    failed_ += holds ? 0 : 1;
  }

  int failed() const { return failed_; }

 private:
  int failed_ = 0;
};

// Each run has an emulator of its own: ThreadSanitizer's newer runtime (g++ 14 has it, g++ 12 does
// not) reports an address once and is blind to later reads of it, until the memory is freed.
void RunBroken(const char* kernel, const Options& options) {
  Emulator emulator;
  DeviceArray<float> x(&emulator.memory(), "x", std::vector<float>(256, 1.0f));
  DeviceArray<float> y(&emulator.memory(), "y", std::vector<float>(256, 0.0f));
  emulator.Run(mk_emulated_broken_tsan, kernel, {{1}, {64}},
               samples::BrokenParams{x.device(), y.device(), 256}, options);
}

Report RunGemm(const Options& options) {
  const auto halves = [](size_t count) {
    return std::vector<device::half>(count, {device::FloatToHalfBits(0.5f)});
  };
  constexpr int kM = 64, kN = 64, kK = 96;
  Emulator emulator;
  DeviceArray<device::half> a(&emulator.memory(), "a", halves(kM * kK)),
      b(&emulator.memory(), "b", halves(kK * kN)), c(&emulator.memory(), "c", halves(kM * kN));
  return emulator.Run(mk_emulated_sample_gemm_tsan, "mk_sample_gemm", {{1}, {128}, 16 * 1024},
                      samples::GemmParams{a.device(), b.device(), c.device(), kM, kN, kK}, options);
}

// The sum of a thousand ones.
float RunReduce(const Options& options) {
  Emulator emulator;
  DeviceArray<float> x(&emulator.memory(), "x", std::vector<float>(1000, 1.0f));
  DeviceArray<float> partials(&emulator.memory(), "partials", 3), sum(&emulator.memory(), "sum", 1);
  DeviceArray<mk_u32> finished(&emulator.memory(), "finished", std::vector<mk_u32>{0});
  emulator.Run(
      mk_emulated_sample_reduce_tsan, "mk_sample_reduce", {{3}, {256}},
      samples::ReduceParams{x.device(), partials.device(), finished.device(), sum.device(), 1000},
      options);
  return sum.Host()[0];
}

void CheckBroken(Check* check) {
  const auto launch = [](const char* kernel) {
    return [kernel](const Options& options) { RunBroken(kernel, options); };
  };
  for (const char* kernel :
       {"mk_right_warp_sync", "mk_right_halves_of_a_word", "mk_right_named_barriers"}) {
    check->Expect(check->Schedules(launch(kernel)) == 0, std::string(kernel) + " is silent");
  }
  // None of these ends in a deadlock: threads that are abandoned are ordered with nothing ever
  // after. A report is made once for each pair of lines, so later schedules stay silent about what
  // was told before.
  for (const char* kernel : {"mk_broken_missing_barrier", "mk_broken_missing_trailing_barrier",
                             "mk_broken_missing_warp_sync", "mk_broken_warp_sync_across_warps",
                             "mk_broken_plain_beside_atomic", "mk_broken_wait_without_barrier"}) {
    check->Expect(check->Schedules(launch(kernel)) >= 1, std::string(kernel) + " is reported");
  }
}

void CheckSamples(Check* check) {
  std::vector<SyncSite> syncs;
  check->Expect(check->Schedules([&](const Options& o) { syncs = RunGemm(o).sync_sites; }) == 0,
                "the GEMM is silent");
  for (const SyncSite& sync : syncs) {
    if (std::string(sync.name) != "SyncThreads") continue;
    const int seen = check->Schedules([&](Options o) {
      o.ignored_sync = sync.site;
      RunGemm(o);
    });
    check->Expect(seen >= 1,
                  "the GEMM without the barrier at " + SiteText(sync.site) + " is reported");
  }

  float sum = 0;
  const int seen = check->Schedules([&](const Options& o) { sum = RunReduce(o); });
  check->Expect(seen == 0, "the reduction is silent");
  check->Expect(sum == 1000.0f, "and right");
}

}  // namespace
}  // namespace emu
}  // namespace mk

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  mk::emu::Check check;
  mk::emu::CheckBroken(&check);
  mk::emu::CheckSamples(&check);
  std::printf("tsan_check: %d failed\n", check.failed());
  return check.failed() == 0 ? 0 : 1;
}
