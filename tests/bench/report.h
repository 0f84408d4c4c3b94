// The serving bench's figures, for people and for programs.
#ifndef MERGEKERNEL_TESTS_BENCH_REPORT_H_
#define MERGEKERNEL_TESTS_BENCH_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/bench/load_result.h"

namespace mk {

// One line of the table.
struct Cell {
  std::string bench_case;
  std::string way;  // "direct", "lanes", "grpc"
  int concurrency = 1;
  std::vector<LoadResult> rounds;
};

// Text as columns, one line a cell, medians over the rounds; a figure that is not known is a dash.
std::string Table(const std::vector<Cell>& cells);

// For each case that has both, how much later an answer comes over gRPC than from the pack alone at
// concurrency 1 (medians), a line each; "" without any.
std::string AddedLatency(const std::vector<Cell>& cells);

// All of it with every round, as JSON. `facts`: names and values for the head.
std::string Json(const std::vector<Cell>& cells,
                 const std::vector<std::pair<std::string, std::string>>& facts);

}  // namespace mk

#endif  // MERGEKERNEL_TESTS_BENCH_REPORT_H_
