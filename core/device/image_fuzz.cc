// A JPEG or PNG from anywhere: the header's word on the size holds for the pixels.
#include "core/device/image.h"
#include "tests/fuzz/fuzz.h"

namespace mk::fuzz {

std::vector<std::string> Seeds() {
  // 1 x 1 grey, written out: signature, IHDR, IDAT (stored deflate), IEND.
  const char png[] =
      "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0\x3a\x7e\x9b\x55"
      "\0\0\0\nIDAT\x78\x9c\x63\x60\0\0\0\2\0\1\x48\xaf\xa4\x71\0\0\0\0IEND\xae\x42\x60\x82";
  // Headers of a JPEG with an EXIF orientation and a frame of 8 x 8, without a scan.
  const char jpeg[] =
      "\xff\xd8\xff\xe1\0\x22"
      "Exif\0\0MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"
      "\xff\xc0\0\x0b\x08\0\x08\0\x08\1\1\x11\0\xff\xd9";
  return {std::string(png, sizeof png - 1), std::string(jpeg, sizeof jpeg - 1)};
}

}  // namespace mk::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kMaxPixels = 1 << 16;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto info = mk::ReadImageInfo(file, kMaxPixels);
  if (!info.ok()) return 0;
  FUZZ_CHECK(info->width > 0 && info->height > 0 && info->width <= kMaxPixels / info->height);
  for (const uint32_t channels : {1u, 3u}) {
    std::vector<uint8_t> pixels(static_cast<size_t>(info->width * info->height) * channels);
    static_cast<void>(mk::DecodeImage(file, kMaxPixels, channels, pixels.data(), pixels.size()));
  }
  return 0;
}
