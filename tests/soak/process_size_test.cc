#include "tests/soak/process_size.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace mk {
namespace {

TEST(ProcessSize, SeesADescriptorAThreadAndAChildOfThisProcess) {
  const ProcessSize before = *ReadProcessSize(getpid());
  EXPECT_GT(before.resident_bytes, 1 << 20);
  EXPECT_GT(before.mappings, 5);

  const int fd = open("/dev/null", O_RDONLY);
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    close(pipe_ends[1]);
    _exit(static_cast<int>(read(pipe_ends[0], &byte, 1)));
  }
  ProcessSize during;
  std::thread([&] { during = *ReadProcessSize(getpid()); }).join();
  EXPECT_EQ(during.descriptors, before.descriptors + 3);
  EXPECT_EQ(during.threads, before.threads + 1);
  EXPECT_EQ(during.children, before.children + 1);

  close(fd);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(ReadProcessSize(getpid())->descriptors, before.descriptors);
  EXPECT_EQ(ReadProcessSize(getpid())->children, before.children);
}

TEST(ProcessSize, TellsOfAProcessThatIsNotThere) {
  EXPECT_EQ(ReadProcessSize(1 << 30).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace mk
