#include "core/device/image.h"

#include <gtest/gtest.h>
#include <png.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>

#include "core/device/image_formats.h"

namespace mk {
namespace {

constexpr int64_t kLimit = 1 << 20;

std::string MakePng(int width, int height, int color_type, const std::vector<uint8_t>& pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = static_cast<png_uint_32>(color_type);
  png_alloc_size_t size = 0;
  EXPECT_TRUE(png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr));
  std::string out(size, '\0');
  EXPECT_TRUE(png_image_write_to_memory(&image, out.data(), &size, 0, pixels.data(), 0, nullptr));
  return out;
}

std::string MakeJpeg(int width, int height, const std::vector<uint8_t>& rgb, int orientation) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr error;
  jpeg.err = jpeg_std_error(&error);
  jpeg_create_compress(&jpeg);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &buffer, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 95, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  if (orientation != 0) {
    std::string exif("Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 25);
    exif += static_cast<char>(orientation);
    exif += std::string("\0\0\0\0\0\0", 6);
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  }
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<JSAMPROW>(rgb.data() + jpeg.next_scanline * jpeg.image_width * 3);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::string out(reinterpret_cast<char*>(buffer), size);
  jpeg_destroy_compress(&jpeg);
  std::free(buffer);
  return out;
}

// Left half dark, right half bright, top row of blocks brighter: tells all eight orientations
// apart.
std::vector<uint8_t> Quadrants(int width, int height) {
  std::vector<uint8_t> rgb;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const auto value =
          static_cast<uint8_t>((x < width / 2 ? 0 : 80) + (y < height / 2 ? 160 : 0));
      rgb.insert(rgb.end(), {value, value, value});
    }
  }
  return rgb;
}

TEST(Image, PngDecodesExactlyInColourAndGray) {
  const std::vector<uint8_t> rgb = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30};
  const std::string file = MakePng(2, 2, PNG_FORMAT_RGB, rgb);
  const auto info = ReadImageInfo(file, kLimit);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->channels, 3u);
  std::vector<uint8_t> out(12);
  ASSERT_TRUE(DecodeImage(file, kLimit, 3, out.data(), out.size()).ok());
  EXPECT_EQ(out, rgb);
  std::vector<uint8_t> gray(4);
  ASSERT_TRUE(DecodeImage(file, kLimit, 1, gray.data(), gray.size()).ok());
  EXPECT_EQ(gray, (std::vector<uint8_t>{76, 150, 29, 18}));
}

TEST(Image, AlphaIsComposedOverBlack) {
  const std::string file = MakePng(1, 1, PNG_FORMAT_RGBA, {200, 100, 50, 128});
  std::vector<uint8_t> out(3);
  ASSERT_TRUE(DecodeImage(file, kLimit, 3, out.data(), out.size()).ok());
  EXPECT_EQ(out[0], 100);
}

TEST(Image, AllEightExifOrientationsAreApplied) {
  const int w = 64, h = 32;
  // Where the stored top-left (160), top-right (240), bottom-left (0) quadrant's corner must be
  // seen: for each orientation the values at the output's four corners, clockwise from the top
  // left.
  const int corners[9][4] = {{},
                             {160, 240, 80, 0},
                             {240, 160, 0, 80},
                             {80, 0, 160, 240},
                             {0, 80, 240, 160},
                             {160, 0, 80, 240},
                             {0, 160, 240, 80},
                             {80, 240, 160, 0},
                             {240, 80, 0, 160}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string file = MakeJpeg(w, h, Quadrants(w, h), orientation);
    const auto info = ReadImageInfo(file, kLimit);
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(info->width, orientation >= 5 ? h : w);
    std::vector<uint8_t> out(static_cast<size_t>(w * h));
    ASSERT_TRUE(DecodeImage(file, kLimit, 1, out.data(), out.size()).ok());
    const size_t width = static_cast<size_t>(info->width),
                 height = static_cast<size_t>(info->height);
    const size_t at[4] = {0, width - 1, width * height - 1, width * (height - 1)};
    for (int corner = 0; corner < 4; ++corner) {
      EXPECT_NEAR(out[at[corner]], corners[orientation][corner], 6)
          << "orientation " << orientation << " corner " << corner;
    }
  }
}

TEST(Image, DamagedExifIsIgnored) {
  EXPECT_EQ(ExifOrientation(""), 1);
  EXPECT_EQ(ExifOrientation(std::string("Exif\0\0II\x2a\0\xff\xff\xff\xff", 14)), 1);
  EXPECT_EQ(ExifOrientation(std::string("Exif\0\0MM\0\x2a\0\0\0\x08\xff\xff", 16)), 1);
}

TEST(Image, EveryTruncationIsRefused) {
  std::vector<uint8_t> noise;
  for (int i = 0; i < 12 * 9 * 3; ++i) noise.push_back(static_cast<uint8_t>(i * 37));
  for (const std::string& file :
       {MakePng(12, 9, PNG_FORMAT_RGB, noise), MakeJpeg(12, 9, noise, 0)}) {
    std::vector<uint8_t> out(12 * 9 * 3);
    for (size_t size = 0; size < file.size(); ++size) {
      const std::string cut = file.substr(0, size);
      const absl::Status status = DecodeImage(cut, kLimit, 3, out.data(), out.size());
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << size << " of " << file.size();
    }
    EXPECT_TRUE(DecodeImage(file, kLimit, 3, out.data(), out.size()).ok());
  }
}

TEST(Image, EveryFlippedByteIsSurvived) {
  const std::string png = MakePng(5, 4, PNG_FORMAT_RGB, std::vector<uint8_t>(60, 7));
  const std::string jpeg = MakeJpeg(8, 8, std::vector<uint8_t>(192, 9), 6);
  for (const std::string& file : {png, jpeg}) {
    for (size_t i = 0; i < file.size(); ++i) {
      std::string bad = file;
      bad[i] = static_cast<char>(bad[i] ^ 0x5a);
      const auto info = ReadImageInfo(bad, 4096);
      if (!info.ok()) continue;
      std::vector<uint8_t> out(static_cast<size_t>(info->width * info->height));
      static_cast<void>(DecodeImage(bad, 4096, 1, out.data(), out.size()));
    }
  }
}

TEST(Image, AreaLimitIsJudgedOnTheHeader) {
  std::string file = MakePng(300, 200, PNG_FORMAT_GRAY, std::vector<uint8_t>(60000, 1));
  const auto refused = ReadImageInfo(file, 59999);
  EXPECT_EQ(refused.status().message(), "image: 300 x 200 pixels, the limit is 1 to 59999");
  EXPECT_TRUE(ReadImageInfo(file, 60000).ok());
}

TEST(Image, OtherBytesAndWrongBuffersAreRefused) {
  EXPECT_FALSE(ReadImageInfo("", kLimit).ok());
  EXPECT_FALSE(ReadImageInfo("GIF89a", kLimit).ok());
  const std::string file = MakePng(2, 2, PNG_FORMAT_GRAY, {1, 2, 3, 4});
  uint8_t out[16];
  EXPECT_EQ(DecodeImage(file, kLimit, 1, out, 5).message(), "image: buffer of 5 bytes for 4");
  EXPECT_FALSE(DecodeImage(file, kLimit, 2, out, 8).ok());
}

}  // namespace
}  // namespace mk
