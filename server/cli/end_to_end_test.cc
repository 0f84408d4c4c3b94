// The mk program, run as a process against a stand-in for the daemon: what it prints, what it
// sends, and how it ends, also where the daemon refuses, is full, is broken or is not there.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "server/cli/npy.h"
#include "server/cli/tensors.h"
#include "server/cli/testing/fake_daemon.h"

namespace mk::cli {
namespace {

using grpc::Status;
using grpc::StatusCode;
using nlohmann::json;

constexpr char kPhoto[] = "photo:2";  // the stand-in classifies it as class 2
constexpr char kNoPhoto[] = "text";

std::string Contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Ended {
  int code = -1;  // 128 + signal where one ended it
  std::string out;
  std::string err;
};

class Mk : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "/mkXXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr) << std::strerror(errno);
    folder_ = folder;
    // A socket's path may have 107 characters, which the test's own folder can pass.
    std::string sockets = "/tmp/mkXXXXXX";
    ASSERT_NE(mkdtemp(sockets.data()), nullptr) << std::strerror(errno);
    sockets_ = sockets;
    Serve("127.0.0.1:0");
  }
  void TearDown() override {
    if (server_ != nullptr) server_->Shutdown();
    unlink((sockets_ + "/daemon.sock").c_str());
    rmdir(sockets_.c_str());
  }

  void Serve(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&daemon_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr) << address;
    address_ = address == "127.0.0.1:0" ? "127.0.0.1:" + std::to_string(port_) : address;
  }

  // Runs the program with `arguments` and nothing in its environment but `environment`.
  Ended RunBare(const std::vector<std::string>& arguments,
                const std::vector<std::string>& environment) {
    const std::string out = folder_ + "/stdout", err = folder_ + "/stderr";
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&files, 1, out.c_str(), kWrite, 0600);
    posix_spawn_file_actions_addopen(&files, 2, err.c_str(), kWrite, 0600);
    std::vector<std::string> words = {"server/cli/mk"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<std::string> variables = environment;
    pid_t pid = 0;
    const int spawned = posix_spawn(&pid, words[0].c_str(), &files, nullptr, Pointers(words).data(),
                                    Pointers(variables).data());
    posix_spawn_file_actions_destroy(&files);
    EXPECT_EQ(spawned, 0) << std::strerror(spawned);
    if (spawned != 0) return {};
    int status = 0;
    waitpid(pid, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), Contents(out),
            Contents(err)};
  }
  Ended Run(const std::vector<std::string>& arguments) {
    return RunBare(arguments, {"MK_ADDRESS=" + address_});
  }

  std::string File(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  // An address where nobody listens: that of a server that has just gone.
  std::string NobodysAddress() {
    server_->Shutdown();
    server_.reset();
    return address_;
  }

  FakeDaemon daemon_;
  std::string folder_;   // for files
  std::string sockets_;  // for a Unix socket
  std::string address_;

 private:
  static std::vector<char*> Pointers(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

bool Has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

TEST_F(Mk, StatusSaysReadyAndEndsWithZero) {
  const Ended ended = Run({"status"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "stand-in 7.8.9 at " + address_ +
                           ": ready, 2 of 3 pack versions "
                           "ready, device cpu: pretended\n");
  EXPECT_EQ(ended.err, "");
}

TEST_F(Mk, StatusEndsWithOneWhereTheDaemonIsNotReady) {
  daemon_.ready = false;
  const Ended ended = Run({"status", "--json"});
  EXPECT_EQ(ended.code, 1);
  const json status = json::parse(ended.out);
  EXPECT_EQ(status["ready"], false);
  EXPECT_EQ(status["packs_ready"], 2);
  EXPECT_EQ(status["packs_known"], 3);
  EXPECT_EQ(status["version"], "7.8.9");
  EXPECT_EQ(status["device"], "cpu: pretended");
}

TEST_F(Mk, EveryCallEndsWithThreeWhereNobodyListens) {
  const std::string address = NobodysAddress();
  for (const std::vector<std::string>& command : {std::vector<std::string>{"status"},
                                                  {"packs"},
                                                  {"load", "echo"},
                                                  {"unload", "echo"},
                                                  {"infer", "echo"},
                                                  {"bench", "echo", "--shape", "INPUT0=4"}}) {
    const Ended ended = Run(command);
    EXPECT_EQ(ended.code, 3) << command[0] << ": " << ended.err;
    EXPECT_TRUE(Has(ended.err, "No daemon answers at " + address)) << ended.err;
    EXPECT_EQ(ended.out, "") << command[0];
  }
  const Ended ended = Run({"status", "--address", "unix:" + sockets_ + "/absent.sock"});
  EXPECT_EQ(ended.code, 3) << ended.err;
}

TEST_F(Mk, AddressFlagWinsOverTheEnvironment) {
  const Ended ended = RunBare({"status", "--address", address_}, {"MK_ADDRESS=127.0.0.1:1"});
  EXPECT_EQ(ended.code, 0) << ended.err;
}

TEST_F(Mk, UnixSocketsAreReached) {
  Serve("unix:" + sockets_ + "/daemon.sock");
  const Ended ended = Run({"status"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(Has(ended.out, "unix:" + sockets_)) << ended.out;
}

TEST_F(Mk, PacksShowsStatesStatisticsAndReasons) {
  const Ended ended = Run({"packs"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  std::istringstream lines(ended.out);
  std::string head, echo, torn;
  std::getline(lines, head);
  std::getline(lines, echo);
  std::getline(lines, torn);
  EXPECT_EQ(head.find("STATE"), torn.find("UNAVAILABLE")) << ended.out;
  for (const char* part : {"echo", "READY", "4", "1", "2.00 ms", "1.0 KiB", "2.0 KiB"}) {
    EXPECT_TRUE(Has(echo, part)) << part << " in " << echo;
  }
  EXPECT_TRUE(Has(torn, "manifest: line 4: unknown field")) << torn;
  EXPECT_FALSE(Has(ended.out, "\033")) << "colours where the output is no terminal";
}

TEST_F(Mk, PacksAsJsonCarryTheSame) {
  const Ended ended = Run({"packs", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json packs = json::parse(ended.out);
  ASSERT_EQ(packs.size(), 3);
  EXPECT_EQ(packs[0]["requests_ok"], 4);
  EXPECT_EQ(packs[0]["requests_failed"], 1);
  EXPECT_DOUBLE_EQ(packs[0]["mean_seconds"], 0.002);
  EXPECT_EQ(packs[0]["weights_bytes"], 1024);
  EXPECT_EQ(packs[1]["state"], "UNAVAILABLE");
  EXPECT_FALSE(packs[1].contains("requests_ok")) << "numbers of a pack that does not serve";
}

TEST_F(Mk, PacksReportsStatisticsThatFail) {
  daemon_.statistics_answer = {StatusCode::INTERNAL, "out of numbers"};
  const Ended ended = Run({"packs"});
  EXPECT_EQ(ended.code, 6);
  EXPECT_TRUE(Has(ended.err, "mk: INTERNAL: out of numbers")) << ended.err;
}

TEST_F(Mk, LoadSendsTheVersionPolicy) {
  const Ended ended = Run({"load", "echo", "--version-policy", "1,2"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(Has(ended.out, "echo: loaded in ")) << ended.out;
  EXPECT_EQ(daemon_.last_load().model_name(), "echo");
  EXPECT_EQ(daemon_.last_load().parameters().at("version_policy").string_param(), "1,2");
  EXPECT_EQ(Run({"load", "echo"}).code, 0);
  EXPECT_TRUE(daemon_.last_load().parameters().empty());
}

TEST_F(Mk, LoadPassesOnWhyAPackWasRefused) {
  daemon_.load_answer = {StatusCode::INVALID_ARGUMENT, "load failed for model 'echo': bad digest"};
  const Ended ended = Run({"load", "echo"});
  EXPECT_EQ(ended.code, 4);
  EXPECT_TRUE(Has(ended.err, "mk: INVALID_ARGUMENT: load failed for model 'echo': bad digest"));
  daemon_.load_answer = {StatusCode::PERMISSION_DENIED, "not from there"};
  const Ended denied = Run({"load", "echo"});
  EXPECT_EQ(denied.code, 4);
  EXPECT_TRUE(Has(denied.err, "daemon's own machine")) << denied.err;
}

TEST_F(Mk, ErrorsAreJsonForScriptsAndLeaveStandardOutputEmpty) {
  daemon_.load_answer = {StatusCode::INVALID_ARGUMENT, "bad\xff digest"};
  const Ended load = Run({"load", "echo", "--json"});
  EXPECT_EQ(load.code, 4);
  EXPECT_EQ(load.out, "");
  const json error = json::parse(load.err)["error"];
  EXPECT_EQ(error["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(error["exit_code"], 4);
  EXPECT_TRUE(Has(error["message"], "digest"));
  EXPECT_TRUE(Has(json::parse(Run({"load", "ecoh", "--json"}).err)["error"]["hint"], "'echo'"));
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"stauts", "--json"},
                                                {"--json", "status", "--no-such-flag"},
                                                {"infer", "echo", "--json"}}) {
    const Ended ended = Run(wrong);
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_EQ(json::parse(ended.err)["error"]["code"], "USAGE") << ended.err;
  }
}

TEST_F(Mk, TextOfTheDaemonCannotSteerTheTerminal) {
  daemon_.load_answer = {StatusCode::INVALID_ARGUMENT, "red \x1b[31m and a bell \a, but caf\u00e9"};
  const Ended ended = Run({"load", "echo"});
  EXPECT_TRUE(Has(ended.err, "red \\x1b[31m and a bell \\x07, but caf\u00e9")) << ended.err;
}

TEST_F(Mk, VersionAndAnAddressThatNoSocketCanHave) {
  EXPECT_EQ(Run({"--version"}).out.rfind("mk 0.", 0), 0u);
  const std::string address = "unix:/" + std::string(107, 'x');
  for (const Ended& ended :
       {Run({"status", "--address", address}), RunBare({"status"}, {"MK_ADDRESS=" + address})}) {
    EXPECT_EQ(ended.code, 2);
    EXPECT_TRUE(Has(ended.err, "108 bytes; at most 107")) << ended.err;
  }
}

TEST_F(Mk, MisspeltPacksAndCommandsGetASuggestion) {
  const Ended load = Run({"load", "ecoh"});
  EXPECT_EQ(load.code, 4);
  EXPECT_TRUE(Has(load.err, "Did you mean 'echo'?")) << load.err;
  const Ended infer = Run({"infer", "vmamba-pic"});
  EXPECT_EQ(infer.code, 4);
  EXPECT_TRUE(Has(infer.err, "Did you mean 'vmamba-pico'?")) << infer.err;
  const Ended command = Run({"stauts"});
  EXPECT_EQ(command.code, 2);
  EXPECT_TRUE(Has(command.err, "Did you mean 'mk status'?")) << command.err;
  EXPECT_FALSE(Has(Run({"load", "zzzzzzzz"}).err, "Did you mean"));
}

TEST_F(Mk, UnloadNamesThePack) {
  const Ended ended = Run({"unload", "vmamba-pico", "--json"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(json::parse(ended.out)["done"], "unloaded");
  EXPECT_EQ(daemon_.last_unload(), "vmamba-pico");
}

TEST_F(Mk, InferSendsAnImageAsOneBytesElementAndNamesItsClass) {
  const std::string photo = File("boot.png", kPhoto);
  const Ended ended = Run({"infer", "vmamba-pico", photo, "--top", "2"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  // Softmax of (0, 1, 3).
  EXPECT_TRUE(Has(ended.out, photo + ":  Ankle boot 84.4 %  Trouser 11.4 %  (")) << ended.out;
  EXPECT_FALSE(Has(ended.out, "Shirt")) << "more classes than --top asks for";
  const auto sent = daemon_.last_infer();
  ASSERT_EQ(sent.inputs_size(), 1);
  EXPECT_EQ(sent.inputs(0).name(), "encoded_image");
  EXPECT_EQ(sent.inputs(0).datatype(), "BYTES");
  EXPECT_EQ(sent.raw_input_contents(0), std::string("\7\0\0\0", 4) + kPhoto);
}

TEST_F(Mk, InferWithoutLabelsNumbersTheClasses) {
  daemon_.labels = false;
  const Ended ended = Run({"infer", "vmamba-pico", File("boot.png", kPhoto)});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(Has(ended.out, "class 2 84.4 %")) << ended.out;
}

TEST_F(Mk, OneBadImageDoesNotKeepTheOthersFromBeingAnswered) {
  const std::string bad = File("notes.txt", kNoPhoto), good = File("boot.png", kPhoto);
  const Ended ended = Run({"infer", "vmamba-pico", bad, good, "--json"});
  EXPECT_EQ(ended.code, 4);
  EXPECT_TRUE(Has(ended.err, bad)) << ended.err;
  EXPECT_TRUE(Has(ended.err, "neither JPEG nor PNG")) << ended.err;
  const json answers = json::parse(ended.out);
  ASSERT_EQ(answers.size(), 1);
  EXPECT_EQ(answers[0]["file"], good);
  EXPECT_EQ(answers[0]["top"][0]["label"], "Ankle boot");
  EXPECT_EQ(answers[0]["top"][0]["index"], 2);
  EXPECT_EQ(answers[0]["outputs"][0]["data"], json({0.0, 1.0, 3.0}));
  const Ended missing = Run({"infer", "vmamba-pico", folder_ + "/absent.png"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_TRUE(Has(missing.err, "cannot be read")) << missing.err;
}

TEST_F(Mk, InferSendsRawBytesShapesAndParameters) {
  const std::string file = File("three.bin", std::string("\1\2\3", 3));
  const Ended ended =
      Run({"infer", "echo", "--input", "INPUT0=" + file, "--shape", "INPUT0=3", "--param",
           "delay_ms=20", "--param", "scale=0.5", "--param", "mode=x", "--param", "keep=true"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(Has(ended.out, "OUTPUT0 UINT8 [3]: 1, 2, 3")) << ended.out;
  const auto sent = daemon_.last_infer();
  EXPECT_EQ(sent.inputs(0).shape(0), 3);
  EXPECT_EQ(sent.parameters().at("delay_ms").int64_param(), 20);
  EXPECT_EQ(sent.parameters().at("scale").double_param(), 0.5);
  EXPECT_EQ(sent.parameters().at("mode").string_param(), "x");
  EXPECT_TRUE(sent.parameters().at("keep").bool_param());
}

TEST_F(Mk, InferTakesValuesFromTheCommandLine) {
  const Ended ended = Run({"infer", "--value", "INPUT0=4,5", "--value", "INPUT0=6", "echo"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(Has(ended.out, "OUTPUT0 UINT8 [3]: 4, 5, 6")) << ended.out;
  const Ended text =
      Run({"infer", "vmamba-pico", "--value", std::string("encoded_image=") + kPhoto});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(daemon_.last_infer().raw_input_contents(0), std::string("\7\0\0\0", 4) + kPhoto);
  for (const char* wrong : {"INPUT0=256", "INPUT0=-1", "INPUT0=1.5", "INPUT0=", "INPUT0=x"}) {
    const Ended refused = Run({"infer", "echo", "--value", wrong});
    EXPECT_EQ(refused.code, 2) << wrong;
    EXPECT_TRUE(Has(refused.err, "is no UINT8")) << refused.err;
  }
  EXPECT_TRUE(Has(Run({"infer", "echo", "--value", "INPUT0=1,2", "--shape", "INPUT0=3"}).err,
                  "2 values for shape [3]"));
  EXPECT_TRUE(
      Has(Run({"infer", "echo", "--shape", "INPUT0=1", "--shape", "INPUT0=2"}).err, "twice"));
}

TEST_F(Mk, InferReadsAndWritesNpy) {
  const std::string file = File("in.npy", *WriteNpy({"UINT8", {4}, std::string("\4\3\2\1", 4)}));
  const std::string answers = folder_ + "/answers";
  ASSERT_EQ(mkdir(answers.c_str(), 0700), 0);
  const Ended ended =
      Run({"infer", "echo", "--input", "INPUT0=" + file, "--output-dir", answers, "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto saved = ParseNpy(Contents(answers + "/OUTPUT0.npy"));
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->datatype, "UINT8");
  EXPECT_EQ(saved->data, std::string("\4\3\2\1", 4));
  const Ended nowhere =
      Run({"infer", "echo", "--input", "INPUT0=" + file, "--output-dir", folder_ + "/absent"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_TRUE(Has(nowhere.err, "cannot write")) << nowhere.err;
}

TEST_F(Mk, WrongInputsAreTheCallersAndSendNothing) {
  const std::string text = File("bad.npy", "\x93NUMPY but nothing behind");
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--input", "INPUT9=" + text},
        {"--input", "INPUT0"},
        {"--input", "INPUT0=" + text},
        {"--shape", "INPUT0=2,x", "--random"},
        {"--random"},
        {},
        {text}}) {
    std::vector<std::string> arguments = {"infer", "echo"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Ended ended = Run(arguments);
    EXPECT_EQ(ended.code, 2) << ended.out << ended.err;
    EXPECT_EQ(ended.err.rfind("mk: ", 0), 0u) << ended.err;
  }
  EXPECT_EQ(daemon_.infers(), 0);
}

TEST_F(Mk, InferEndsByWhoseFaultItWas) {
  const std::string photo = File("boot.png", kPhoto);
  const std::vector<std::pair<Status, int>> cases = {
      {{StatusCode::UNAVAILABLE, "Exceeds maximum queue size"}, 5},
      {{StatusCode::DEADLINE_EXCEEDED, "Request timeout expired"}, 5},
      {{StatusCode::NOT_FOUND, "gone meanwhile"}, 4},
      {{StatusCode::INTERNAL, "the pack threw"}, 6}};
  for (const auto& [answer, code] : cases) {
    daemon_.infer_answer = answer;
    const Ended ended = Run({"infer", "vmamba-pico", photo});
    EXPECT_EQ(ended.code, code) << ended.err;
    EXPECT_TRUE(Has(ended.err, answer.error_message())) << ended.err;
  }
}

TEST_F(Mk, BenchCountsEveryRequestAndSaysWhereItMeasured) {
  const Ended ended = Run({"bench", "echo", "--shape", "INPUT0=8", "--concurrency", "1,2",
                           "--requests", "30", "--warmup", "2", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json bench = json::parse(ended.out);
  ASSERT_EQ(bench["results"].size(), 2);
  for (const json& run : bench["results"]) {
    EXPECT_EQ(run["ok"], 30);
    EXPECT_EQ(run["failed"], 0);
    EXPECT_GT(run["requests_per_second"], 0);
    EXPECT_LE(run["p50_seconds"], run["p90_seconds"]);
    EXPECT_LE(run["p90_seconds"], run["p99_seconds"]);
    EXPECT_LE(run["p99_seconds"], run["max_seconds"]);
  }
  EXPECT_EQ(bench["address"], address_);
  EXPECT_TRUE(bench["measured"].is_string());
  EXPECT_EQ(daemon_.infers(), 2 * 30 + (1 + 2) * 2);
  const Ended table =
      Run({"bench", "echo", "--shape", "INPUT0=8", "--requests", "5", "--warmup", "0"});
  EXPECT_TRUE(Has(table.out, "P99")) << table.out;
  EXPECT_TRUE(Has(table.out, "Measured at the client")) << table.out;
}

TEST_F(Mk, BenchReportsFailuresAndRefusesNonsense) {
  daemon_.infer_answer = {StatusCode::UNAVAILABLE, "Exceeds maximum queue size"};
  const Ended full = Run({"bench", "echo", "--shape", "INPUT0=8", "--requests", "4", "--json"});
  EXPECT_EQ(full.code, 5);
  EXPECT_EQ(json::parse(full.out)["results"][0]["failed"], 4);
  EXPECT_TRUE(Has(full.err, "4 failed; the first: Exceeds maximum queue size")) << full.err;
  EXPECT_EQ(Run({"bench", "echo", "--shape", "INPUT0=8", "--concurrency", "0"}).code, 2);
  const Ended open = Run({"bench", "echo"});
  EXPECT_EQ(open.code, 2);
  EXPECT_TRUE(Has(open.err, "--shape INPUT0=")) << open.err;
}

TEST_F(Mk, DoctorNeedsNoDaemon) {
  NobodysAddress();
  const Ended ended = Run({"doctor", "--json"});
  const json findings = json::parse(ended.out);
  bool failed = false, sgemm = false, sealed = false;
  for (const json& finding : findings) {
    failed = failed || finding["state"] == "fail";
    sgemm = sgemm || finding["check"] == "SGEMM";
    sealed = sealed || finding["check"] == "sealed memory";
    EXPECT_FALSE(finding["detail"].get<std::string>().empty()) << finding;
  }
  EXPECT_TRUE(sgemm && sealed);
  EXPECT_EQ(ended.code, failed ? 1 : 0);
}

TEST_F(Mk, HelpTeachesAndWrongFlagsEndWithTwo) {
  const Ended help = Run({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* word :
       {"status", "packs", "load", "unload", "infer", "bench", "doctor", "Exit codes"}) {
    EXPECT_TRUE(Has(help.out, word)) << word;
  }
  EXPECT_TRUE(Has(Run({"infer", "--help"}).out, "Examples"));
  EXPECT_EQ(Run({}).code, 2);
  EXPECT_EQ(Run({"load"}).code, 2);
  EXPECT_EQ(Run({"status", "--no-such-flag"}).code, 2);
  EXPECT_EQ(Run({"status", "--timeout", "-1"}).code, 2);
}

}  // namespace
}  // namespace mk::cli
