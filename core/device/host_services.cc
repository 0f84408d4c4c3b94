#include "core/device/host_services.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "core/device/image.h"
#include "core/device/sgemm.h"
#include "core/device/thread_pool.h"

namespace mk {
namespace {

// The message of this thread's last image failure; the table's `last_error` reads it.
thread_local std::string image_error;

mk_status ImageResult(const absl::Status& status) {
  image_error = std::string(status.message());
  return static_cast<mk_status>(status.code());
}

void ParallelFor(void* self, mk_i64 count, mk_i64 grain, ThreadPool::Body body, void* arg) {
  static_cast<ThreadPool*>(self)->ParallelFor(count, grain, body, arg);
}

mk_i64 Threads(void* self) { return static_cast<ThreadPool*>(self)->threads(); }

mk_status RunSgemm(void*, const mk_sgemm_args* args) {
  return static_cast<mk_status>(Sgemm(*args).code());
}

mk_status DescribeImage(void* self, const void* data, mk_u64 size_bytes, mk_image_info* out) {
  const auto& options = *static_cast<const HostServicesOptions*>(self);
  if (out->struct_size < sizeof *out) {
    return ImageResult(absl::InvalidArgumentError(
        absl::StrCat("image: mk_image_info.struct_size ", out->struct_size, " < ", sizeof *out)));
  }
  const auto info = ReadImageInfo(std::string_view(static_cast<const char*>(data), size_bytes),
                                  options.max_image_pixels);
  if (!info.ok()) return ImageResult(info.status());
  out->channels = info->channels;
  out->width = info->width;
  out->height = info->height;
  return MK_OK;
}

mk_status DecodeInto(void* self, const void* data, mk_u64 size_bytes, mk_u32 channels, void* pixels,
                     mk_u64 pixels_size_bytes) {
  const auto& options = *static_cast<const HostServicesOptions*>(self);
  return ImageResult(DecodeImage(std::string_view(static_cast<const char*>(data), size_bytes),
                                 options.max_image_pixels, channels, static_cast<uint8_t*>(pixels),
                                 pixels_size_bytes));
}

const char* ImageError(void*) { return image_error.c_str(); }

}  // namespace

HostServices::HostServices(const HostServicesOptions& options)
    : options_(options),
      pool_(std::make_unique<ThreadPool>(options.threads)),
      parallel_{sizeof(mk_parallel_service), 0, pool_.get(), &ParallelFor, &Threads},
      blas_{sizeof(mk_blas_service), 0, nullptr, &RunSgemm},
      image_{sizeof(mk_image_service), 0,           const_cast<HostServicesOptions*>(&options_),
             &DescribeImage,           &DecodeInto, &ImageError} {}

HostServices::~HostServices() = default;

const void* HostServices::Find(const char* id) const {
  const std::string_view name = id;
  if (name == MK_SERVICE_PARALLEL) return &parallel_;
  if (name == MK_SERVICE_BLAS) return &blas_;
  if (name == MK_SERVICE_IMAGE) return &image_;
  return nullptr;
}

}  // namespace mk
