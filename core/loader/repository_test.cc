// The fall-back where openat2 is absent or forbidden, forced by a filter on one thread.
#include "core/loader/repository.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/packs/pack_builder.h"

namespace mk {
namespace {

// From here on openat2 fails with `error` on the calling thread. False where the system has no
// seccomp.
bool DenyOpenat2(int error) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {sizeof code / sizeof code[0], code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

void ExpectBeneathOnly(const std::string& root) {
  const auto repository = Repository::Open(root);
  ASSERT_TRUE(repository.ok()) << repository.status();
  EXPECT_TRUE((*repository)->Has("p"));
  EXPECT_FALSE((*repository)->Has("link"));
  EXPECT_FALSE((*repository)->Has(".."));
  const auto folder = (*repository)->OpenVersion("p", 1);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_TRUE(OpenBeneath(folder->get(), "pack.so", false).ok());
  EXPECT_EQ(OpenBeneath(folder->get(), "outside", false).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Repository, NothingOutsideIsOpenedWithAndWithoutOpenat2) {
  const TestRepository outside;
  WriteFile(outside.root() + "/file", "x");
  TestRepository repository;
  repository.Install("p", 1, EchoSpec());
  std::filesystem::create_directory_symlink(outside.root(), repository.root() + "/link");
  std::filesystem::create_symlink(outside.root() + "/file", repository.Folder("p", 1) + "/outside");
  ExpectBeneathOnly(repository.root());
  bool filtered = true;
  for (const int error : {ENOSYS, EPERM}) {
    std::thread([&] {
      filtered = filtered && DenyOpenat2(error);
      if (filtered) ExpectBeneathOnly(repository.root());
    }).join();
  }
  if (!filtered) GTEST_SKIP() << "this system has no seccomp filters";
}

}  // namespace
}  // namespace mk
