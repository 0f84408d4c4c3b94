// The graphs of one lane's runs, by what the run looks like: bounded, the least recently used goes.
#ifndef MERGEKERNEL_CORE_RUN_RUN_GRAPHS_H_
#define MERGEKERNEL_CORE_RUN_RUN_GRAPHS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/device/device.h"
#include "core/run/request.h"

namespace mk {

// A captured run: its launches, and where its inputs and outputs lie on the device.
struct RunGraph {
  struct Output {
    std::vector<int64_t> shape;
    uint64_t size_bytes = 0;
    void* device = nullptr;
  };
  std::unique_ptr<Graph> graph;
  std::vector<void*> inputs;    // in the request's order
  std::vector<Output> outputs;  // in the signature's order
};

// What two requests must share to be the same run: inputs by name, type and shape, and parameters.
// Unambiguous: no two different requests have one key.
std::string RunKey(const InferRequest& request);

// One thread at a time.
class RunGraphs {
 public:
  enum class Step {
    kLaunch,   // run it, and tell how it went
    kCapture,  // it went well once: capture it
    kReplay,   // its graph is there
  };
  struct Counters {
    uint64_t captured = 0;
    uint64_t replayed = 0;
    uint64_t refused = 0;  // runs that could not be captured
    uint64_t evicted = 0;
  };

  // `most_graphs` 0: nothing is captured. An executable graph takes device memory per launch, so
  // their number is bounded and not only their use.
  explicit RunGraphs(size_t most_graphs) : most_graphs_(most_graphs) {}

  // What to do with a run of this key; `graph` is set for kReplay, and lives until the next call.
  Step Next(const std::string& key, RunGraph** graph);
  void RanWell(const std::string& key);  // after a kLaunch
  void Store(const std::string& key, RunGraph graph);
  void Refuse(const std::string& key);  // from now on kLaunch

  const Counters& counters() const { return counters_; }
  size_t graphs() const { return graphs_; }

 private:
  static constexpr size_t kMostKeys = 64;  // remembered without a graph
  struct Entry {
    std::string key;
    enum class State { kRanOnce, kCaptured, kRefused } state;
    RunGraph graph;
  };
  using Entries = std::list<Entry>;  // the most recently used first

  Entry* Find(const std::string& key);
  void Put(Entry entry);
  void Trim();

  const size_t most_graphs_;
  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> index_;
  size_t graphs_ = 0;
  Counters counters_;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_RUN_RUN_GRAPHS_H_
