// JPEG and PNG from memory to 8-bit pixels, with the limits checked on the header, before anything
// is allocated.
//
// Rules: EXIF orientation of a JPEG is applied. Alpha is composed over black. 16 bits are cut to
// their upper 8. Palettes are expanded. CMYK is refused. A damaged or truncated file is refused,
// never half decoded, and so is a JPEG of more than 100 scans.
#ifndef MERGEKERNEL_CORE_DEVICE_IMAGE_H_
#define MERGEKERNEL_CORE_DEVICE_IMAGE_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mk {

struct ImageInfo {
  uint32_t channels = 0;  // stored: 1 gray, 3 colour
  int64_t width = 0;      // after orientation
  int64_t height = 0;
};

// INVALID_ARGUMENT for what is neither JPEG nor PNG, has a damaged header, or more than
// `max_pixels`. Any thread.
absl::StatusOr<ImageInfo> ReadImageInfo(std::string_view file, int64_t max_pixels);

// Fills `pixels`, [height, width, channels] of ReadImageInfo's size; `channels` 1 or 3 (gray from
// colour by 0.299 R + 0.587 G + 0.114 B, rounded). INVALID_ARGUMENT as above, or when
// `pixels_size_bytes` is not the product.
absl::Status DecodeImage(std::string_view file, int64_t max_pixels, uint32_t channels,
                         uint8_t* pixels, uint64_t pixels_size_bytes);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_IMAGE_H_
