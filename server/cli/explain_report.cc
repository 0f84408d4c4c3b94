#include "server/cli/explain_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/cli/common.h"

namespace mk::cli {
namespace {

PlannedLaunch FromProto(const mergekernel::v1::PlanLaunch& from) {
  PlannedLaunch launch;
  launch.kernel = from.kernel();
  for (int i = 0; i < 3; ++i) {
    launch.dims.grid[i] = i < from.grid_size() ? from.grid(i) : 1;
    launch.dims.block[i] = i < from.block_size() ? from.block(i) : 1;
  }
  launch.dims.shared_bytes = from.dynamic_shared_bytes();
  launch.dims.work = {from.bytes(), from.flops(), from.tensor_flops()};
  launch.live_bytes = from.scratch_live_bytes();
  if (from.has_resources()) {
    launch.resources = KernelResources{static_cast<int>(from.registers()),
                                       from.static_shared_bytes(), from.stack_bytes()};
  }
  return launch;
}

std::string Dims(const uint32_t (&dims)[3]) {
  std::string text = std::to_string(dims[0]);
  for (int i = 1; i < 3; ++i) {
    if (dims[i] != 1 || (i == 1 && dims[2] != 1)) absl::StrAppend(&text, "x", dims[i]);
  }
  return text;
}

std::string Microseconds(double seconds) { return Fixed(seconds * 1e6, 2); }

bool SameWork(const ExplainedLaunch& a, const ExplainedLaunch& b) {
  const auto key = [](const ExplainedLaunch& l) {
    const LaunchDims& d = l.launch.dims;
    return std::make_tuple(l.launch.kernel, d.grid[0], d.grid[1], d.grid[2], d.block[0], d.block[1],
                           d.shared_bytes, d.work.bytes, d.work.flops, d.work.tensor_flops);
  };
  return key(a) == key(b);
}

// Launches of the same work, wherever they stand, in the order of the first.
struct Group {
  const ExplainedLaunch* first;
  size_t count;
  double measured_seconds;  // of all
};
std::vector<Group> Fold(const std::vector<ExplainedLaunch>& launches, bool all) {
  std::vector<Group> groups;
  for (const ExplainedLaunch& launch : launches) {
    Group* same = nullptr;
    for (Group& group : groups) {
      if (!all && SameWork(*group.first, launch)) same = &group;
    }
    if (same != nullptr) {
      ++same->count;
      same->measured_seconds += launch.measured_seconds;
    } else {
      groups.push_back({&launch, 1, launch.measured_seconds});
    }
  }
  return groups;
}

std::string Inputs(const mergekernel::v1::Plan& plan) {
  std::vector<std::string> inputs;
  for (const auto& input : plan.inputs()) {
    inputs.push_back(absl::StrCat(input.name(), " ", input.datatype(), "[",
                                  absl::StrJoin(input.shape(), ","), "]"));
  }
  return absl::StrJoin(inputs, ", ");
}

std::string RateText(const char* what, const Rate& rate, double unit, const char* name) {
  return absl::StrCat(what, " ", Fixed(rate.per_second / unit, 1), " ", name, " (",
                      RateBasisName(rate.basis), ")");
}

std::string MeasuredText(const Explained& e) {
  if (e.plan.measured_on().empty()) return "";
  return absl::StrCat("measured on ", e.plan.measured_on(), ": a run ",
                      HumanDuration(e.plan.measured_seconds()), " (median of ",
                      e.plan.measured_runs(), ", the best ",
                      HumanDuration(e.plan.measured_best_seconds()),
                      "; copies in and out included), its launches one by one ",
                      HumanDuration(e.measured_seconds), "\n");
}

}  // namespace

Explained Explain(const std::string& pack, const Board& board, mergekernel::v1::Plan plan,
                  double launch_seconds) {
  Explained explained;
  explained.pack = pack;
  explained.board = &board;
  explained.launch_seconds = launch_seconds;
  for (const auto& from : plan.launches()) {
    ExplainedLaunch launch = {FromProto(from), {}, from.measured_seconds()};
    launch.prediction = Predict(board, launch.launch, launch_seconds);
    const Prediction& p = launch.prediction;
    const double roofline = std::max(p.memory_seconds, p.math_seconds);
    const std::string bound = p.memory_seconds >= p.math_seconds ? "memory" : p.bound;
    explained.seconds += p.seconds;
    explained.measured_seconds += launch.measured_seconds;
    explained.roofline_seconds += roofline;
    (bound == "memory"   ? explained.memory_seconds
     : bound == "tensor" ? explained.tensor_seconds
                         : explained.fp32_seconds) += roofline;
    explained.work.bytes += launch.launch.dims.work.bytes;
    explained.work.flops += launch.launch.dims.work.flops;
    explained.work.tensor_flops += launch.launch.dims.work.tensor_flops;
    explained.launches.push_back(std::move(launch));
  }
  explained.plan = std::move(plan);
  return explained;
}

std::string ExplainText(const Explained& e, bool all) {
  std::string text = absl::StrCat(
      e.pack, " on ", e.board->title,
      e.plan.measured_on().empty() ? ": predicted, not measured\n" : ": predicted, and measured\n",
      "input ", Inputs(e.plan), "\n\n");
  const bool measured = !e.plan.measured_on().empty();
  std::vector<std::string> columns = {"KERNEL", "TIMES", "GRID",  "BLOCK", "SHARED", "REGS",
                                      "PER SM", "WAVES", "BYTES", "MFLOP", "BOUND",  "US"};
  if (measured) columns.insert(columns.end(), {"MEASURED US", "OF THE ROOF"});
  Table table(columns);
  for (const Group& group : Fold(e.launches, all)) {
    const PlannedLaunch& l = group.first->launch;
    const Prediction& p = group.first->prediction;
    const uint64_t shared =
        uint64_t{l.dims.shared_bytes} + (l.resources ? l.resources->shared_bytes : 0);
    std::vector<std::string> row = {
        l.kernel,
        std::to_string(group.count),
        Dims(l.dims.grid),
        Dims(l.dims.block),
        HumanBytes(shared),
        l.resources ? std::to_string(l.resources->registers) : "?",
        p.known ? std::to_string(p.occupancy.blocks_per_sm) : "?",
        p.known ? Fixed(p.waves, 2) : "?",
        HumanBytes(l.dims.work.bytes),
        Fixed(static_cast<double>(l.dims.work.flops + l.dims.work.tensor_flops) / 1e6, 2),
        p.bound,
        Microseconds(p.seconds * static_cast<double>(group.count))};
    if (measured) {
      row.push_back(Microseconds(group.measured_seconds));
      const double roof = std::max(p.memory_seconds, p.math_seconds);
      row.push_back(group.measured_seconds > 0
                        ? absl::StrCat(Fixed(100 * roof * static_cast<double>(group.count) /
                                                 group.measured_seconds,
                                             0),
                                       " %")
                        : "?");
    }
    table.Row(row);
  }
  absl::StrAppend(&text, table.Text(), "\n", MeasuredText(e));
  absl::StrAppend(&text, e.launches.size(), " launches, ", HumanBytes(e.work.bytes), ", ",
                  Fixed(static_cast<double>(e.work.tensor_flops) / 1e9, 3),
                  " GFLOP on tensor cores and ", Fixed(static_cast<double>(e.work.flops) / 1e9, 3),
                  " beside them\n", "predicted ", HumanDuration(e.seconds), ": ",
                  HumanDuration(e.memory_seconds), " bound by memory, ",
                  HumanDuration(e.tensor_seconds), " by tensor cores, ",
                  HumanDuration(e.fp32_seconds), " by fp32, and ", e.launches.size(),
                  " launches at ", Microseconds(e.launch_seconds), " us (assumed)\n");
  absl::StrAppend(&text, "memory: weights ", HumanBytes(e.plan.weights_bytes()),
                  ", scratch of a lane at its peak ", HumanBytes(e.plan.scratch_peak_bytes()),
                  "; copied in ", HumanBytes(e.plan.copied_to_device_bytes()), ", out ",
                  HumanBytes(e.plan.copied_to_host_bytes()), "\n");
  for (const auto& note : e.plan.notes()) absl::StrAppend(&text, note, "\n");
  absl::StrAppend(&text, "rates: ", RateText("memory", e.board->dram, 1e9, "GB/s"), ", ",
                  RateText("tensor", e.board->tensor, 1e12, "TFLOPS"), ", ",
                  RateText("fp32", e.board->fp32, 1e12, "TFLOPS"), ", ", e.board->sm_count,
                  " SMs\nsource: ", e.board->source, "\n",
                  "A roofline with whole rounds of blocks over the SMs: docs/design/planning.md "
                  "tells what it leaves out.\n");
  return text;
}

std::string ExplainTable(const std::vector<Explained>& boards) {
  Table table({"BOARD", "PREDICTED", "MEMORY", "TENSOR", "FP32", "LAUNCHES", "WEIGHTS", "SCRATCH"});
  for (const Explained& e : boards) {
    table.Row({e.board->name, HumanDuration(e.seconds), HumanDuration(e.memory_seconds),
               HumanDuration(e.tensor_seconds), HumanDuration(e.fp32_seconds),
               std::to_string(e.launches.size()), HumanBytes(e.plan.weights_bytes()),
               HumanBytes(e.plan.scratch_peak_bytes())});
  }
  const std::string assumed = boards.empty() ? "" : Microseconds(boards[0].launch_seconds);
  return absl::StrCat(table.Text(), "Predicted, not measured; each launch is taken as ", assumed,
                      " us beside its work (assumed).\n");
}

nlohmann::json ExplainJson(const Explained& e) {
  nlohmann::json launches = nlohmann::json::array();
  for (const ExplainedLaunch& launch : e.launches) {
    const PlannedLaunch& l = launch.launch;
    const Prediction& p = launch.prediction;
    nlohmann::json row = {{"kernel", l.kernel},
                          {"grid", l.dims.grid},
                          {"block", l.dims.block},
                          {"dynamic_shared_bytes", l.dims.shared_bytes},
                          {"bytes", l.dims.work.bytes},
                          {"flops", l.dims.work.flops},
                          {"tensor_flops", l.dims.work.tensor_flops},
                          {"scratch_live_bytes", l.live_bytes},
                          {"predicted_us", p.seconds * 1e6},
                          {"bound", p.bound},
                          {"balance", p.balance}};
    if (p.known) {
      row["registers"] = l.resources->registers;
      row["static_shared_bytes"] = l.resources->shared_bytes;
      row["blocks_per_sm"] = p.occupancy.blocks_per_sm;
      row["occupancy"] = p.occupancy.warps_share;
      row["waves"] = p.waves;
    }
    if (launch.measured_seconds > 0) {
      row["measured_us"] = launch.measured_seconds * 1e6;
      row["share_of_roof"] = launch.Share();
    }
    launches.push_back(std::move(row));
  }
  nlohmann::json inputs = nlohmann::json::array();
  for (const auto& input : e.plan.inputs()) {
    inputs.push_back({{"name", input.name()},
                      {"datatype", input.datatype()},
                      {"shape", std::vector<int64_t>(input.shape().begin(), input.shape().end())}});
  }
  nlohmann::json measured;  // null: nowhere
  if (!e.plan.measured_on().empty()) {
    measured = {{"source", "measured"},
                {"device", e.plan.measured_on()},
                {"runs", e.plan.measured_runs()},
                {"median_us", e.plan.measured_seconds() * 1e6},
                {"best_us", e.plan.measured_best_seconds() * 1e6},
                {"launches_us", e.measured_seconds * 1e6}};
  }
  return {{"source", "predicted"},
          {"measured", measured},
          {"pack", e.pack},
          {"board", e.board->name},
          {"inputs", inputs},
          {"predicted_us", e.seconds * 1e6},
          {"roofline_us", e.roofline_seconds * 1e6},
          {"assumed_launch_us", e.launch_seconds * 1e6},
          {"bytes", e.work.bytes},
          {"flops", e.work.flops},
          {"tensor_flops", e.work.tensor_flops},
          {"weights_bytes", e.plan.weights_bytes()},
          {"scratch_peak_bytes", e.plan.scratch_peak_bytes()},
          {"rates",
           {{"dram_bytes_per_s", e.board->dram.per_second},
            {"tensor_flops_per_s", e.board->tensor.per_second},
            {"fp32_flops_per_s", e.board->fp32.per_second},
            {"dram_basis", RateBasisName(e.board->dram.basis)},
            {"tensor_basis", RateBasisName(e.board->tensor.basis)}}},
          {"launches", launches}};
}

}  // namespace mk::cli
