// A plan with its predictions, and with what a device took where it was also run there, for people
// and scripts. Pure. Every number says whether it is *predicted* or *measured*.
#ifndef MERGEKERNEL_SERVER_CLI_EXPLAIN_REPORT_H_
#define MERGEKERNEL_SERVER_CLI_EXPLAIN_REPORT_H_

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/device/planning/board.h"
#include "core/device/planning/predict.h"
#include "proto/mergekernel/v1/plan.pb.h"

namespace mk::cli {

struct ExplainedLaunch {
  PlannedLaunch launch;
  Prediction prediction;
  double measured_seconds = 0;  // 0: nowhere

  // What the board's rates leave of the measured time: 1 is the roof, 0 unknown.
  double Share() const {
    return measured_seconds > 0
               ? std::max(prediction.memory_seconds, prediction.math_seconds) / measured_seconds
               : 0;
  }
};

struct Explained {
  std::string pack;  // "vmamba-pico 1"
  const Board* board = nullptr;
  mergekernel::v1::Plan plan;
  double launch_seconds = 0;  // assumed for each launch
  std::vector<ExplainedLaunch> launches;
  // Sums over the launches, the assumed seconds of each included in `seconds` alone.
  double seconds = 0;
  double roofline_seconds = 0;
  LaunchWork work;
  double measured_seconds = 0;  // of the launches; 0: nowhere
  // Of roofline_seconds, by what bounds them.
  double memory_seconds = 0, tensor_seconds = 0, fp32_seconds = 0;
};

Explained Explain(const std::string& pack, const Board& board, mergekernel::v1::Plan plan,
                  double launch_seconds);

// A table of the launches, those of one kernel that follow each other with the same shape folded
// into one row unless `all`; sums, memory, and what the numbers rest on.
std::string ExplainText(const Explained& explained, bool all);
// One row a board.
std::string ExplainTable(const std::vector<Explained>& boards);
nlohmann::json ExplainJson(const Explained& explained);
// One page: a bar per launch, coloured by what bounds it, and memory over the course of the run.
std::string ExplainHtml(const std::vector<Explained>& boards);

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_EXPLAIN_REPORT_H_
