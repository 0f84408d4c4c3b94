// The mk program scanning files: what it prints, where, and how it ends.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "server/cli/front.h"
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
    // Not below Bazel's folder for tests: without a sandbox the whole tree stands above that.
    std::string folder = "/tmp/mkscanXXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
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
  Ended Run(const std::string& arguments, const std::string& mk = "server/cli/mk") const {
    const int status =
        std::system((mk + " " + arguments + " >" + folder_ + "/out 2>" + folder_ + "/err").c_str());
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

// A checkout with a stand-in for the front, whose body is `script`, and a copy of mk in it.
class MkScanFront : public MkScan {
 protected:
  std::string MkWithFront(const std::string& script) const {
    const std::string tree = folder_ + "/tree";
    std::filesystem::create_directories(tree + "/verify/front");
    std::filesystem::create_directories(tree + "/bin");
    std::ofstream(tree + "/verify/front/main.py") << "import json, os, shutil, sys\n" << script;
    std::filesystem::copy_file("server/cli/mk", tree + "/bin/mk",
                               std::filesystem::copy_options::overwrite_existing);
    return tree + "/bin/mk";
  }
  // Exports the candidate, with `more` in the answer.
  std::string Exporting(const std::string& more = "") const {
    return MkWithFront(
        "out = sys.argv[sys.argv.index('--out') + 1]\n"
        "shutil.copy('" +
        Candidate() +
        "', out + '/model.onnx')\n"
        "print(json.dumps({'exported': {'onnx': out + '/model.onnx', 'kind': 'torch.export "
        "program',\n 'exporter': 'a stand-in', 'inputs': 'x', 'notes': [' '.join(sys.argv[1:])]" +
        more + "}}))\n");
  }
};

TEST_F(MkScanFront, ScansWhatTheFrontExported) {
  const std::string source = Write("m.pt2", "a program");
  const Ended text = Run("scan " + source, Exporting());
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.out.find(source + ": candidate, 2 of 5 blind spots (S1 S2)"), 0u) << text.out;
  EXPECT_NE(text.out.find("torch.export program, exported by a stand-in, for x"), std::string::npos)
      << text.out;
  const std::string keep = folder_ + "/kept", page = folder_ + "/scan.html";
  std::filesystem::create_directory(keep);
  const Ended json = Run("scan --json --layers 2 --exporter new --shapes a=1x3 --keep-onnx " +
                             keep + " --export-memory 2 --html " + page + " " + source,
                         Exporting());
  EXPECT_EQ(json.code, 0) << json.err;
  const auto report = nlohmann::json::parse(json.out);
  EXPECT_EQ(report["file"], source);
  EXPECT_EQ(report["origin"]["exporter"], "a stand-in");
  EXPECT_EQ(report["origin"]["notes"][0],
            "--out " + keep + " --exporter new --layers 2 --shapes a=1x3 --seconds 900.000000 " +
                "--memory 2.000000 -- " + source);
  EXPECT_TRUE(std::filesystem::exists(keep + "/model.onnx"));
  EXPECT_NE(Read(page).find("exported by a stand-in"), std::string::npos);
}

TEST_F(MkScanFront, LeavesNoTemporaryFolder) {
  std::filesystem::create_directory(folder_ + "/tmp");
  const std::string mk = "TMPDIR=" + folder_ + "/tmp " + Exporting();
  EXPECT_EQ(Run("scan " + Write("m.pt2", ""), mk).code, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/tmp"));
  EXPECT_EQ(Run("scan m.pt2", "TMPDIR=/nowhere " + Exporting()).code, 2);
}

TEST_F(MkScanFront, WhatAnExportHidesMakesTheAnswerUnknown) {
  GraphBuilder g;
  g.Output(g.Node("Relu", {g.Input("x", {4})}));
  const std::string clean = Write("clean.onnx", g.Model().SerializeAsString());
  const std::string mk = MkWithFront("print(json.dumps({'exported': {'onnx': '" + clean +
                                     "', 'kind': 'k', 'exporter': 'e', 'hidden': [{'code': 'c', "
                                     "'text': 'kept one course'}]}}))\n");
  const Ended ended = Run("scan " + Write("config.json", "{}"), mk);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("unknown, 0 of 5"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("kept one course"), std::string::npos) << ended.out;
}

TEST_F(MkScanFront, SaysWhyNothingWasExported) {
  const std::string refused =
      "print(json.dumps({'refused': {'kind': 'data-dependent', 'stage': 'torch.export', 'text': "
      "'Could not guard', 'hint': 'blind spot S1'}, 'understood': U}))\n";
  const auto with = [&](const char* understood) {
    std::string script = refused;
    return MkWithFront(script.replace(script.find("U}"), 1, understood));
  };
  const std::string source = Write("m.pt2", "");
  const Ended no = Run("scan " + source, with("True"));
  EXPECT_EQ(no.code, 1);
  EXPECT_NE(no.err.find("mk: NOT_EXPORTED: " + source +
                        ": not exported, at torch.export: data-dependent: Could not guard"),
            std::string::npos)
      << no.err;
  EXPECT_NE(no.err.find("blind spot S1"), std::string::npos);
  EXPECT_EQ(Run("scan " + source, with("False")).code, 2);
  const Ended mixed = Run("scan " + source + " " + Candidate(), with("True"));
  EXPECT_EQ(mixed.code, 1);
  EXPECT_NE(mixed.out.find("candidate"), std::string::npos) << "the others are answered";
  EXPECT_EQ(Run("scan --keep-onnx " + folder_ + " " + source + " " + source, with("True")).code, 2);
}

TEST_F(MkScanFront, PythonThatIsNotThereOrSaysNothing) {
  const std::string source = Write("m.pt2", "");
  const std::string mk = MkWithFront("sys.exit(0)\n");
  const Ended none = Run("scan --python /nowhere/python " + source, mk);
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("/nowhere/python cannot be started"), std::string::npos) << none.err;
  EXPECT_NE(none.err.find("torch, onnx and onnxscript"), std::string::npos) << none.err;
  EXPECT_EQ(Run("scan --python /bin/true " + source, mk).code, 2);
  EXPECT_NE(Run("scan " + source, mk).err.find("gave no answer"), std::string::npos);
  const Ended killed = Run("scan " + source, MkWithFront("os.kill(os.getpid(), 9)\n"));
  EXPECT_EQ(killed.code, 1);
  EXPECT_NE(killed.err.find("signal 9"), std::string::npos) << killed.err;
  EXPECT_EQ(Run("scan " + source, MkWithFront("sys.exit(130)\n")).code, 1);
}

TEST_F(MkScanFront, NeverRunsAFrontOfTheCurrentFolder) {
  const std::string tree = folder_ + "/stranger";
  std::filesystem::create_directories(tree + "/verify/front");
  std::ofstream(tree + "/verify/front/main.py") << "open('" + folder_ + "/ran', 'w')\n";
  std::filesystem::copy_file("server/cli/mk", folder_ + "/mk");
  std::ofstream(folder_ + "/DO_NOT_BUILD_HERE") << "/nowhere";  // a test itself runs in one
  const Ended ended = Run("scan " + Write("m.pt2", ""), "cd " + tree + " && " + folder_ + "/mk");
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("belongs to a checkout"), std::string::npos) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/ran"));
}

TEST_F(MkScanFront, FindsTheCheckoutOfAnOutputBase) {
  const std::string mk = MkWithFront("print(json.dumps({'refused': {'text': 'found'}}))\n");
  std::filesystem::create_directories(folder_ + "/base/bin");
  std::filesystem::rename(mk, folder_ + "/base/bin/mk");
  std::ofstream(folder_ + "/base/DO_NOT_BUILD_HERE") << folder_ << "/tree";
  const Ended ended = Run("scan " + Write("m.pt2", ""), folder_ + "/base/bin/mk");
  EXPECT_NE(ended.err.find("found"), std::string::npos) << ended.err;
}

TEST(ParseFrontAnswer, AnyTextEndsInAMessage) {
  for (const char* text : {"", "x", "[]", "{}", "{\"exported\": 1}", "{\"exported\": {}}",
                           "{\"exported\": {\"onnx\": 1, \"kind\": []}}", "{\"refused\": {}}",
                           "{\"refused\": {\"text\": 3}, \"understood\": \"yes\"}"}) {
    const FrontAnswer answer = ParseFrontAnswer(text, "python3");
    EXPECT_EQ(answer.code, kUsage) << text;
    EXPECT_FALSE(answer.message.empty()) << text;
  }
}

TEST_F(MkScan, HelpTeaches) {
  const Ended help = Run("scan --help");
  EXPECT_EQ(help.code, 0);
  for (const char* word : {"S1", "S5", "candidate", "--html", "--trt", "--together", "Exit code",
                           "--python", ".pt2", "config.json", "--keep-onnx"})
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace mk::cli
