// The services of the host that belong to the machine and not to one pack: threads, SGEMM, image
// decode. The tables are those of core/abi/mk_pack.h; the loader adds the per-pack ones (log,
// files, weights).
#ifndef MERGEKERNEL_CORE_DEVICE_HOST_SERVICES_H_
#define MERGEKERNEL_CORE_DEVICE_HOST_SERVICES_H_

#include <memory>

#include "core/abi/mk_pack.h"

namespace mk {

class ThreadPool;

struct HostServicesOptions {
  int threads = 0;  // 0: as many as the process may use (sched_getaffinity)
  int64_t max_image_pixels =
      64LL << 20;  // area limit, judged after the header and before any allocation
};

// Any thread. Outlives every model that was given its tables.
class HostServices {
 public:
  explicit HostServices(const HostServicesOptions& options);
  ~HostServices();

  // The table for `id`, or null: MK_SERVICE_PARALLEL, MK_SERVICE_BLAS, MK_SERVICE_IMAGE.
  const void* Find(const char* id) const;
  ThreadPool& pool() { return *pool_; }

 private:
  const HostServicesOptions options_;
  std::unique_ptr<ThreadPool> pool_;
  mk_parallel_service parallel_;
  mk_blas_service blas_;
  mk_image_service image_;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_HOST_SERVICES_H_
