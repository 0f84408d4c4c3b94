// Files: what is read, what is refused, and what no bytes may bring about.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "verify/scan/testing/graph_builder.h"

namespace mk::scan::testing {
namespace {

class ScanFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/scanXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    folder_ = root_ + "/model";
    ASSERT_EQ(mkdir(folder_.c_str(), 0700), 0);
    Write(root_ + "/outside.bin", std::string(16, 'x'));
  }
  static void Write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  // A model with one weight of 4 floats at `location`, and a NonZero.
  absl::StatusOr<Report> Scan(const std::string& location, const std::string& offset = "",
                              const std::string& length = "") {
    GraphBuilder g;
    onnx::TensorProto w;
    w.set_data_type(kFloat);
    w.add_dims(4);
    w.set_data_location(1);
    const auto add = [&](const char* key, const std::string& value) {
      auto* entry = w.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    };
    add("location", location);
    if (!offset.empty()) add("offset", offset);
    if (!length.empty()) add("length", length);
    g.Output(g.Node("NonZero", {g.Node("Add", {g.Input("x", {4}), g.Const("W", w)})}));
    const std::string path = folder_ + "/m.onnx";
    Write(path, g.Model().SerializeAsString());
    return ScanFile(path, {});
  }
  static void ExpectRefused(const absl::StatusOr<Report>& report, const std::string& code) {
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(Labels(report), "S1=1");  // the structures are counted all the same
    ASSERT_EQ(report->problems.size(), 1u);
    EXPECT_EQ(report->problems[0].code, code) << report->problems[0].text;
    EXPECT_EQ(report->problems[0].node, "W");
  }
  std::string root_, folder_;
};

TEST_F(ScanFiles, ExternalDataInTheFolderIsCounted) {
  Write(folder_ + "/w.bin", std::string(20, 'x'));
  const auto report = Scan("w.bin", "4", "16");
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->problems.empty());
  EXPECT_EQ(report->external_bytes, 16u);
}

TEST_F(ScanFiles, PathsOutOfTheFolderAreRefused) {
  ExpectRefused(Scan("../../../etc/hostname"), "external-path");
  ExpectRefused(Scan("sub/../../x"), "external-path");
  ExpectRefused(Scan("/etc/hostname"), "external-path");
  ExpectRefused(Scan(""), "external-path");
  ExpectRefused(Scan("../outside.bin"), "external-path");
  ExpectRefused(Scan("sub/../w.bin"), "external-path");
  ExpectRefused(Scan("."), "external-path");
}

TEST_F(ScanFiles, LinksAreNotFollowed) {
  ASSERT_EQ(symlink("../outside.bin", (folder_ + "/link.bin").c_str()), 0);
  ExpectRefused(Scan("link.bin"), "external-link");
  ASSERT_EQ(symlink("..", (folder_ + "/up").c_str()), 0);
  ExpectRefused(Scan("up/outside.bin"), "external-link");
  ASSERT_EQ(link((root_ + "/outside.bin").c_str(), (folder_ + "/hard.bin").c_str()), 0);
  ExpectRefused(Scan("hard.bin"), "external-link");
}

TEST_F(ScanFiles, MissingAndMisfittingDataIsRefused) {
  ExpectRefused(Scan("w.bin"), "external-missing");
  ExpectRefused(Scan("sub/w.bin"), "external-missing");
  Write(folder_ + "/w.bin", std::string(16, 'x'));
  ExpectRefused(Scan("w.bin", "1", "16"), "external-range");
  ExpectRefused(Scan("w.bin", "-1", "16"), "external-range");
  ExpectRefused(Scan("w.bin", "0", "9223372036854775808"), "external-range");
  ExpectRefused(Scan("w.bin", "9223372036854775807", "9223372036854775807"), "external-range");
  ExpectRefused(Scan("w.bin", "zero", "16"), "external-range");
  ExpectRefused(Scan("w.bin", "0", "12"), "external-size");
  ASSERT_EQ(mkdir((folder_ + "/d.bin").c_str(), 0700), 0);
  ExpectRefused(Scan("d.bin"), "external-path");
}

TEST_F(ScanFiles, WhatIsNoModelIsRefused) {
  EXPECT_EQ(ScanFile(folder_ + "/none.onnx", {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ScanFile(folder_, {}).status().code(), absl::StatusCode::kInvalidArgument);
  for (const std::string& bytes :
       {std::string(), std::string("hello, this is no model"), std::string(100, '\0'),
        std::string(100, '\xff'), std::string("\x3a\xff\xff\xff\xff\x0f", 6)}) {
    Write(folder_ + "/bad.onnx", bytes);
    EXPECT_EQ(ScanFile(folder_ + "/bad.onnx", {}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(ScanFiles, LargerThanProtobufIsRefusedByThatRule) {
  const std::string path = folder_ + "/large.onnx";
  Write(path, "x");
  ASSERT_EQ(truncate(path.c_str(), (int64_t{1} << 31)), 0);  // sparse
  const auto report = ScanFile(path, {});
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(report.status().message()).find("external data"), std::string::npos);
}

int64_t PeakKilobytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST_F(ScanFiles, TensorBytesAreSkippedNotRead) {
  GraphBuilder g;
  const auto x = g.Input("x", {1, 1024});
  const std::string start = g.Model().SerializeAsString();
  g.Output(g.Node("NonZero", {g.Node("MatMul", {x, "big"})}));
  // The weight's bytes are a hole in the file: 1.5 GB that would be seen in memory if they were
  // read.
  const int64_t hole = 1'500'000'000;
  onnx::ModelProto model = g.Model();
  onnx::TensorProto* big = model.mutable_graph()->add_initializer();
  big->set_name("big");
  big->set_data_type(kFloat);
  big->add_dims(1024);
  big->add_dims(hole / 4096);
  const auto varint = [](uint64_t value) {
    std::string out;
    for (; value >= 128; value >>= 7) out += static_cast<char>((value & 127) | 128);
    return out + static_cast<char>(value);
  };
  const std::string tensor = big->SerializeAsString();
  model.mutable_graph()->mutable_initializer()->RemoveLast();
  const std::string raw_head = "\x4a" + varint(hole);
  const std::string tensor_head = "\x2a" + varint(tensor.size() + raw_head.size() + hole);
  const std::string graph = model.graph().SerializeAsString();
  const std::string graph_head =
      "\x3a" + varint(tensor_head.size() + tensor.size() + raw_head.size() + hole + graph.size());
  model.clear_graph();
  const std::string path = folder_ + "/hole.onnx";
  {
    std::ofstream out(path, std::ios::binary);
    out << model.SerializeAsString() << graph_head << tensor_head << tensor << raw_head;
    out.seekp(hole, std::ios::cur);
    out << graph;
  }
  const int64_t before = PeakKilobytes();
  const auto report = ScanFile(path, {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(Labels(report), "S1=1");
  EXPECT_GE(report->tensor_bytes, static_cast<uint64_t>(hole));
  EXPECT_LT(PeakKilobytes() - before, 50'000);
}

// ---- hostile bytes ----

TEST(Hostile, EveryCutOfAModelIsAnAnswer) {
  GraphBuilder body("b"), g;
  const auto h = body.Input("h", {4}), x = body.Input("x", {4});
  body.Output(body.Node("Add", {h, x}));
  body.Output(body.Node("Identity", {x}));
  g.Output(g.Nodes("Scan", {g.Input("h0", {4}), g.Input("xs", {3, 4})}, 2,
                   {{"body", body.graph()}, {"num_scan_inputs", 1}})[0]);
  const std::string bytes = g.Model().SerializeAsString();
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto cut = ScanString(bytes.substr(0, i));
    if (!cut.ok()) {
      EXPECT_EQ(cut.status().code(), absl::StatusCode::kInvalidArgument);
    }
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string other = bytes;
      other[i] = static_cast<char>(other[i] ^ flip);
      ScanString(other).status().IgnoreError();
    }
  }
}

TEST(Hostile, NestingIsBounded) {
  onnx::GraphProto graph = GraphBuilder().graph();
  for (int i = 0; i < 40; ++i) {
    GraphBuilder outer("n" + std::to_string(i));
    outer.Nodes("Outer", {}, 1, {{"g", graph}}, "x");
    graph = outer.graph();
  }
  onnx::ModelProto model;
  model.add_opset_import()->set_version(17);
  *model.mutable_graph() = graph;
  const auto report = ScanModel(model);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(report.status().message()).find("nested"), std::string::npos);
}

TEST(Hostile, CountsAndNamesAreBounded) {
  GraphBuilder g;
  g.Node("Relu", {std::string(100'000, 'n')});
  EXPECT_EQ(ScanModel(g.Model()).status().code(), absl::StatusCode::kInvalidArgument);
  ScanOptions few;
  few.lower.nodes = 10;
  GraphBuilder many;
  auto x = many.Input("x", {1});
  for (int i = 0; i < 20; ++i) x = many.Node("Relu", {x});
  EXPECT_EQ(ScanModel(many.Model(), few).status().code(), absl::StatusCode::kInvalidArgument);
  few = {};
  few.read.items = 50;
  EXPECT_EQ(ScanModel(many.Model(), few).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Hostile, HugeShapesAndNumbersAreHarmless) {
  GraphBuilder g;
  const auto huge = g.Const(Ints({INT64_MAX, INT64_MAX, -5, INT64_MIN}));
  const auto x = g.Input("x", {1, 2, 3, 4});
  g.Output(g.Node("ConstantOfShape", {huge}));
  g.Output(g.Node("Expand", {x, huge}));
  g.Output(g.Node("Reshape", {x, huge}));
  g.Output(g.Node("Tile", {x, huge}));
  g.Output(g.Node("Pad", {x, g.Const(Ints({INT64_MAX, INT64_MIN, 0, 0, INT64_MAX, 1, 2, 3}))}));
  g.Output(g.Node(
      "Slice", {x, huge, huge, g.Const(Ints({0, 1, 2, 3})), g.Const(Ints({INT64_MIN, -1, 1, 0}))}));
  g.Output(g.Node("Range", {g.Const(Scalar(0)), g.Const(Scalar(INT64_MAX)), g.Const(Scalar(1))}));
  g.Output(g.Node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 0, INT64_MAX, -1}}}));
  g.Output(g.Node("Gather", {huge, huge}, {{"axis", INT64_MIN}}));
  g.Output(g.Node("Conv", {x, g.Const(Weights({2, 2, 1, 1}))},
                  {{"kernel_shape", std::vector<int64_t>{INT64_MAX, 1}},
                   {"strides", std::vector<int64_t>{INT64_MIN, 0}},
                   {"dilations", std::vector<int64_t>{INT64_MAX, 1}},
                   {"pads", std::vector<int64_t>{INT64_MAX, INT64_MAX, 1, 1}}}));
  g.Output(g.Nodes("Split", {x, huge}, 4, {{"axis", 1}})[0]);
  EXPECT_TRUE(ScanModel(g.Model()).ok());
}

TEST(Output, TakesAnyName) {
  GraphBuilder g;
  g.Output(g.Nodes("Bad<script>\xff\x01", {g.Input("<b>\xfe", {4})}, 1, {}, "x\xff")[0]);
  auto report = ScanModel(g.Model());
  ASSERT_TRUE(report.ok());
  report->file = "a<b>.onnx";
  EXPECT_EQ(Html({*report, *report}).find("<script>"), std::string::npos);
  EXPECT_EQ(Html({*report}).find("<b>."), std::string::npos);
  const auto parsed = nlohmann::json::parse(Json({*report}));
  EXPECT_EQ(parsed["answer"], "unknown");
  EXPECT_NE(Text(*report, true).find("unknown"), std::string::npos);
}

TEST(Trt, ListsWhatTheDocumentSays) {
  GraphBuilder g;
  const auto x = g.Input("x", {1, 16, 1});
  g.Output(g.Node("DFT", {x}));
  g.Output(g.Node("HannWindow", {g.Const(Scalar(16))}));
  g.Output(g.Node("CumSum", {x, g.Const(Scalar(1))}));
  g.Output(g.Node("CumSum", {x, g.Input("axis", {}, kInt64)}));
  ScanOptions options;
  options.trt_version = "10.3";
  const auto report = ScanModel(g.Model(), options);
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->trt.size(), 2u);
  EXPECT_FALSE(report->trt[0].supported);
  EXPECT_EQ(report->trt[0].op, "DFT");
  EXPECT_TRUE(report->trt[1].supported);
  EXPECT_EQ(report->trt[1].op, "CumSum");
}

}  // namespace
}  // namespace mk::scan::testing
