#include "core/run/run_graphs.h"

#include <gtest/gtest.h>

#include <set>

namespace mk {
namespace {

using Step = RunGraphs::Step;

InferRequest Request(const std::string& name, std::vector<int64_t> shape,
                     Parameters parameters = {}) {
  InferRequest request;
  request.inputs.push_back({name, MK_DTYPE_FP32, std::move(shape), nullptr, 0});
  request.parameters = std::move(parameters);
  return request;
}

TEST(RunKey, DiffersWhereverARunMay) {
  InferRequest two = Request("X", {2});
  two.inputs.push_back(two.inputs[0]);
  InferRequest half = Request("X", {2, 3});
  half.inputs[0].dtype = MK_DTYPE_FP16;
  const std::vector<InferRequest> requests = {
      Request("X", {2, 3}),
      Request("Y", {2, 3}),
      Request("X", {3, 2}),
      Request("X", {6}),
      Request("X", {}),
      Request("X2", {3}),
      half,
      two,
      Request("X", {2, 3}, {{"a", int64_t{1}}}),
      Request("X", {2, 3}, {{"a", uint64_t{1}}}),
      Request("X", {2, 3}, {{"a", true}}),
      Request("X", {2, 3}, {{"a", 1.0}}),
      Request("X", {2, 3}, {{"a", std::string("1")}}),
      Request("X", {2, 3}, {{"a", int64_t{2}}}),
      Request("X", {2, 3}, {{"ab", std::string("")}}),
      Request("X", {2, 3}, {{"a", std::string("b")}}),
  };
  std::set<std::string> keys;
  for (const InferRequest& request : requests) keys.insert(RunKey(request));
  EXPECT_EQ(keys.size(), requests.size());
  EXPECT_EQ(RunKey(requests[0]), RunKey(Request("X", {2, 3})));
}

TEST(RunKey, IgnoresWhatChangesNoLaunch) {
  InferRequest request = Request("X", {2, 3});
  request.id = "7";
  request.outputs = {"Y"};
  request.inputs[0].data = "other bytes";
  EXPECT_EQ(RunKey(request), RunKey(Request("X", {2, 3})));
}

TEST(RunGraphs, FirstARunThenACaptureThenReplays) {
  RunGraphs graphs(2);
  RunGraph* graph = nullptr;
  EXPECT_EQ(graphs.Next("a", &graph), Step::kLaunch);
  EXPECT_EQ(graphs.Next("a", &graph), Step::kLaunch);  // it did not go well yet
  graphs.RanWell("a");
  EXPECT_EQ(graphs.Next("a", &graph), Step::kCapture);
  EXPECT_EQ(graphs.Next("a", &graph), Step::kCapture);
  RunGraph captured;
  captured.inputs = {&graphs};
  graphs.Store("a", std::move(captured));
  ASSERT_EQ(graphs.Next("a", &graph), Step::kReplay);
  EXPECT_EQ(graph->inputs[0], &graphs);
  EXPECT_EQ(graphs.counters().captured, 1u);
  EXPECT_EQ(graphs.counters().replayed, 1u);
}

TEST(RunGraphs, TheLeastRecentlyUsedGraphGoes) {
  RunGraphs graphs(2);
  RunGraph* graph = nullptr;
  for (const char* key : {"a", "b"}) {
    graphs.RanWell(key);
    graphs.Store(key, {});
  }
  EXPECT_EQ(graphs.Next("a", &graph), Step::kReplay);
  graphs.RanWell("c");
  graphs.Store("c", {});
  EXPECT_EQ(graphs.graphs(), 2u);
  EXPECT_EQ(graphs.counters().evicted, 1u);
  EXPECT_EQ(graphs.Next("b", &graph), Step::kLaunch);  // as if it had never been
  EXPECT_EQ(graphs.Next("a", &graph), Step::kReplay);
  EXPECT_EQ(graphs.Next("c", &graph), Step::kReplay);
}

TEST(RunGraphs, WhatIsRefusedIsLaunchedFromThenOn) {
  RunGraphs graphs(2);
  RunGraph* graph = nullptr;
  graphs.RanWell("a");
  graphs.Refuse("a");
  graphs.RanWell("a");
  graphs.Refuse("a");
  EXPECT_EQ(graphs.Next("a", &graph), Step::kLaunch);
  EXPECT_EQ(graphs.counters().refused, 1u);
}

TEST(RunGraphs, KeysAreBoundedToo) {
  RunGraphs graphs(1);
  RunGraph* graph = nullptr;
  graphs.RanWell("first");
  graphs.Store("first", {});
  for (int i = 0; i < 1000; ++i) graphs.RanWell("key" + std::to_string(i));
  EXPECT_EQ(graphs.Next("key0", &graph), Step::kLaunch);
  EXPECT_EQ(graphs.Next("key999", &graph), Step::kCapture);
  EXPECT_EQ(graphs.Next("first", &graph), Step::kLaunch);
  EXPECT_EQ(graphs.graphs(), 0u);
}

TEST(RunGraphs, NoGraphsAtAll) {
  RunGraphs graphs(0);
  RunGraph* graph = nullptr;
  graphs.RanWell("a");
  graphs.Refuse("b");
  EXPECT_EQ(graphs.Next("a", &graph), Step::kLaunch);
  EXPECT_EQ(graphs.counters().refused, 0u);
}

}  // namespace
}  // namespace mk
