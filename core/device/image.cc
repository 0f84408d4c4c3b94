#include "core/device/image.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/device/image_formats.h"

namespace mk {
namespace {

bool IsJpeg(std::string_view file) { return file.substr(0, 3) == "\xff\xd8\xff"; }
bool IsPng(std::string_view file) {
  return file.substr(0, 8) == std::string_view("\x89PNG\r\n\x1a\n", 8);
}

absl::StatusOr<StoredImage> ReadHeader(std::string_view file, int64_t max_pixels) {
  if (!IsJpeg(file) && !IsPng(file)) {
    return absl::InvalidArgumentError(
        absl::StrCat("image: ", file.size(), " bytes that are neither JPEG nor PNG"));
  }
  absl::StatusOr<StoredImage> image = IsJpeg(file) ? ReadJpegHeader(file) : ReadPngHeader(file);
  if (!image.ok()) return image;
  // Both are below 2^31, so the product fits.
  if (image->width < 1 || image->height < 1 || image->width * image->height > max_pixels) {
    return absl::InvalidArgumentError(absl::StrCat("image: ", image->width, " x ", image->height,
                                                   " pixels, the limit is 1 to ", max_pixels));
  }
  return image;
}

// EXIF orientations 5 to 8 swap the sides.
bool SwapsSides(int orientation) { return orientation >= 5; }

// Moves stored pixel (x, y) to where the camera meant it to be.
void Orient(const StoredImage& image, uint32_t channels, const uint8_t* from, uint8_t* to) {
  const int64_t w = image.width, h = image.height;
  const int64_t out_width = SwapsSides(image.orientation) ? h : w;
  for (int64_t y = 0; y < h; ++y) {
    for (int64_t x = 0; x < w; ++x) {
      int64_t out_x = x, out_y = y;
      switch (image.orientation) {
        case 2:
          out_x = w - 1 - x;
          break;
        case 3:
          out_x = w - 1 - x, out_y = h - 1 - y;
          break;
        case 4:
          out_y = h - 1 - y;
          break;
        case 5:
          out_x = y, out_y = x;
          break;
        case 6:
          out_x = h - 1 - y, out_y = x;
          break;
        case 7:
          out_x = h - 1 - y, out_y = w - 1 - x;
          break;
        case 8:
          out_x = y, out_y = w - 1 - x;
          break;
        default:
          break;
      }
      std::memcpy(to + (out_y * out_width + out_x) * channels, from + (y * w + x) * channels,
                  channels);
    }
  }
}

}  // namespace

absl::StatusOr<ImageInfo> ReadImageInfo(std::string_view file, int64_t max_pixels) {
  const absl::StatusOr<StoredImage> image = ReadHeader(file, max_pixels);
  if (!image.ok()) return image.status();
  ImageInfo info{image->channels, image->width, image->height};
  if (SwapsSides(image->orientation)) std::swap(info.width, info.height);
  return info;
}

absl::Status DecodeImage(std::string_view file, int64_t max_pixels, uint32_t channels,
                         uint8_t* pixels, uint64_t pixels_size_bytes) {
  if (channels != 1 && channels != 3) {
    return absl::InvalidArgumentError(absl::StrCat("image: channels ", channels, " not 1 or 3"));
  }
  const absl::StatusOr<StoredImage> image = ReadHeader(file, max_pixels);
  if (!image.ok()) return image.status();
  const uint64_t size =
      static_cast<uint64_t>(image->width) * static_cast<uint64_t>(image->height) * channels;
  if (pixels_size_bytes != size) {
    return absl::InvalidArgumentError(
        absl::StrCat("image: buffer of ", pixels_size_bytes, " bytes for ", size));
  }
  const auto decode = [&](uint8_t* to) {
    return IsJpeg(file) ? DecodeJpeg(file, channels, to) : DecodePng(file, channels, to);
  };
  if (image->orientation == 1) return decode(pixels);
  std::vector<uint8_t> stored(size);
  const absl::Status status = decode(stored.data());
  if (status.ok()) Orient(*image, channels, stored.data(), pixels);
  return status;
}

}  // namespace mk
