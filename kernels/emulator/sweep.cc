#include "kernels/emulator/sweep.h"

namespace mk {
namespace emu {

std::string OptionsText(const Options& options) {
  return std::string(ScheduleName(options.schedule)) + " schedule, seed " +
         std::to_string(options.seed) +
         (options.async == AsyncCopies::kLazy ? ", lazy copies" : ", eager copies");
}

SweepResult Sweep(const LaunchFunction& launch, const OutputFunction& outputs,
                  const Options& base) {
  SweepResult result;
  std::string expected;
  for (const Schedule schedule : kAllSchedules) {
    for (const AsyncCopies async : {AsyncCopies::kLazy, AsyncCopies::kEager}) {
      Options options = base;
      options.schedule = schedule;
      options.async = async;
      Report report = launch(options);
      const bool first = result.runs++ == 0;
      std::string got = outputs ? outputs() : std::string();
      if (!report.ok()) {
        result.text = OptionsText(options) + ": " + report.Text();
        result.ok = false;
      } else if (!first && got != expected) {
        result.text = OptionsText(options) +
                      ": other outputs than under the forward schedule with lazy copies\n";
        result.ok = false;
      }
      if (first) {
        expected = std::move(got);
        result.first = std::move(report);
      }
      if (!result.ok) return result;
    }
  }
  return result;
}

std::vector<Mutant> MutateSyncs(const LaunchFunction& launch, const OutputFunction& outputs,
                                const Options& base) {
  const Report whole = launch(base);
  const std::string expected = outputs ? outputs() : std::string();
  std::vector<Mutant> mutants;
  for (const SyncSite& sync : whole.sync_sites) {
    Options options = base;
    options.ignored_sync = sync.site;
    Mutant mutant = {sync, false, ""};
    const SweepResult sweep = Sweep(launch, outputs, options);
    mutant.caught = !sweep.ok;
    mutant.how = sweep.text.substr(0, sweep.text.find('\n'));
    if (sweep.ok && outputs && outputs() != expected) {
      mutant.caught = true;
      mutant.how = "other outputs than with it";
    }
    mutants.push_back(mutant);
  }
  return mutants;
}

}  // namespace emu
}  // namespace mk
