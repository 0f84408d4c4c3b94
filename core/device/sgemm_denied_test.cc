// SGEMM where memory may not become executable, as under systemd's MemoryDenyWriteExecute. A test
// binary of its own: the ban cannot be lifted again, and code that was made before it would still
// run.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "core/device/device.h"
#include "core/device/sgemm.h"

namespace mk {
namespace {

// From here on mmap and mprotect with PROT_EXEC fail with EPERM. False where the system has no
// seccomp.
bool DenyExecutableMemory() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mprotect, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      // The protection is the third argument of both; its lower half comes first.
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {sizeof code / sizeof code[0], code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(SgemmDenied, AnswersRightOrAnErrorAndNeverWrongNumbers) {
  auto device = *NewCpuDevice(1 << 20);
  if (!DenyExecutableMemory()) GTEST_SKIP() << "this system has no seccomp filters";
  const void* page = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_EQ(page, MAP_FAILED);
  bool works = true;
  for (const int size : {4, 48, 300}) {
    const size_t count = static_cast<size_t>(size * size);
    std::vector<float> a(count, 1.0f), b(count, 2.0f), c(count, -1.0f);
    const absl::Status status =
        Sgemm({0, 0, size, size, size, 1.0f, 0.0f, a.data(), size, b.data(), size, c.data(), size});
    if (status.ok()) {
      EXPECT_EQ(c, std::vector<float>(count, 2.0f * static_cast<float>(size))) << size;
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
      EXPECT_NE(status.message().find("MemoryDenyWriteExecute"), std::string_view::npos) << status;
    }
    works = works && status.ok();
  }
  // oneDNN 2 writes its code at run time and fails; 3 falls back to plain loops, as OpenBLAS has
  // them. The device must say the same of itself.
  EXPECT_EQ(device->Canary().ok(), works);
}

}  // namespace
}  // namespace mk
