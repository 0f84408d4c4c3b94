// Each rule by a structure it must find, in several spellings, and by neighbours that it must leave
// alone.
#include <gtest/gtest.h>

#include "verify/scan/testing/graph_builder.h"

namespace mk::scan::testing {
namespace {

using List = std::vector<int64_t>;

std::string Slice(GraphBuilder& g, const std::string& x, int64_t begin, int64_t end, int64_t axis,
                  int64_t step = 1) {
  return g.Node("Slice", {x, g.Const(Ints({begin})), g.Const(Ints({end})), g.Const(Ints({axis})),
                          g.Const(Ints({step}))});
}
std::string Reshape(GraphBuilder& g, const std::string& x, List shape) {
  return g.Node("Reshape", {x, g.Const(Ints(std::move(shape)))});
}
std::string Transpose(GraphBuilder& g, const std::string& x, List order) {
  return g.Node("Transpose", {x}, {{"perm", std::move(order)}});
}
// Attention over the last two axes of x [batch, tokens, channels] with projections; `bias` is added
// to the scores.
std::string SelfAttention(GraphBuilder& g, const std::string& x, int64_t channels,
                          const std::string& bias = "") {
  const auto q = g.Node("MatMul", {x, g.Const(Weights({channels, channels}))});
  const auto k = g.Node("MatMul", {x, g.Const(Weights({channels, channels}))});
  const auto v = g.Node("MatMul", {x, g.Const(Weights({channels, channels}))});
  auto scores = g.Node("MatMul", {q, Transpose(g, k, {0, 2, 1})});
  if (!bias.empty()) scores = g.Node("Add", {scores, bias});
  return g.Node("MatMul", {g.Node("Softmax", {scores}, {{"axis", -1}}), v});
}

// ---- S3 ----

std::string RotateHalf(GraphBuilder& g, const std::string& x, int64_t half) {
  const auto a = Slice(g, x, 0, half, 3), b = Slice(g, x, half, INT64_MAX, 3);
  return g.Node("Concat", {g.Node("Neg", {b}), a}, {{"axis", -1}});
}

TEST(Rotary, TurnedHalves) {
  GraphBuilder g;
  const auto x = g.Input("x", {1, "heads", "tokens", 64});
  const auto cos = g.Input("cos", {"tokens", 64}), sin = g.Input("sin", {"tokens", 64});
  g.Output(g.Node("Add", {g.Node("Mul", {x, cos}), g.Node("Mul", {RotateHalf(g, x, 32), sin})}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "S3=1");
}

TEST(Rotary, TurnedPairs) {
  GraphBuilder g;
  const auto x = g.Input("x", {1, 2, 6, 8});
  const auto pairs = Reshape(g, x, {1, 2, 6, 4, 2});
  const auto a = g.Node("Gather", {pairs, g.Const(Scalar(0))}, {{"axis", -1}});
  const auto b = g.Node("Gather", {pairs, g.Const(Scalar(1))}, {{"axis", -1}});
  const auto stacked = g.Node("Concat",
                              {g.Node("Unsqueeze", {g.Node("Neg", {b}), g.Const(Ints({-1}))}),
                               g.Node("Unsqueeze", {a, g.Const(Ints({-1}))})},
                              {{"axis", -1}});
  const auto turned = Reshape(g, stacked, {1, 2, 6, 8});
  g.Output(g.Node("Add", {g.Node("Mul", {x, g.Const(Weights({6, 8}))}),
                          g.Node("Mul", {turned, g.Const(Weights({6, 8}))})}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "S3=1");
}

TEST(Rotary, TurnedByGatherAndByStridedSlices) {
  GraphBuilder g;
  const auto x = g.Input("x", {1, 6, 8});
  const auto swapped =
      g.Node("Gather", {x, g.Const(Ints({1, 0, 3, 2, 5, 4, 7, 6}))}, {{"axis", 2}});
  g.Output(g.Node("Add", {g.Node("Mul", {x, g.Const(Weights({6, 8}))}),
                          g.Node("Mul", {swapped, g.Const(Weights({6, 8}))})}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "S3=1");
  GraphBuilder s;
  const auto y = s.Input("y", {1, 1, 6, 8});
  const auto even = Slice(s, y, 0, INT64_MAX, 3, 2), odd = Slice(s, y, 1, INT64_MAX, 3, 2);
  const auto cos = s.Const(Weights({6, 4})), sin = s.Const(Weights({6, 4}));
  const auto re = s.Node("Sub", {s.Node("Mul", {even, cos}), s.Node("Mul", {odd, sin})});
  const auto im = s.Node("Add", {s.Node("Mul", {odd, cos}), s.Node("Mul", {sin, even})});
  const auto joined = s.Node("Concat",
                             {s.Node("Unsqueeze", {re, s.Const(Ints({-1}))}),
                              s.Node("Unsqueeze", {im, s.Const(Ints({-1}))})},
                             {{"axis", -1}});
  s.Output(Reshape(s, joined, {1, 1, 6, 8}));
  EXPECT_EQ(Labels(ScanModel(s.Model())), "S3=1");
}

TEST(Rotary, WithASumOfANegatedProduct) {
  GraphBuilder g;
  const auto x = g.Input("x", {1, 2, 6, 8});
  const auto a = Slice(g, x, 0, 4, 3), b = Slice(g, x, 4, INT64_MAX, 3);
  const auto cos = g.Input("cos", {6, 4}), sin = g.Input("sin", {6, 4});
  const auto re =
      g.Node("Add", {g.Node("Mul", {cos, a}), g.Node("Neg", {g.Node("Mul", {sin, b})})});
  const auto im = g.Node("Add", {g.Node("Mul", {b, cos}), g.Node("Mul", {a, sin})});
  g.Output(g.Node("Concat", {re, im}, {{"axis", 3}}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "S3=1");
}

TEST(Rotary, PointsInThePlaneAreNone) {
  GraphBuilder g;
  const auto points = g.Input("points", {1, 50, 2}), angle = g.Input("angle", {1, 50, 1});
  const auto parts = g.Nodes("Split", {points, g.Const(Ints({1, 1}))}, 2, {{"axis", -1}});
  const auto cos = g.Node("Cos", {angle}), sin = g.Node("Sin", {angle});
  const auto x = g.Node("Sub", {g.Node("Mul", {parts[0], cos}), g.Node("Mul", {parts[1], sin})});
  const auto y = g.Node("Add", {g.Node("Mul", {parts[0], sin}), g.Node("Mul", {parts[1], cos})});
  g.Output(g.Node("Concat", {x, y}, {{"axis", -1}}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "none");
}

TEST(Rotary, GatedHalvesAreNone) {
  GraphBuilder g;  // a gated unit: halves multiplied, nothing turned
  const auto x = g.Input("x", {1, 2, 6, 64});
  const auto a = Slice(g, x, 0, 32, 3), b = Slice(g, x, 32, INT64_MAX, 3);
  g.Output(g.Node("Mul", {a, g.Node("Sigmoid", {b})}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "none");
}

// ---- S4 ----

std::string Roll(GraphBuilder& g, const std::string& x, int64_t shift, int64_t axis) {
  return g.Node("Concat", {Slice(g, x, shift, INT64_MAX, axis), Slice(g, x, 0, shift, axis)},
                {{"axis", axis}});
}

TEST(Roll, TwoAxesAreOneStructure) {
  for (const bool is_symbolic : {false, true}) {
    GraphBuilder g;
    const auto x = is_symbolic ? g.Input("x", {1, "H", "W", 32}) : g.Input("x", {1, 14, 14, 32});
    g.Output(Roll(g, Roll(g, x, 3, 1), 3, 2));
    const auto report = ScanModel(g.Model());
    EXPECT_EQ(Labels(report), "S4=1");
    EXPECT_EQ(report->site_counts[kS4], 2);
  }
}

TEST(Roll, BackwardsOnASymbolicAxis) {
  GraphBuilder g;
  const auto x = g.Input("x", {1, "H", 14, 32});
  g.Output(g.Node("Concat", {Slice(g, x, -3, INT64_MAX, 1), Slice(g, x, 0, -3, 1)}, {{"axis", 1}}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "S4=1");
}

TEST(Roll, ByGatherSplitAndDoubling) {
  GraphBuilder gather, split, twice;
  gather.Output(gather.Node("Gather",
                            {gather.Input("x", {1, 6, 32}), gather.Const(Ints({2, 3, 4, 5, 0, 1}))},
                            {{"axis", 1}}));
  EXPECT_EQ(Labels(ScanModel(gather.Model())), "S4=1");
  const auto parts = split.Nodes(
      "Split", {split.Input("x", {1, 14, 32}), split.Const(Ints({3, 11}))}, 2, {{"axis", 1}});
  split.Output(split.Node("Concat", {parts[1], parts[0]}, {{"axis", 1}}));
  EXPECT_EQ(Labels(ScanModel(split.Model())), "S4=1");
  const auto x = twice.Input("x", {1, 14, 32});
  twice.Output(Slice(twice, twice.Node("Concat", {x, x}, {{"axis", 1}}), 3, 17, 1));
  EXPECT_EQ(Labels(ScanModel(twice.Model())), "S4=1");
}

TEST(Roll, FlipsAndSwappedChannelsAreNone) {
  GraphBuilder g;
  const auto x = g.Input("x", {1, 6, 32});
  g.Output(g.Node("Gather", {x, g.Const(Ints({5, 4, 3, 2, 1, 0}))}, {{"axis", 1}}));
  g.Output(g.Node("Gather", {x, g.Const(Ints({0, 1, 2, 3, 4, 5}))}, {{"axis", 1}}));
  g.Output(g.Node("Concat", {Slice(g, x, 16, INT64_MAX, 2), Slice(g, x, 0, 16, 2)}, {{"axis", 2}}));
  g.Output(Slice(g, x, INT64_MAX, INT64_MIN, 1, -1));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "none");
}

TEST(Roll, WithSlicesOfOpset9) {
  GraphBuilder g;
  const auto x = g.Input("x", {1, 14, 14, 32});
  const auto tail =
      g.Node("Slice", {x}, {{"starts", List{3}}, {"ends", List{INT64_MAX}}, {"axes", List{1}}});
  const auto head =
      g.Node("Slice", {x}, {{"starts", List{0}}, {"ends", List{3}}, {"axes", List{1}}});
  g.Output(g.Node("Concat", {tail, head}, {{"axis", 1}}));
  EXPECT_EQ(Labels(ScanModel(g.Model(9))), "S4=1");
}

TEST(Roll, OtherConcatsAreNone) {
  GraphBuilder g;
  const auto x = g.Input("x", {1, 14, 14, 32}), y = g.Input("y", {1, 14, 14, 32});
  g.Output(g.Node("Concat", {Slice(g, x, 0, 3, 1), Slice(g, x, 3, INT64_MAX, 1)},
                  {{"axis", 1}}));  // as it was
  g.Output(g.Node("Concat", {Slice(g, x, 3, INT64_MAX, 1), Slice(g, y, 0, 3, 1)},
                  {{"axis", 1}}));  // of two tensors
  g.Output(g.Node("Concat", {Slice(g, x, 4, INT64_MAX, 1), Slice(g, x, 0, 3, 1)},
                  {{"axis", 1}}));  // one place lost
  g.Output(g.Node("Concat", {Slice(g, x, 7, INT64_MAX, 1), Slice(g, x, 0, 7, 1)},
                  {{"axis", 3}}));  // side by side
  EXPECT_EQ(Labels(ScanModel(g.Model())), "none");
}

std::string Partition(GraphBuilder& g, const std::string& x, int64_t size, int64_t window,
                      int64_t channels) {
  const int64_t blocks = size / window;
  const auto split = Reshape(g, x, {1, blocks, window, blocks, window, channels});
  return Reshape(g, Transpose(g, split, {0, 1, 3, 2, 4, 5}), {-1, window * window, channels});
}

TEST(Windows, PartitionBeforeAttention) {
  for (const bool is_padded : {false, true}) {
    GraphBuilder g;
    auto x = g.Input("x", {1, is_padded ? 13 : 14, 14, 32});
    if (is_padded) x = g.Node("Pad", {x, g.Const(Ints({0, 0, 0, 0, 0, 1, 0, 0}))});
    const auto windows = SelfAttention(g, Partition(g, x, 14, 7, 32), 32);
    const auto back = Transpose(g, Reshape(g, windows, {1, 2, 2, 7, 7, 32}), {0, 1, 3, 2, 4, 5});
    const auto whole = Reshape(g, back, {1, 196, 32});
    g.Output(SelfAttention(g, whole, 32));  // and a global one after it
    EXPECT_EQ(Labels(ScanModel(g.Model())), "S4=1");
  }
}

TEST(Windows, PixelShuffleAndPatchesAreNone) {
  GraphBuilder shuffle;
  const auto y = shuffle.Input("y", {1, 64, 14, 14});
  const auto split = Reshape(shuffle, y, {1, 16, 2, 2, 14, 14});
  shuffle.Output(Reshape(shuffle, Transpose(shuffle, split, {0, 1, 4, 2, 5, 3}), {1, 16, 28, 28}));
  EXPECT_EQ(Labels(ScanModel(shuffle.Model())), "none");
  GraphBuilder patches;
  const auto x = patches.Input("x", {1, 3, 32, 32});
  const auto cut = Reshape(patches, x, {1, 3, 4, 8, 4, 8});
  const auto tokens = Reshape(patches, Transpose(patches, cut, {0, 2, 4, 3, 5, 1}), {1, 16, 192});
  patches.Output(SelfAttention(patches, tokens, 192));
  EXPECT_EQ(Labels(ScanModel(patches.Model())), "none");
}

TEST(Windows, HeadsAreNone) {
  GraphBuilder g;
  const auto x = g.Input("x", {2, 16, 64});
  const auto heads = Transpose(g, Reshape(g, x, {2, 16, 4, 16}), {0, 2, 1, 3});
  const auto scores = g.Node("MatMul", {heads, Transpose(g, heads, {0, 1, 3, 2})});
  const auto mixed = g.Node("MatMul", {g.Node("Softmax", {scores}), heads});
  g.Output(Reshape(g, Transpose(g, mixed, {0, 2, 1, 3}), {2, 16, 64}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "none");
}

TEST(RelativePosition, BiasFromATable) {
  GraphBuilder g;
  const auto x = g.Input("x", {4, 4, 8});
  const auto rows = g.Node(
      "Gather",
      {g.Const(Weights({9, 1})), g.Const(Ints({4, 3, 1, 0, 5, 4, 2, 1, 7, 6, 4, 3, 8, 7, 5, 4}))});
  const auto bias = Transpose(g, Reshape(g, rows, {4, 4, 1}), {2, 0, 1});
  g.Output(SelfAttention(g, x, 8, bias));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "S4=1");
}

TEST(RelativePosition, PositionEmbeddingIsNone) {
  GraphBuilder g;
  const auto x = g.Input("x", {1, 16, 8});
  const auto places =
      g.Node("Gather", {g.Const(Weights({512, 8})),
                        g.Const(Ints({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}))});
  const auto placed = g.Node("Add", {x, places});
  g.Output(SelfAttention(g, placed, 8));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "none");
}

TEST(RelativePosition, ShiftedScores) {
  GraphBuilder g;
  const auto q = g.Input("q", {2, 6, 8}), r = g.Input("r", {2, 8, 6});
  auto scores = g.Node("MatMul", {q, r});
  scores = g.Node("Pad", {scores, g.Const(Ints({0, 0, 1, 0, 0, 0}))});
  scores = Reshape(g, Slice(g, Reshape(g, scores, {2, 7, 6}), 1, INT64_MAX, 1), {2, 6, 6});
  g.Output(g.Node("Softmax", {scores}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "S4=1");
}

TEST(Neighbourhood, GatheredWindows) {
  GraphBuilder g;
  const auto x = g.Input("x", {1, 8, 16});
  List places;
  for (int64_t i = 0; i < 6; ++i) places.insert(places.end(), {i, i + 1, i + 2});
  const auto windows =
      g.Node("Gather", {x, g.Const(Ints(places, {6, 3}))}, {{"axis", 1}});  // [1, 6, 3, 16]
  const auto q = g.Node("Unsqueeze", {Slice(g, x, 1, 7, 1), g.Const(Ints({2}))});
  const auto scores = g.Node("MatMul", {q, Transpose(g, windows, {0, 1, 3, 2})});
  g.Output(g.Node("MatMul", {g.Node("Softmax", {scores}), windows}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "S4=1");
}

TEST(Neighbourhood, Im2colIsNone) {
  GraphBuilder g;
  const auto x = g.Input("x", {1, 8, 16});
  List places;
  for (int64_t i = 0; i < 6; ++i) places.insert(places.end(), {i, i + 1, i + 2});
  const auto windows = g.Node("Gather", {x, g.Const(Ints(places, {6, 3}))}, {{"axis", 1}});
  g.Output(g.Node("MatMul", {Reshape(g, windows, {1, 6, 48}), g.Const(Weights({48, 16}))}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "none");
}

TEST(Neighbourhood, StackedSlices) {
  GraphBuilder g;
  const auto k = g.Node("Pad", {g.Input("k", {1, 16, 8}), g.Const(Ints({0, 2, 0, 0, 2, 0}))});
  std::vector<std::string> parts;
  for (int64_t i = 0; i < 5; ++i)
    parts.push_back(g.Node("Unsqueeze", {Slice(g, k, i, i + 16, 1), g.Const(Ints({2}))}));
  const auto windows = g.Node("Concat", parts, {{"axis", 2}});  // [1, 16, 5, 8]
  const auto q = g.Node("Unsqueeze", {g.Input("q", {1, 16, 8}), g.Const(Ints({2}))});
  const auto scores =
      g.Node("ReduceSum", {g.Node("Mul", {q, windows}), g.Const(Ints({-1}))}, {{"keepdims", 0}});
  g.Output(g.Node("Softmax", {scores}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "S4=1");
}

// ---- S5 ----

TEST(Scan, UnrolledUpdates) {
  for (const int steps : {2, 3, 8}) {
    GraphBuilder g;
    const auto a = g.Input("a", {1, 16, 8, 4}), b = g.Input("b", {1, 16, 8, 4});
    auto h = g.Const(Weights({1, 16, 4}));
    for (int t = 0; t < steps; ++t) {
      const auto a_t = g.Node("Gather", {a, g.Const(Scalar(t))}, {{"axis", 2}});
      const auto b_t = g.Node("Gather", {b, g.Const(Scalar(t))}, {{"axis", 2}});
      h = g.Node("Add", {g.Node("Mul", {a_t, h}), b_t});
    }
    g.Output(h);
    EXPECT_EQ(Labels(ScanModel(g.Model())), steps < 3 ? "none" : "S5=1") << steps;
  }
}

TEST(Scan, PolynomialsAndResidualsAreNone) {
  GraphBuilder poly;
  const auto x = poly.Input("x", {1, 64});
  auto y = poly.Node("Mul", {x, poly.Const(Floats({.1f}, {}))});
  for (int i = 0; i < 5; ++i)
    y = poly.Node("Mul", {poly.Node("Add", {y, poly.Const(Floats({.2f}, {}))}), x});
  poly.Output(y);
  EXPECT_EQ(Labels(ScanModel(poly.Model())), "none");
  GraphBuilder residual;
  auto h = residual.Input("h", {1, 16, 32});
  for (int i = 0; i < 5; ++i) {
    const auto f =
        residual.Node("Relu", {residual.Node("MatMul", {h, residual.Const(Weights({32, 32}))})});
    h = residual.Node("Add", {h, residual.Node("Mul", {f, residual.Const(Weights({32}))})});
  }
  residual.Output(h);
  EXPECT_EQ(Labels(ScanModel(residual.Model())), "none");
}

std::string Gate(GraphBuilder& g, const std::string& h, const std::string& x, const std::string& wz,
                 const std::string& wq) {
  const auto both = g.Node("Concat", {h, x}, {{"axis", 1}});
  const auto z = g.Node("Sigmoid", {g.Node("MatMul", {both, wz})});
  const auto q = g.Node("Tanh", {g.Node("MatMul", {both, wq})});
  const auto rest = g.Node("Sub", {g.Const(Floats({1}, {})), z});
  return g.Node("Add", {g.Node("Mul", {rest, h}), g.Node("Mul", {z, q})});
}

TEST(Gates, SharedWeightsMakeARecurrence) {
  for (const bool is_shared : {true, false}) {
    GraphBuilder g;
    auto h = g.Input("h", {4, 16});
    const auto x = g.Input("x", {4, 16});
    auto wz = g.Const(Weights({32, 16})), wq = g.Const(Weights({32, 16}));
    for (int i = 0; i < 3; ++i) {
      h = Gate(g, h, x, wz, wq);
      if (!is_shared)
        wz = g.Const(Weights({32, 16})), wq = g.Const(Weights({32, 16}));  // a highway network
    }
    g.Output(g.Node("MatMul", {h, g.Const(Weights({16, 2}))}));
    EXPECT_EQ(Labels(ScanModel(g.Model())), is_shared ? "S5=1" : "none");
  }
}

TEST(Repetition, PlainRecurrence) {
  for (const bool is_shared : {true, false}) {
    GraphBuilder g;
    const auto x = g.Input("x", {4, 8, 16});
    auto w = g.Const(Weights({16, 16}));
    auto h = g.Input("h", {4, 16});
    for (int t = 0; t < 4; ++t) {
      const auto x_t = g.Node("Gather", {x, g.Const(Scalar(t))}, {{"axis", 1}});
      h = g.Node("Tanh", {g.Node("Add", {g.Node("MatMul", {h, w}), x_t})});
      if (!is_shared) w = g.Const(Weights({16, 16}));
    }
    g.Output(g.Node("MatMul", {h, g.Const(Weights({16, 2}))}));
    EXPECT_EQ(Labels(ScanModel(g.Model())), is_shared ? "S5=1" : "none");
  }
}

TEST(Repetition, SharedLayersAreNone) {
  GraphBuilder g;  // one layer used four times, as in ALBERT
  auto h = g.Input("h", {1, 8, 16});
  std::vector<std::string> w;
  for (int i = 0; i < 4; ++i) w.push_back(g.Const(Weights({16, 16})));
  for (int layer = 0; layer < 4; ++layer) {
    const auto q = g.Node("MatMul", {h, w[0]}), k = g.Node("MatMul", {h, w[1]}),
               v = g.Node("MatMul", {h, w[2]});
    const auto scores = g.Node("Softmax", {g.Node("MatMul", {q, Transpose(g, k, {0, 2, 1})})});
    h = g.Node("LayerNormalization",
               {g.Node("Add", {h, g.Node("MatMul", {g.Node("MatMul", {scores, v}), w[3]})}),
                g.Const(Weights({16}))});
  }
  g.Output(h);
  EXPECT_EQ(Labels(ScanModel(g.Model())), "none");
}

TEST(Access, OneRowPerBatchIsNone) {
  GraphBuilder g;  // how text encoders pool: x[range, argmax(ids)]
  const auto x = g.Input("x", {2, 8, 16}), ids = g.Input("ids", {2, 8}, kInt64);
  const auto best = g.Node("ArgMax", {ids}, {{"axis", -1}, {"keepdims", 1}});
  const auto rows = g.Node("Concat", {g.Const(Ints({0, 1}, {2, 1})), best}, {{"axis", 1}});
  g.Output(g.Node("GatherND", {x, rows}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "none");
}

TEST(Access, BilinearByGatherIsOneStructure) {
  GraphBuilder g;
  const auto image = g.Input("image", {16, 64}),
             at = g.Input("at", {10});  // rows of pixels, flattened places
  std::vector<std::string> corners;
  for (const int64_t offset : {0, 1, 8, 9}) {
    const auto place = g.Node("Cast", {g.Node("Floor", {at})}, {{"to", 7}});
    const auto corner =
        g.Node("Gather", {image, g.Node("Add", {place, g.Const(Scalar(offset))})}, {{"axis", 1}});
    corners.push_back(g.Node("Mul", {corner, g.Input("w" + std::to_string(offset), {10})}));
  }
  g.Output(g.Node(
      "Add", {g.Node("Add", {corners[0], corners[1]}), g.Node("Add", {corners[2], corners[3]})}));
  const auto report = ScanModel(g.Model());
  EXPECT_EQ(Labels(report), "S2=1");
  EXPECT_EQ(report->site_counts[kS2], 4);
}

TEST(Sequences, SplitInDisguiseIsNone) {
  for (const bool is_joined : {false, true}) {
    GraphBuilder g;
    const auto parts =
        g.Node("SplitToSequence", {g.Input("x", {8, 4}), g.Const(Ints({4, 4}))}, {{"axis", 0}});
    g.Output(is_joined ? g.Node("ConcatFromSequence", {parts}, {{"axis", 0}})
                       : g.Node("SequenceAt", {parts, g.Const(Scalar(0))}));
    EXPECT_EQ(Labels(ScanModel(g.Model())), is_joined ? "S5=1" : "none");
  }
}

TEST(Memory, CacheIsAppended) {
  GraphBuilder g;
  const auto past = g.Input("past", {1, "past", 8}), x = g.Input("x", {1, 1, 8});
  const auto keys =
      g.Node("Concat", {past, g.Node("MatMul", {x, g.Const(Weights({8, 8}))})}, {{"axis", 1}});
  const auto scores = g.Node("MatMul", {x, Transpose(g, keys, {0, 2, 1})});
  g.Output(g.Node("MatMul", {g.Node("Softmax", {scores}), keys}));
  g.Output(keys);
  EXPECT_EQ(Labels(ScanModel(g.Model())), "S5=1");
}

TEST(Memory, BankIsShifted) {
  GraphBuilder g;
  const auto bank = g.Input("bank", {7, 64, 8}), x = g.Input("x", {1, 64, 8});
  const auto all = Reshape(g, bank, {1, 448, 8});
  const auto scores = g.Node("MatMul", {x, Transpose(g, all, {0, 2, 1})});
  g.Output(g.Node("MatMul", {g.Node("Softmax", {scores}), all}));
  g.Output(g.Node("Concat", {Slice(g, bank, 1, INT64_MAX, 0), g.Node("Relu", {x})}, {{"axis", 0}}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "S5=1");
}

TEST(Memory, SkipConnectionIsNone) {
  GraphBuilder g;  // an image model whose output is as large as its input, and one that keeps its
                   // input beside
  const auto x = g.Input("x", {1, 3, 32, 32});
  const auto f = g.Node("Conv", {x, g.Const(Weights({3, 3, 1, 1}))});
  g.Output(g.Node("Add", {x, f}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "none");
}

TEST(Loop, CounterAloneIsNoState) {
  for (const bool has_state : {false, true}) {
    GraphBuilder body("b"), g;
    body.Input("i", {}, kInt64);
    const auto keep = body.Input("keep", {}, kBool);
    const auto counter = body.Input("counter", {}, kInt64), h = body.Input("h", {4});
    body.Output(body.Node("Identity", {keep}));
    body.Output(body.Node("Add", {counter, body.Const(Scalar(1))}));
    body.Output(has_state ? body.Node("Tanh", {h}) : body.Node("Identity", {h}));
    const auto out =
        g.Nodes("Loop", {g.Const(Scalar(8)), "", g.Const(Scalar(0)), g.Input("x", {4})}, 2,
                {{"body", body.graph()}});
    g.Output(out[1]);
    EXPECT_EQ(Labels(ScanModel(g.Model())), has_state ? "S5=1" : "none");
  }
}

TEST(Loop, ConditionOnDataIsControlFlow) {
  GraphBuilder body("b"), g;
  body.Input("i", {}, kInt64);
  body.Input("keep", {}, kBool);
  const auto h = body.Input("h", {4});
  const auto next = body.Node("Mul", {h, body.Const(Floats({.5f}, {}))});
  const auto most = body.Node("ReduceMax", {next}, {{"keepdims", 0}});
  body.Output(body.Node("Greater", {most, body.Const(Floats({.1f}, {}))}));
  body.Output(next);
  g.Output(g.Nodes("Loop", {"", "", g.Input("x", {4})}, 1, {{"body", body.graph()}})[0]);
  EXPECT_EQ(Labels(ScanModel(g.Model())), "S1=1 S5=1");
}

// ---- structure of the file ----

TEST(Functions, AreWalked) {
  GraphBuilder g;
  g.Output(g.Nodes("Pick", {g.Input("x", {4, 8})}, 1, {{"to_axis", 1}}, "local")[0]);
  auto model = g.Model();
  auto* function = model.add_functions();
  function->set_name("Pick");
  function->set_domain("local");
  function->add_input("a");
  function->add_output("b");
  function->add_attribute("to_axis");
  auto* node = function->add_node();
  node->set_op_type("NonZero");
  node->add_input("a");
  node->add_output("b");
  const auto report = ScanModel(model);
  EXPECT_EQ(Labels(report), "S1=1");
  EXPECT_EQ(report->hidden_count, 0);
  EXPECT_NE(report->structures[kS1][0].sites[0].scope, "");
}

TEST(Functions, EndlessRecursionIsRefused) {
  GraphBuilder g;
  g.Output(g.Nodes("Again", {g.Input("x", {4})}, 1, {}, "local")[0]);
  auto model = g.Model();
  auto* function = model.add_functions();
  function->set_name("Again");
  function->set_domain("local");
  function->add_input("a");
  function->add_output("b");
  for (int i = 0; i < 2; ++i) {
    auto* node = function->add_node();
    node->set_op_type("Again");
    node->set_domain("local");
    node->add_input("a");
    node->add_output("b");
  }
  EXPECT_EQ(ScanModel(model).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Foreign, HidesUnlessTwoAreFound) {
  GraphBuilder g;
  const auto x = g.Input("x", {1, 8, 8, 4});
  const auto y = g.Nodes("Na2d", {x}, 1, {}, "natten")[0];
  g.Output(y);
  EXPECT_EQ(ScanModel(g.Model())->answer(), Answer::kUnknown);
  g.Output(g.Node("NonZero", {y}));
  EXPECT_EQ(ScanModel(g.Model())->answer(), Answer::kUnknown);
  g.Output(g.Node("GridSample", {x, g.Input("grid", {1, 2, 2, 2})}));
  EXPECT_EQ(ScanModel(g.Model())->answer(), Answer::kCandidate);
}

TEST(Rule, FollowsFromTheCount) {
  EXPECT_EQ(Judge(0, false), Answer::kLeaveAlone);
  EXPECT_EQ(Judge(1, false), Answer::kWatch);
  EXPECT_EQ(Judge(2, false), Answer::kCandidate);
  EXPECT_EQ(Judge(5, true), Answer::kCandidate);
  EXPECT_EQ(Judge(0, true), Answer::kUnknown);
  EXPECT_EQ(Judge(1, true), Answer::kUnknown);
}

TEST(Folding, ShapeArithmeticIsNoData) {
  GraphBuilder g;  // what exporters write for view(b, -1, h, w) with symbolic axes
  const auto x = g.Input("x", {"B", 64, "H", "W"});
  const auto shape = g.Node("Shape", {x});
  const auto dim = [&](int64_t i) {
    return g.Node("Unsqueeze", {g.Node("Gather", {shape, g.Const(Scalar(i))}), g.Const(Ints({0}))});
  };
  const auto tokens = g.Node("Mul", {dim(2), dim(3)});
  const auto flat = g.Node(
      "Reshape", {x, g.Node("Concat", {dim(0), g.Const(Ints({64})), tokens}, {{"axis", 0}})});
  const auto ones = g.Node("ConstantOfShape", {g.Node("Concat", {dim(2), dim(3)}, {{"axis", 0}})});
  const auto places = g.Node("NonZero", {ones});  // of a constant: how grids are written
  g.Output(flat);
  g.Output(g.Node("GatherND", {g.Const(Weights({8, 8})), g.Node("Transpose", {places})}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "none");
}

}  // namespace
}  // namespace mk::scan::testing
