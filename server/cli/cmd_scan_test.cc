// The mk program scanning files: what it prints, where, and how it ends.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "verify/scan/testing/graph_builder.h"

namespace mk::cli {
namespace {

using scan::testing::GraphBuilder;

struct Ended {
  int code = -1;
  std::string out, err;
};

class MkScan : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "/mkscanXXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
    return folder_ + "/" + name;
  }
  static std::string Read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  // `arguments` holds no character that a shell would mind.
  Ended Run(const std::string& arguments) const {
    const int status = std::system(
        ("server/cli/mk " + arguments + " >" + folder_ + "/out 2>" + folder_ + "/err").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, Read(folder_ + "/out"),
            Read(folder_ + "/err")};
  }
  std::string Clean() const {
    GraphBuilder g;
    g.Output(g.Node("Relu", {g.Input("x", {4})}));
    return Write("clean.onnx", g.Model().SerializeAsString());
  }
  std::string Candidate() const {
    GraphBuilder g;
    const auto x = g.Input("x", {4, 8});
    g.Output(g.Node("GatherND", {x, g.Node("Transpose", {g.Node("NonZero", {x})})}));
    return Write("candidate.onnx", g.Model().SerializeAsString());
  }
  std::string folder_;
};

TEST_F(MkScan, SaysWhatAModelHitsAndEndsWithZero) {
  const Ended clean = Run("scan " + Clean());
  EXPECT_EQ(clean.code, 0) << clean.err;
  EXPECT_NE(clean.out.find("leave alone, 0 of 5"), std::string::npos) << clean.out;
  const Ended candidate = Run("scan " + Candidate());
  EXPECT_EQ(candidate.code, 0);
  EXPECT_NE(candidate.out.find("candidate, 2 of 5 blind spots (S1 S2)"), std::string::npos)
      << candidate.out;
  EXPECT_NE(candidate.out.find("NonZero"), std::string::npos);
}

TEST_F(MkScan, SeveralModelsGiveATable) {
  const Ended table = Run("scan " + Clean() + " " + Candidate() + " --together");
  EXPECT_EQ(table.code, 0);
  EXPECT_EQ(table.out.find("MODEL"), 0u);
  EXPECT_NE(table.out.find("(together)"), std::string::npos) << table.out;
}

TEST_F(MkScan, JsonAndPage) {
  const std::string page = folder_ + "/scan.html";
  const Ended ended = Run("scan --json --html " + page + " " + Candidate());
  EXPECT_EQ(ended.code, 0) << ended.err;
  const auto report = nlohmann::json::parse(ended.out);
  EXPECT_EQ(report["answer"], "candidate");
  EXPECT_EQ(report["spots"][0]["structures"][0]["sites"][0]["op"], "NonZero");
  const std::string text = Read(page);
  EXPECT_EQ(text.find("<!doctype html>"), 0u);
  EXPECT_EQ(text.find("http"), std::string::npos) << "the page must need nothing beside it";
  EXPECT_EQ(Run("scan --html /nowhere/x.html " + Clean()).code, 2);
}

TEST_F(MkScan, ExitCodesAreThoseOfTheManual) {
  EXPECT_EQ(Run("scan " + folder_ + "/none.onnx").code, 2);
  EXPECT_EQ(Run("scan " + Write("text.onnx", "not a model")).code, 2);
  EXPECT_EQ(Run("scan").code, 2);
  EXPECT_EQ(Run("scan --trt 9.9 " + Clean()).code, 2);
  const Ended mixed = Run("scan " + folder_ + "/none.onnx " + Candidate());
  EXPECT_EQ(mixed.code, 2);
  EXPECT_NE(mixed.out.find("candidate"), std::string::npos)
      << "the others are answered all the same";
  GraphBuilder g;
  onnx::TensorProto w;
  w.set_data_type(1);
  w.add_dims(4);
  w.set_data_location(1);
  auto* location = w.add_external_data();
  location->set_key("location");
  location->set_value("../w.bin");
  g.Output(g.Node("Add", {g.Input("x", {4}), g.Const("W", w)}));
  const Ended outside = Run("scan " + Write("outside.onnx", g.Model().SerializeAsString()));
  EXPECT_EQ(outside.code, 1);
  EXPECT_NE(outside.err.find("'W' refused"), std::string::npos) << outside.err;
  EXPECT_NE(outside.out.find("leave alone"), std::string::npos);
}

TEST_F(MkScan, HelpTeaches) {
  const Ended help = Run("scan --help");
  EXPECT_EQ(help.code, 0);
  for (const char* word : {"S1", "S5", "candidate", "--html", "--trt", "--together", "Exit code"})
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace mk::cli
