// The graphs of field-case group D, each with every expected label and no other.
#include <gtest/gtest.h>

#include "verify/scan/testing/graph_builder.h"

namespace mk::scan::testing {
namespace {

using List = std::vector<int64_t>;

bool HasRemark(const absl::StatusOr<Report>& report, const std::string& code) {
  for (const Remark& remark : report->remarks) {
    if (remark.code == code) return true;
  }
  return false;
}

const Structure& First(const absl::StatusOr<Report>& report, int spot) {
  return report->structures[static_cast<size_t>(spot)].at(0);
}

TEST(D01, ComplexTensorIsNamed) {
  GraphBuilder g;
  g.Input("z", {4}, kComplex64);
  g.Output(g.Node("Identity", {"z"}));
  const auto report = ScanModel(g.Model());
  EXPECT_EQ(Labels(report), "S3=1");
  EXPECT_EQ(First(report, kS3).kind, "complex numbers");
  EXPECT_EQ(First(report, kS3).sites[0].name, "z");
}

std::string RealRope(GraphBuilder& g, const std::string& q) {
  const auto pairs = g.Node("Reshape", {q, g.Const(Ints({1, 2, 6, 4, 2}))});
  const auto parts = g.Nodes("Split", {pairs, g.Const(Ints({1, 1}))}, 2, {{"axis", -1}});
  const auto cos = g.Const(Floats(std::vector<float>(24, 1), {6, 4, 1}));
  const auto sin = g.Const(Floats(std::vector<float>(24, 0), {6, 4, 1}));
  const auto re = g.Node("Sub", {g.Node("Mul", {parts[0], cos}), g.Node("Mul", {parts[1], sin})});
  const auto im = g.Node("Add", {g.Node("Mul", {parts[0], sin}), g.Node("Mul", {parts[1], cos})});
  const auto joined = g.Node("Concat", {re, im}, {{"axis", -1}});
  return g.Node("Reshape", {joined, g.Const(Ints({1, 2, 6, 8}))});
}

TEST(D01, RotaryInRealPartsIsOneSite) {
  GraphBuilder g;
  g.Output(RealRope(g, g.Input("q", {1, 2, 6, 8})));
  const auto report = ScanModel(g.Model());
  EXPECT_EQ(Labels(report), "S3=1");
  EXPECT_EQ(report->site_counts[kS3], 1);
  EXPECT_EQ(report->answer(), Answer::kWatch);
}

onnx::TensorProto QuarterTurn(int64_t size) {
  std::vector<float> values(static_cast<size_t>(size * size), 0);
  for (int64_t i = 0; i < size; i += 2) {
    values[static_cast<size_t>(i * size + i + 1)] = 1;
    values[static_cast<size_t>((i + 1) * size + i)] = -1;
  }
  return Floats(values, {size, size});
}

TEST(D02, RotaryAsPermutationMatMul) {
  for (const bool is_read : {true, false}) {
    GraphBuilder g;
    const auto x = g.Input("x", {1, 4096, 64});
    auto matrix = QuarterTurn(64);
    if (!is_read) {
      matrix.clear_raw_data();
      matrix.set_data_location(1);
    }
    const auto turned = g.Node("MatMul", {x, g.Const(matrix)});
    const auto sin = g.Const(Weights({4096, 64})), cos = g.Const(Weights({4096, 64}));
    g.Output(g.Node("Add", {g.Node("Mul", {x, cos}), g.Node("Mul", {turned, sin})}));
    const auto report = ScanModel(g.Model());
    EXPECT_EQ(Labels(report), "S3=1");
    EXPECT_EQ(First(report, kS3).note.find("possible rotary") == 0, !is_read);
  }
}

TEST(D02, AnotherMatrixIsNoRotary) {
  GraphBuilder g;
  const auto x = g.Input("x", {1, 16, 8});
  const auto other = g.Node("MatMul", {x, g.Const(Floats(std::vector<float>(64, 0.5f), {8, 8}))});
  g.Output(g.Node("Add", {g.Node("Mul", {x, g.Const(Weights({8}))}),
                          g.Node("Mul", {other, g.Const(Weights({8}))})}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "none");
}

TEST(D04, GridSampleInBothSpellings) {
  for (const bool is_const : {false, true}) {
    for (const int variant : {0, 1, 2}) {
      GraphBuilder g;
      const auto x = g.Input("x", {1, 1, 2, 2});
      const auto grid = is_const ? g.Const(Weights({1, 6, 2, 2})) : g.Input("grid", {1, 1, 6, 2});
      Attributes attributes;
      if (variant == 1)
        attributes = {{"mode", "bilinear"}, {"padding_mode", "border"}, {"align_corners", 1}};
      if (variant == 2) attributes = {{"mode", "linear"}, {"padding_mode", "zeros"}};
      g.Output(g.Node("GridSample", {x, grid}, attributes));
      EXPECT_EQ(Labels(ScanModel(g.Model(variant == 2 ? 20 : 16))), "S2=1");
    }
  }
}

TEST(D05, DeformableAttentionIsOneStructureWithTwoSites) {
  GraphBuilder g;
  const auto v0 = g.Input("v0", {8, 32, 4, 4}), v1 = g.Input("v1", {8, 32, 2, 2});
  const auto g0 = g.Input("g0", {8, 10, 4, 2}), g1 = g.Input("g1", {8, 10, 4, 2});
  const auto w = g.Input("w", {8, 1, 10, 8});
  const Attributes sampling = {
      {"mode", "bilinear"}, {"padding_mode", "zeros"}, {"align_corners", 0}};
  const auto s0 = g.Node("GridSample", {v0, g0}, sampling),
             s1 = g.Node("GridSample", {v1, g1}, sampling);
  const auto all = g.Node("Mul", {g.Node("Concat", {s0, s1}, {{"axis", -1}}), w});
  g.Output(g.Node("ReduceSum", {all, g.Const(Ints({-1}))}, {{"keepdims", 0}}));
  const auto report = ScanModel(g.Model(16));
  EXPECT_EQ(Labels(report), "S2=1");
  EXPECT_EQ(report->site_counts[kS2], 2);
}

TEST(D06, BooleanIndexing) {
  GraphBuilder g;
  const auto x = g.Input("x", {4, 8});
  const auto where = g.Node("NonZero", {g.Node("Greater", {x, g.Const(Floats({0}, {}))})});
  g.Output(g.Node("GatherND", {x, g.Node("Transpose", {where}, {{"perm", List{1, 0}}})}));
  const auto report = ScanModel(g.Model());
  EXPECT_EQ(Labels(report), "S1=1 S2=1");
  EXPECT_EQ(First(report, kS1).sites[0].op, "NonZero");
  EXPECT_NE(First(report, kS1).note.find("GatherND"), std::string::npos);
  EXPECT_EQ(report->answer(), Answer::kCandidate);
}

onnx::ModelProto SqueezeIfOne(const Sizes& sizes) {
  GraphBuilder g;
  const auto x = g.Input("x", sizes);
  const auto channels = g.Node("Gather", {g.Node("Shape", {x}), g.Const(Scalar(1))});
  GraphBuilder squeezed("t"), kept("e");
  squeezed.Output(squeezed.Node("Squeeze", {x, squeezed.Const(Ints({1}))}));
  kept.Output(kept.Node("Identity", {x}));
  g.Output(g.Node("If", {g.Node("Equal", {channels, g.Const(Scalar(1))})},
                  {{"then_branch", squeezed.graph()}, {"else_branch", kept.graph()}}));
  return g.Model();
}

TEST(D08, BranchesOfDifferentRank) {
  const auto report = ScanModel(SqueezeIfOne({1, "C", 8, 8}));
  EXPECT_EQ(Labels(report), "S1=1");
  EXPECT_NE(First(report, kS1).note.find("different ranks"), std::string::npos);
}

TEST(D08, FixedChannelsFold) {
  const auto one = ScanModel(SqueezeIfOne({1, 1, 8, 8})),
             three = ScanModel(SqueezeIfOne({1, 3, 8, 8}));
  EXPECT_EQ(Labels(one), "none");
  EXPECT_EQ(Labels(three), "none");
}

absl::StatusOr<Report> TopK(const Sizes& sizes, int64_t k) {
  GraphBuilder g;
  g.Output(g.Nodes("TopK", {g.Input("x", sizes), g.Const(Ints({k}))}, 2)[0]);
  return ScanModel(g.Model());
}

TEST(D09, ConstantKIsALimitAtMost) {
  const auto large = TopK({1, 20000}, 5000), zero = TopK({1, 10}, 0), beyond = TopK({1, 10}, 11);
  EXPECT_EQ(Labels(large), "none");
  EXPECT_TRUE(HasRemark(large, "topk-k-limit"));
  EXPECT_EQ(Labels(zero), "none");
  EXPECT_TRUE(HasRemark(zero, "topk-k-zero"));
  EXPECT_EQ(Labels(beyond), "none");
  EXPECT_TRUE(HasRemark(beyond, "topk-k-too-large"));
  EXPECT_TRUE(TopK({1, 3840}, 3840)->remarks.empty());
}

TEST(D09, KFromShapeIsShapeOnly) {
  GraphBuilder g;
  const auto x = g.Input("x", {1, "N"});
  const auto n = g.Node("Gather", {g.Node("Shape", {x}), g.Const(Ints({1}))});
  g.Output(g.Nodes("TopK", {x, g.Node("Min", {n, g.Const(Ints({300}))})}, 2)[0]);
  const auto report = ScanModel(g.Model());
  EXPECT_EQ(Labels(report), "none");
  EXPECT_TRUE(HasRemark(report, "topk-k-from-shape"));
}

TEST(D09, KFromAnInputOrFromData) {
  GraphBuilder input;
  input.Output(
      input.Nodes("TopK", {input.Input("x", {1, 100}), input.Input("k", {1}, kInt64)}, 2)[0]);
  EXPECT_EQ(Labels(ScanModel(input.Model())), "S1=1");
  GraphBuilder data;
  const auto x = data.Input("x", {1, 100});
  const auto positive =
      data.Node("Cast", {data.Node("Greater", {x, data.Const(Floats({0}, {}))})}, {{"to", 7}});
  const auto k = data.Node("ReduceSum", {positive}, {{"keepdims", 0}});
  const auto as_list = data.Node("Reshape", {k, data.Const(Ints({1}))});
  data.Output(data.Nodes("TopK", {x, as_list}, 2)[0]);
  EXPECT_EQ(Labels(ScanModel(data.Model())), "S1=1");
}

TEST(D10, SuppressionIsTheOnlyCause) {
  GraphBuilder g;
  const auto boxes = g.Input("boxes", {1, 100, 4}), scores = g.Input("scores", {1, 5, 100});
  const auto kept =
      g.Node("NonMaxSuppression", {boxes, scores, g.Const(Ints({10})), g.Const(Floats({0.5f}, {1})),
                                   g.Const(Floats({0.1f}, {1}))});
  const auto column = g.Node("Gather", {kept, g.Const(Scalar(2))}, {{"axis", 1}});
  g.Output(g.Node("Gather", {boxes, column}, {{"axis", 1}}));
  const auto report = ScanModel(g.Model());
  EXPECT_EQ(Labels(report), "S1=1");
  EXPECT_EQ(First(report, kS1).sites[0].op, "NonMaxSuppression");
}

TEST(D12, SelectiveScanAsScan) {
  GraphBuilder body("b"), g;
  const auto h = body.Input("h_in", {4}), x_t = body.Input("x_t", {4});
  const auto a = body.Const(Floats({.9f, .8f, .7f, .6f}, {4}));
  const auto next = body.Node("Add", {body.Node("Mul", {a, h}), x_t});
  body.Output(next);
  body.Output(body.Node("Identity", {next}));
  const auto out = g.Nodes("Scan", {g.Input("h0", {4}), g.Input("x", {16, 4})}, 2,
                           {{"body", body.graph()}, {"num_scan_inputs", 1}});
  g.Output(out[0]);
  g.Output(out[1]);
  EXPECT_EQ(Labels(ScanModel(g.Model())), "S5=1");
}

TEST(D14, PrefixSumIsARemark) {
  for (const Attributes& attributes :
       {Attributes{}, Attributes{{"reverse", 1}}, Attributes{{"exclusive", 1}}}) {
    GraphBuilder g;
    g.Output(g.Node("CumSum", {g.Input("x", {2, 2}), g.Const(Scalar(1))}, attributes));
    const auto report = ScanModel(g.Model());
    EXPECT_EQ(Labels(report), "none");
    EXPECT_TRUE(HasRemark(report, "prefix-op"));
    EXPECT_FALSE(HasRemark(report, "prefix-axis"));
  }
  GraphBuilder g;
  g.Output(g.Node("CumSum", {g.Input("x", {2, 2}), g.Input("axis", {}, kInt64)}));
  EXPECT_TRUE(HasRemark(ScanModel(g.Model()), "prefix-axis"));
}

TEST(D16, OneScoreMatrixTwoSoftmaxes) {
  GraphBuilder g;
  const auto v = g.Input("v", {4, 100, 64}), l = g.Input("l", {4, 16, 64});
  const auto lv = g.Input("lv", {4, 16, 64}), vv = g.Input("vv", {4, 100, 64});
  const auto scores = g.Node("MatMul", {v, g.Node("Transpose", {l}, {{"perm", List{0, 2, 1}}})});
  g.Output(g.Node("MatMul", {g.Node("Softmax", {scores}, {{"axis", -1}}), lv}));
  const auto turned = g.Node("Transpose", {scores}, {{"perm", List{0, 2, 1}}});
  const auto most = g.Node("ReduceMax", {turned}, {{"axes", List{-1}}});
  const auto clipped = g.Node("Clip", {g.Node("Sub", {turned, most}), g.Const(Floats({-50000}, {})),
                                       g.Const(Floats({50000}, {}))});
  g.Output(g.Node("MatMul", {g.Node("Softmax", {clipped}, {{"axis", -1}}), vv}));
  const auto report = ScanModel(g.Model());
  EXPECT_EQ(Labels(report), "S4=1");
  EXPECT_EQ(First(report, kS4).sites.size(), 3u);  // the scores and both Softmax nodes
}

TEST(D16, PlainAttentionIsNone) {
  for (const bool is_masked : {false, true}) {
    GraphBuilder g;
    const auto q = g.Input("q", {1, 2, 16, 64}), k = g.Input("k", {1, 2, 16, 64}),
               v = g.Input("v", {1, 2, 16, 64});
    auto scores = g.Node("MatMul", {q, g.Node("Transpose", {k}, {{"perm", List{0, 1, 3, 2}}})});
    scores = g.Node("Mul", {scores, g.Const(Floats({.125f}, {}))});
    if (is_masked) scores = g.Node("Add", {scores, g.Input("mask", {1, 1, 16, 16})});
    g.Output(g.Node("MatMul", {g.Node("Softmax", {scores}, {{"axis", -1}}), v}));
    EXPECT_EQ(Labels(ScanModel(g.Model())), "none");
  }
}

TEST(D17, AttentionOperatorInsideABranch) {
  GraphBuilder g, then_branch("t"), else_branch("e");
  const auto q = g.Input("q", {1, 2, 16, 64}), k = g.Input("k", {1, 2, 16, 64}),
             v = g.Input("v", {1, 2, 16, 64});
  then_branch.Output(then_branch.Node("Attention", {q, k, v}));
  else_branch.Output(else_branch.Node("Identity", {q}));
  g.Output(g.Node("If", {g.Input("condition", {}, kBool)},
                  {{"then_branch", then_branch.graph()}, {"else_branch", else_branch.graph()}}));
  EXPECT_EQ(Labels(ScanModel(g.Model(23))), "S1=1");
}

TEST(D17, AttentionOperatorIsKnown) {
  GraphBuilder masked, causal, grouped;
  masked.Output(masked.Node(
      "Attention", {masked.Input("q", {1, 2, 16, 64}), masked.Input("k", {1, 2, 16, 64}),
                    masked.Input("v", {1, 2, 16, 64}), masked.Input("m", {16, 16}, kBool)}));
  causal.Output(causal.Node("Attention",
                            {causal.Input("q", {1, 2, 16, 64}), causal.Input("k", {1, 2, 16, 64}),
                             causal.Input("v", {1, 2, 16, 64})},
                            {{"is_causal", 1}}));
  grouped.Output(grouped.Node(
      "Attention", {grouped.Input("q", {1, 8, 16, 64}), grouped.Input("k", {1, 2, 16, 64}),
                    grouped.Input("v", {1, 2, 16, 64})}));
  for (const GraphBuilder* g : {&masked, &causal, &grouped}) {
    const auto report = ScanModel(g->Model(23));
    EXPECT_EQ(Labels(report), "none");
    EXPECT_EQ(report->answer(), Answer::kLeaveAlone);
  }
}

TEST(D17, WhatIsNotKnownIsNeverClean) {
  GraphBuilder g;
  g.Output(g.Node("AttentionOfTomorrow", {g.Input("q", {1, 2, 16, 64})}));
  const auto report = ScanModel(g.Model(23));
  EXPECT_EQ(report->answer(), Answer::kUnknown);
  EXPECT_NE(report->hidden.at(0).text.find("unknown operator AttentionOfTomorrow at opset 23"),
            std::string::npos);
  const auto newer = ScanModel(g.Model(99));
  EXPECT_EQ(newer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(newer.status().message()).find("opset 99"), std::string::npos);
}

TEST(D19, FourierOperators) {
  GraphBuilder dft, stft;
  dft.Output(dft.Node("DFT", {dft.Input("x", {1, 16, 1})}, {{"axis", 1}, {"onesided", 1}}));
  EXPECT_EQ(Labels(ScanModel(dft.Model(17))), "S3=1");
  stft.Output(stft.Node(
      "STFT", {stft.Input("x", {1, 64, 1}), stft.Const(Scalar(8)), stft.Const(Weights({16}))},
      {{"onesided", 1}}));
  EXPECT_EQ(Labels(ScanModel(stft.Model(17))), "S3=1");
}

TEST(D20, RecurrentOperators) {
  for (const bool has_lengths : {true, false}) {
    GraphBuilder g;
    std::vector<std::string> in = {g.Input("x", {8, 2, 3}), g.Const(Weights({1, 16, 3})),
                                   g.Const(Weights({1, 16, 4}))};
    if (has_lengths) in.insert(in.end(), {"", g.Input("lens", {2}, kInt32)});
    g.Output(g.Nodes("LSTM", in, 3, {{"hidden_size", 4}})[0]);
    const auto report = ScanModel(g.Model());
    EXPECT_EQ(Labels(report), "S5=1");
    EXPECT_EQ(First(report, kS5).note.find("variable length") != std::string::npos, has_lengths);
  }
}

TEST(D20, SequencesOfInputSizes) {
  GraphBuilder g;
  const auto parts =
      g.Node("SplitToSequence", {g.Input("x", {8, 4}), g.Input("sizes", {"n"}, kInt64)});
  g.Output(g.Node("ConcatFromSequence", {parts}, {{"axis", 0}}));
  EXPECT_EQ(Labels(ScanModel(g.Model())), "S1=1 S5=1");
}

TEST(D23, IllegalReshapeIsSaid) {
  GraphBuilder g;
  g.Output(g.Node("Reshape", {g.Input("x", {1, 96, 0}), g.Const(Ints({-1, 96, 0, 0}))}));
  const auto report = ScanModel(g.Model());
  EXPECT_EQ(Labels(report), "none");
  EXPECT_TRUE(HasRemark(report, "reshape-illegal"));
}

TEST(D24, InputValueBecomesAShape) {
  GraphBuilder g;
  const auto masks = g.Input("masks", {1, 1, 64, 64}), size = g.Input("orig_im_size", {2});
  const auto sizes =
      g.Node("Concat", {g.Const(Ints({1, 1})), g.Node("Cast", {size}, {{"to", 7}})}, {{"axis", 0}});
  g.Output(g.Node("Resize", {masks, "", "", sizes}, {{"mode", "linear"}}));
  const auto report = ScanModel(g.Model());
  EXPECT_EQ(Labels(report), "S1=1");
  EXPECT_NE(First(report, kS1).note.find("orig_im_size"), std::string::npos);
}

}  // namespace
}  // namespace mk::scan::testing
