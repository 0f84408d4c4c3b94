// The two formats behind core/device/image.h; not for others.
#ifndef MERGEKERNEL_CORE_DEVICE_IMAGE_FORMATS_H_
#define MERGEKERNEL_CORE_DEVICE_IMAGE_FORMATS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mk {

// As stored, before orientation.
struct StoredImage {
  int64_t width = 0;
  int64_t height = 0;
  uint32_t channels = 0;  // 1 or 3
  int orientation = 1;    // EXIF's 1 to 8
};

absl::StatusOr<StoredImage> ReadJpegHeader(std::string_view file);
absl::StatusOr<StoredImage> ReadPngHeader(std::string_view file);

// Fill `pixels`, [height, width, channels] of the stored size. `channels` 1 or 3.
absl::Status DecodeJpeg(std::string_view file, uint32_t channels, uint8_t* pixels);
absl::Status DecodePng(std::string_view file, uint32_t channels, uint8_t* pixels);

// The EXIF orientation in an APP1 segment's content, 1 when it has none or is damaged.
int ExifOrientation(std::string_view app1);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_IMAGE_FORMATS_H_
