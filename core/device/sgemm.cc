#include "core/device/sgemm.h"

#include <dlfcn.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

#if defined(__x86_64__)
#include <oneapi/dnnl/dnnl.h>
#else
#include <cblas.h>
#endif

namespace mk {
namespace {

absl::Status CheckStride(const char* name, int64_t stride, int64_t columns) {
  if (stride >= std::max<int64_t>(columns, 1)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("sgemm: ", name, " ", stride, " < ", columns));
}

absl::Status Check(const mk_sgemm_args& args) {
  if (args.m < 0 || args.n < 0 || args.k < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("sgemm: m ", args.m, ", n ", args.n, ", k ", args.k, " must be >= 0"));
  }
  // The libraries behind take 32-bit sizes on some builds.
  constexpr int64_t kLimit = INT32_MAX;
  if (std::max({args.m, args.n, args.k, args.lda, args.ldb, args.ldc}) > kLimit) {
    return absl::InvalidArgumentError(absl::StrCat("sgemm: a size passes ", kLimit));
  }
  absl::Status status = CheckStride("lda", args.lda, args.transpose_a ? args.m : args.k);
  if (status.ok()) status = CheckStride("ldb", args.ldb, args.transpose_b ? args.k : args.n);
  if (status.ok()) status = CheckStride("ldc", args.ldc, args.n);
  return status;
}

using SetThreads = void (*)(int);

SetThreads FindSetThreads(const char* symbol) {
  return reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, symbol));
}

// oneDNN's and one of OpenBLAS's builds open an OpenMP team of their own on each thread that calls
// them; ours are threads enough. The setting is per thread in OpenMP, so once per thread.
// OpenBLAS's other build has a pool of its own, with one setting for the process.
void StayOnThisThread() {
  static const SetThreads openmp = FindSetThreads("omp_set_num_threads");
  static const bool own_pool_is_off = [] {
    const SetThreads openblas = FindSetThreads("openblas_set_num_threads");
    if (openblas != nullptr) openblas(1);
    return true;
  }();
  static_cast<void>(own_pool_is_off);
  thread_local bool done = false;
  if (!done && openmp != nullptr) openmp(1);
  done = true;
}

}  // namespace

absl::Status Sgemm(const mk_sgemm_args& args) {
  const absl::Status status = Check(args);
  if (!status.ok()) return status;
  if (args.m == 0 || args.n == 0) return absl::OkStatus();
  if (args.k == 0) {
    for (int64_t row = 0; row < args.m; ++row) {
      float* c = args.c + row * args.ldc;
      for (int64_t i = 0; i < args.n; ++i) c[i] = args.beta == 0 ? 0 : args.beta * c[i];
    }
    return absl::OkStatus();
  }
  StayOnThisThread();
#if defined(__x86_64__)
  const dnnl_status_t code =
      dnnl_sgemm(args.transpose_a ? 'T' : 'N', args.transpose_b ? 'T' : 'N', args.m, args.n, args.k,
                 args.alpha, args.a, args.lda, args.b, args.ldb, args.beta, args.c, args.ldc);
  if (code != dnnl_success) {
    return absl::InternalError(
        absl::StrCat("sgemm: oneDNN answered ", static_cast<int>(code),
                     " (it must be allowed to write code: MemoryDenyWriteExecute off)"));
  }
#else
  cblas_sgemm(CblasRowMajor, args.transpose_a ? CblasTrans : CblasNoTrans,
              args.transpose_b ? CblasTrans : CblasNoTrans, static_cast<int>(args.m),
              static_cast<int>(args.n), static_cast<int>(args.k), args.alpha, args.a,
              static_cast<int>(args.lda), args.b, static_cast<int>(args.ldb), args.beta, args.c,
              static_cast<int>(args.ldc));
#endif
  return absl::OkStatus();
}

std::string SgemmKernelName() {
#if defined(__x86_64__)
  const dnnl_version_t* version = dnnl_version();
  const unsigned isa = static_cast<unsigned>(dnnl_get_effective_cpu_isa());
  const auto has = [isa](unsigned set) { return (isa & set) == set; };
  const char* name = has(dnnl_cpu_isa_avx512_core) ? "AVX-512"
                     : has(dnnl_cpu_isa_avx2)      ? "AVX2"
                     : has(dnnl_cpu_isa_avx)       ? "AVX"
                     : has(dnnl_cpu_isa_sse41)     ? "SSE4.1"
                                                   : "generic";
  return absl::StrCat("oneDNN ", version->major, ".", version->minor, ".", version->patch, " ",
                      name);
#else
  using CoreName = char* (*)();
  const auto name = reinterpret_cast<CoreName>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return absl::StrCat("OpenBLAS ", name ? name() : "(kernel not told)");
#endif
}

}  // namespace mk
