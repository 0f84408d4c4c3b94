#include "kernels/emulator/shrink.h"

#include <algorithm>

namespace mk {
namespace emu {
namespace {

constexpr int kSeeds = 16;
constexpr int kMaxBeyond = 32;

class Shrinker {
 public:
  Shrinker(const LaunchFunction& launch, const FailureFunction& failed, const Options& base,
           int max_runs)
      : launch_(launch), failed_(failed), base_(base), max_runs_(max_runs) {}

  Shrunk Run() {
    if (!Find()) return std::move(result_);
    result_.switches_before = result_.report.switches.size();
    std::vector<Switch> switches = result_.report.switches;
    result_.replayed = Fails(switches);
    if (!result_.replayed)
      return std::move(result_);  // the order of blocks mattered; the run that failed stands
    if (Fails({})) {
      switches.clear();
    } else if (!OneSwitch(&switches)) {
      Reduce(&switches);
    }
    result_.switches = switches;
    Fails(switches);  // so that the report is that of the shortest
    return std::move(result_);
  }

 private:
  bool Try(const Options& options) {
    ++result_.runs;
    Report report = launch_(options);
    last_trace_ = report.trace.size();
    if (!failed_(report)) return false;
    result_.report = std::move(report);
    return true;
  }

  bool Find() {
    for (int i = 0; i < kSeeds && result_.runs < max_runs_; ++i) {
      for (const uint32_t preempt_one_in : {0u, 16u, 3u}) {
        for (const Schedule schedule : kAllSchedules) {
          Options options = base_;
          options.schedule = schedule;
          options.seed = base_.seed + static_cast<uint64_t>(i);
          options.preempt_one_in = preempt_one_in;
          options.record = true;
          if (!Try(options)) continue;
          result_.found = true;
          result_.options = options;
          return true;
        }
      }
    }
    return false;
  }

  bool Fails(const std::vector<Switch>& switches) {
    Options options = base_;
    options.schedule = Schedule::kForward;
    options.replay = &switches;
    return Try(options);
  }

  // Where the race detector names a pair, one switch may do: the earlier of the two stops somewhere
  // in favour of the other.
  bool OneSwitch(std::vector<Switch>* switches) {
    const std::vector<Switch> none;
    Options options = base_;
    options.schedule = Schedule::kForward;
    options.races = true;
    options.replay = &none;
    const Report report = launch_(options);
    for (const Finding& f : report.findings) {
      if (f.kind != FindingKind::kRace || f.parties[0].block != f.parties[1].block) continue;
      const Party& earlier = f.parties[0];
      int beyond = 0;  // runs in which the switch did not come about
      for (uint32_t step = 0; beyond < kMaxBeyond && result_.runs < max_runs_; ++step) {
        const std::vector<Switch> one = {
            {earlier.block, earlier.linear, step, f.parties[1].linear}};
        if (Fails(one)) {
          *switches = one;
          return true;
        }
        beyond = last_trace_ == 0 ? beyond + 1 : 0;
      }
    }
    return false;
  }

  // Delta debugging: leaves out ever smaller pieces, as long as it still fails.
  void Reduce(std::vector<Switch>* switches) {
    size_t piece = std::max<size_t>(1, switches->size() / 2);
    while (!switches->empty() && result_.runs < max_runs_) {
      bool shorter = false;
      for (size_t begin = 0; begin < switches->size() && result_.runs < max_runs_;) {
        std::vector<Switch> without(switches->begin(),
                                    switches->begin() + static_cast<ptrdiff_t>(begin));
        const size_t end = std::min(switches->size(), begin + piece);
        without.insert(without.end(), switches->begin() + static_cast<ptrdiff_t>(end),
                       switches->end());
        if (Fails(without)) {
          *switches = std::move(without);
          shorter = true;
        } else {
          begin = end;
        }
      }
      if (piece == 1 && !shorter) return;
      if (piece > 1) piece = std::max<size_t>(1, piece / 2);
    }
  }

  const LaunchFunction& launch_;
  const FailureFunction& failed_;
  const Options& base_;
  int max_runs_;
  size_t last_trace_ = 0;
  Shrunk result_;
};

}  // namespace

Shrunk FindAndShrink(const LaunchFunction& launch, const FailureFunction& failed,
                     const Options& base, int max_runs) {
  return Shrinker(launch, failed, base, max_runs).Run();
}

std::string Shrunk::Text() const {
  if (!found) return "no schedule of " + std::to_string(runs) + " runs failed\n";
  if (!replayed) {
    std::string text =
        "found under the " + OptionsText(options) + "; with blocks in order it does not fail:\n";
    for (const Finding& f : report.findings) text += f.Text();
    return text;
  }
  std::string text = std::to_string(switches.size()) + " of " + std::to_string(switches_before) +
                     " context switches suffice (found under the " + OptionsText(options) + "):\n";
  for (const TraceStep& step : report.trace) {
    const auto thread = [](uint32_t t) {
      return "thread " + std::to_string(t) + " (warp " + std::to_string(t / 32) + " lane " +
             std::to_string(t % 32) + ")";
    };
    text += "  block " + std::to_string(step.block) + ": " + thread(step.from) + " stops " +
            step.why + " " + SiteText(step.at) + "; " + thread(step.to) + " goes on";
    if (step.to_at.file != nullptr) text += " from " + SiteText(step.to_at);
    text += "\n";
  }
  for (const Finding& f : report.findings) text += f.Text();
  return text;
}

}  // namespace emu
}  // namespace mk
