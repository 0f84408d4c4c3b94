// The child that reads PyTorch's files: what it is denied, and what becomes of it when it fails.
#include "server/import/torch_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <string>

#include "server/import/testing/checkpoints.h"

namespace mk {
namespace {

using std::string_literals::operator""s;

absl::StatusOr<std::unique_ptr<CheckpointStream>> OpenFile(const std::string& path,
                                                           const TorchOptions& options) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(fd.ok()) << path;
  return OpenTorchCheckpoint(std::move(fd), std::filesystem::file_size(path), options);
}

// A stand-in for Python: a shell script.
std::string Script(const TestFolder& folder, const std::string& text) {
  const std::string path = folder.Write("python", "#!/bin/sh\n" + text);
  chmod(path.c_str(), 0700);
  return path;
}

absl::Status RunScript(const TestFolder& folder, const std::string& script, double silence = 20) {
  TorchOptions options;
  options.python = Script(folder, script);
  options.silence_seconds = silence;
  auto stream = OpenFile(kFixture, options);
  if (!stream.ok()) return stream.status();
  return (*stream)->Finish();
}

std::string Says(const absl::Status& status) { return std::string(status.message()); }
bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TorchChild, HasLimitsOnMemoryTimeAndFiles) {
  const TestFolder folder;
  const std::string limits = Says(RunScript(
      folder, "ulimit -v >&2; ulimit -f >&2; ulimit -n >&2; ulimit -c >&2; ulimit -t >&2; exit 3"));
  EXPECT_EQ(limits, "786432\\x0a0\\x0a16\\x0a0\\x0a30\\x0a");
}

TEST(TorchChild, CanWriteNoFile) {
  const TestFolder folder;
  const std::string pwned = folder.path() + "/pwned";
  RunScript(folder, "trap '' XFSZ; echo x > " + pwned + "; exit 3").IgnoreError();
  // An empty file may be made; nothing can be put into one.
  EXPECT_TRUE(!std::filesystem::exists(pwned) || std::filesystem::file_size(pwned) == 0);
}

TEST(TorchChild, HasNoNetwork) {
  const TestFolder folder;
  TorchOptions options;
  auto stream = OpenFile(kFixture, options);
  ASSERT_TRUE(stream.ok()) << stream.status();
  for (const std::string& note : (*stream)->notes()) {
    if (!Has(note, "network namespace")) continue;
    std::cout << "skipped: the system allows no network namespace, and the import says so\n";
    return;
  }
  const std::string devices = Says(
      RunScript(folder, "while read -r line; do echo $line >&2; done < /proc/net/dev; exit 3"));
  EXPECT_TRUE(Has(devices, "lo:")) << devices;
  EXPECT_FALSE(Has(devices, "eth") || Has(devices, "enp") || Has(devices, "ens")) << devices;
}

TEST(TorchChild, WhatItMeetsBecomesAnError) {
  const TestFolder folder;
  const auto status = [&](const std::string& script) { return RunScript(folder, script); };
  EXPECT_EQ(status("echo no such thing >&2; exit 3").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status("exit 4").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Has(Says(status("echo trace >&2; exit 1")), "ended with code 1: trace"));
  EXPECT_EQ(status("kill -SEGV $$").code(), absl::StatusCode::kInternal);
  // Bytes that are no stream.
  EXPECT_FALSE(status("echo 12345678; exit 0").ok());
  EXPECT_FALSE(status("while echo 00000000000000000000000000; do :; done").ok());
  EXPECT_FALSE(status("exit 0").ok());
}

TEST(TorchChild, ASilentOneIsEnded) {
  const TestFolder folder;
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = RunScript(folder, "while :; do :; done", 0.3);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Has(Says(status), "sent nothing for 0.3 s")) << status;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(TorchChild, MemoryThatItMayNotHaveIsSaid) {
  TorchOptions options;
  options.memory_bytes = uint64_t{8} << 20;
  const auto stream = OpenFile(kFixture, options);
  ASSERT_FALSE(stream.ok());
}

TEST(TorchChild, AMissingPythonIsNamed) {
  TorchOptions options;
  options.python = "no-such-python";
  const auto stream = OpenFile(kFixture, options);
  EXPECT_EQ(stream.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(Has(Says(stream.status()), "no-such-python"));
  const TestFolder folder;
  options.python = folder.Write("broken", "no program");
  chmod(options.python.c_str(), 0700);
  EXPECT_TRUE(Has(Says(OpenFile(kFixture, options).status()), "cannot be started"));
}

TEST(TorchChild, AnAbandonedStreamEndsIt) {
  TorchOptions options;
  auto stream = OpenFile(kFixture, options);
  ASSERT_TRUE(stream.ok());
  stream->reset();  // waits for the child; a leak of it would show under the sanitizer and as a
                    // zombie
}

}  // namespace
}  // namespace mk
