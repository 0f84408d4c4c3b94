// A closed loop of ModelInfer calls against a running daemon.
#ifndef MERGEKERNEL_TESTS_BENCH_GRPC_LOAD_H_
#define MERGEKERNEL_TESTS_BENCH_GRPC_LOAD_H_

#include <string>

#include "absl/status/statusor.h"
#include "tests/bench/cases.h"
#include "tests/bench/load_result.h"

namespace mk {

struct GrpcTarget {
  std::string address;  // host:port or unix:PATH
  int pid = 0;          // of the daemon on this machine, for its CPU time; 0: not known
  int client_threads = 1;
  // Whether each request is made and each answer read as a protobuf message, as an ordinary client
  // does. Otherwise ready bytes are sent and the answer's are counted, so that what is measured is
  // mostly the daemon.
  bool messages = false;
};

// Each of `client_threads` has a connection and a completion queue of its own and polls it itself,
// with its share of the plan's concurrency outstanding. The first answer of each outstanding call
// is compared with what it must be, later ones by their size; any failure ends the run with it.
// Blocks for the plan's time.
absl::StatusOr<LoadResult> RunGrpcLoad(const GrpcTarget& target, const BenchCase& bench_case,
                                       const LoadPlan& plan);

}  // namespace mk

#endif  // MERGEKERNEL_TESTS_BENCH_GRPC_LOAD_H_
