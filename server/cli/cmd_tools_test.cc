// mk verify and mk results find their tree and hand over every argument.
#include "server/cli/cmd_tools.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace mk::cli {
namespace {

struct Answer {
  int code;
  std::string text;
};

Answer Shell(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  Answer answer = {-1, ""};
  std::array<char, 4096> part;
  while (const size_t got = fread(part.data(), 1, part.size(), pipe)) {
    answer.text.append(part.data(), got);
  }
  answer.code = WEXITSTATUS(pclose(pipe));
  return answer;
}

std::string Own() {
  char path[4096];
  const std::string here = getcwd(path, sizeof path);
  return here + "/server/cli/mk";
}

std::string Tree(const std::string& name) {
  char real[PATH_MAX];
  const std::string root = std::string(realpath(::testing::TempDir().c_str(), real)) + "/" + name;
  for (const char* folder : {"", "/results", "/verify", "/verify/run", "/deep", "/deep/down"}) {
    mkdir((root + folder).c_str(), 0755);
  }
  const char* script = "import os, sys; print(sys.argv[1:], 'MK_PROGRAM' in os.environ); exit(7)\n";
  std::ofstream(root + "/results/render.py") << script;
  std::ofstream(root + "/verify/run/main.py") << script;
  return root;
}

TEST(TreeWith, LooksUpwardsInOrder) {
  const std::string a = Tree("a"), b = Tree("b");
  EXPECT_EQ(TreeWith("results/render.py", {a + "/deep/down", b}), a);
  EXPECT_EQ(TreeWith("results/render.py", {"/", b + "/deep"}), b);
  EXPECT_EQ(TreeWith("deep", {a}), "");  // a folder is no script
  // As Bazel's output tree has it: one folder of the checkout, linked.
  const std::string built = ::testing::TempDir() + "built";
  mkdir(built.c_str(), 0755);
  EXPECT_TRUE(symlink((a + "/results").c_str(), (built + "/results").c_str()) == 0 ||
              errno == EEXIST);
  EXPECT_EQ(TreeWith("results/render.py", {built}), a);
  EXPECT_EQ(TreeWith("results/render.py", {"", "relative"}), "");
}

TEST(Tools, HandOverEveryArgumentAndTheExitCode) {
  const std::string tree = Tree("c");
  const std::string cd = "cd " + tree + "/deep && ";
  Answer answer = Shell(cd + Own() + " results --html x.html --help 'a b'");
  EXPECT_EQ(answer.text, "['--html', 'x.html', '--help', 'a b'] True\n");
  EXPECT_EQ(answer.code, 7);
  answer = Shell(cd + Own() + " verify model.onnx --python /x --timeout 3 --address z");
  EXPECT_EQ(answer.text,
            "['model.onnx', '--python', '/x', '--timeout', '3', '--address', 'z'] True\n");
  answer = Shell(cd + Own() + " --json verify");
  EXPECT_EQ(answer.text, "['--json'] True\n");
  answer = Shell(cd + Own() + " verify");
  EXPECT_EQ(answer.text, "[] True\n");
}

TEST(Tools, SayWhatIsMissing) {
  const std::string tree = Tree("d");
  const Answer answer = Shell("cd " + tree + " && PATH=/nowhere " + Own() + " results");
  EXPECT_EQ(answer.code, 2);
  EXPECT_NE(answer.text.find("python3 cannot be started"), std::string::npos) << answer.text;
}

}  // namespace
}  // namespace mk::cli
