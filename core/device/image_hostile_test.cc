// Files made to hurt: sizes and contents that no camera writes, and every pixel format that a PNG
// may have.
#include <gtest/gtest.h>
#include <png.h>
#include <sys/resource.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>

#include "core/device/image.h"
#include "core/device/image_formats.h"

namespace mk {
namespace {

constexpr int64_t kLimit = 1 << 22;

// ---- PNG by hand, so that its chunks may say anything.

uint32_t Crc32(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc;
}

std::string BigEndian(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
  return out;
}

std::string Chunk(const std::string& type, const std::string& data) {
  return BigEndian(static_cast<uint32_t>(data.size())) + type + data +
         BigEndian(Crc32(type + data));
}

const std::string kPngSignature("\x89PNG\r\n\x1a\n", 8);

std::string PngThatClaims(uint32_t width, uint32_t height) {
  return kPngSignature +
         Chunk("IHDR", BigEndian(width) + BigEndian(height) + std::string("\x08\x02\0\0\0", 5)) +
         Chunk("IDAT", "") + Chunk("IEND", "");
}

// ---- PNG by libpng, for formats that its simple interface does not write.

struct PngFormat {
  int bits;
  int color_type;
  bool transparent;  // with a tRNS chunk
  bool interlaced;
};

void Append(png_structp png, png_bytep data, size_t size) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<char*>(data), size);
}
void Flush(png_structp) {}

// `row` serves as each row of the image; with `text`, a compressed comment goes before the pixels.
std::string MakePng(int width, int height, const PngFormat& format, std::vector<uint8_t> row,
                    std::string text = "") {
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &out, &Append, &Flush);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height),
               format.bits, format.color_type,
               format.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_color palette[2] = {{10, 20, 30}, {200, 100, 50}};
  if (format.color_type == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette, 2);
  png_byte palette_alpha[2] = {0, 255};
  png_color_16 key = {};  // all zeros: black is transparent
  if (format.transparent) png_set_tRNS(png, info, palette_alpha, 2, &key);
  png_text comment = {};
  char key_word[] = "Comment";
  if (!text.empty()) {
    comment.compression = PNG_TEXT_COMPRESSION_zTXt;
    comment.key = key_word;
    comment.text = text.data();
    comment.text_length = text.size();
    png_set_text(png, info, &comment, 1);
  }
  png_write_info(png, info);
  std::vector<png_bytep> rows(static_cast<size_t>(height), row.data());
  png_write_image(png, rows.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return out;
}

int64_t PeakResidentKiB() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(HostilePng, SizesPastTheFormatOrTheLimitAreRefusedWithoutMemory) {
  const int64_t before = PeakResidentKiB();
  for (const uint32_t side : {0u, 65536u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    for (const std::string& file : {PngThatClaims(side, side), PngThatClaims(1, side)}) {
      EXPECT_EQ(ReadImageInfo(file, 60000).status().code(), absl::StatusCode::kInvalidArgument)
          << side;
      uint8_t pixel[3];
      EXPECT_EQ(DecodeImage(file, 60000, 3, pixel, 3).code(), absl::StatusCode::kInvalidArgument);
    }
  }
  // The most that the format allows, and a limit that allows it: still no more than a description.
  const auto info = ReadImageInfo(PngThatClaims(0x7fffffff, 0x7fffffff), INT64_MAX);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->width, 0x7fffffff);
  EXPECT_LT(PeakResidentKiB() - before, 16 << 10);
}

TEST(HostilePng, CompressedCommentsAreNotKept) {
  const std::string one =
      MakePng(1, 1, {8, PNG_COLOR_TYPE_GRAY, false, false}, {7}, std::string(4 << 20, 'z'));
  const size_t begin = one.find("zTXt") - 4, end = one.find("IDAT") - 4;
  ASSERT_LT(begin, end);
  std::string file = one.substr(0, end);
  for (int i = 0; i < 50; ++i) file += one.substr(begin, end - begin);
  file += one.substr(end);
  const int64_t before = PeakResidentKiB();
  uint8_t pixel = 0;
  EXPECT_TRUE(DecodeImage(file, kLimit, 1, &pixel, 1).ok());
  EXPECT_EQ(pixel, 7);
  EXPECT_LT(PeakResidentKiB() - before, 32 << 10) << "200 MiB of comments were unpacked";
}

TEST(HostilePng, MissingPixelsBehindAGoodHeaderAreRefused) {
  std::vector<uint8_t> pixels(3 * 64 * 64);
  EXPECT_EQ(DecodeImage(PngThatClaims(64, 64), kLimit, 3, pixels.data(), pixels.size()).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Png, EveryFormatDecodesInBothChannelCounts) {
  struct Case {
    const char* name;
    PngFormat format;
    std::vector<uint8_t> row;  // of two pixels
    std::vector<uint8_t> rgb;
  };
  const std::vector<uint8_t> black_white = {0, 0, 0, 255, 255, 255};
  const std::vector<Case> cases = {
      {"gray 1", {1, PNG_COLOR_TYPE_GRAY, false, false}, {0x40}, black_white},
      {"gray 2", {2, PNG_COLOR_TYPE_GRAY, false, false}, {0x30}, black_white},
      {"gray 4", {4, PNG_COLOR_TYPE_GRAY, false, false}, {0x0f}, black_white},
      {"gray 8", {8, PNG_COLOR_TYPE_GRAY, false, false}, {1, 9}, {1, 1, 1, 9, 9, 9}},
      // 16 bits keep the upper 8, whatever the lower say.
      {"gray 16", {16, PNG_COLOR_TYPE_GRAY, false, false}, {1, 255, 9, 0}, {1, 1, 1, 9, 9, 9}},
      {"gray 8 key", {8, PNG_COLOR_TYPE_GRAY, true, false}, {0, 9}, {0, 0, 0, 9, 9, 9}},
      {"gray 16 key", {16, PNG_COLOR_TYPE_GRAY, true, false}, {0, 0, 9, 0}, {0, 0, 0, 9, 9, 9}},
      {"gray alpha",
       {8, PNG_COLOR_TYPE_GRAY_ALPHA, false, false},
       {90, 0, 90, 255},
       {0, 0, 0, 90, 90, 90}},
      {"gray alpha 16",
       {16, PNG_COLOR_TYPE_GRAY_ALPHA, false, false},
       {90, 0, 0, 0, 90, 0, 255, 255},
       {0, 0, 0, 90, 90, 90}},
      {"palette", {8, PNG_COLOR_TYPE_PALETTE, false, false}, {0, 1}, {10, 20, 30, 200, 100, 50}},
      {"palette 1", {1, PNG_COLOR_TYPE_PALETTE, false, false}, {0x40}, {10, 20, 30, 200, 100, 50}},
      {"palette alpha", {8, PNG_COLOR_TYPE_PALETTE, true, false}, {0, 1}, {0, 0, 0, 200, 100, 50}},
      {"rgb", {8, PNG_COLOR_TYPE_RGB, false, false}, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
      {"rgb key", {8, PNG_COLOR_TYPE_RGB, true, false}, {0, 0, 0, 4, 5, 6}, {0, 0, 0, 4, 5, 6}},
      {"rgb 16",
       {16, PNG_COLOR_TYPE_RGB, false, false},
       {1, 9, 2, 9, 3, 9, 4, 9, 5, 9, 6, 9},
       {1, 2, 3, 4, 5, 6}},
      {"rgba",
       {8, PNG_COLOR_TYPE_RGBA, false, false},
       {1, 2, 3, 0, 4, 5, 6, 255},
       {0, 0, 0, 4, 5, 6}},
      {"rgba 16",
       {16, PNG_COLOR_TYPE_RGBA, false, false},
       {1, 9, 2, 9, 3, 9, 0, 0, 4, 9, 5, 9, 6, 9, 255, 255},
       {0, 0, 0, 4, 5, 6}},
  };
  for (const Case& c : cases) {
    for (const bool interlaced : {false, true}) {
      PngFormat format = c.format;
      format.interlaced = interlaced;
      const std::string file = MakePng(2, 3, format, c.row);
      const auto info = ReadImageInfo(file, kLimit);
      ASSERT_TRUE(info.ok()) << c.name;
      EXPECT_EQ(info->channels, format.color_type & PNG_COLOR_MASK_COLOR ? 3u : 1u) << c.name;
      std::vector<uint8_t> rgb(2 * 3 * 3), want, gray(2 * 3);
      for (int y = 0; y < 3; ++y) want.insert(want.end(), c.rgb.begin(), c.rgb.end());
      const absl::Status status = DecodeImage(file, kLimit, 3, rgb.data(), rgb.size());
      EXPECT_TRUE(status.ok()) << c.name << ": " << status;
      EXPECT_EQ(rgb, want) << c.name;
      ASSERT_TRUE(DecodeImage(file, kLimit, 1, gray.data(), gray.size()).ok()) << c.name;
      const std::vector<uint8_t>& p = c.rgb;
      EXPECT_EQ(gray[1], (299 * p[3] + 587 * p[4] + 114 * p[5] + 500) / 1000) << c.name;
    }
  }
}

// ---- JPEG

// A plain picture in `components` of colour space `space`; `scans` replaces libjpeg's own choice.
std::string MakeJpeg(int side, int components, J_COLOR_SPACE space,
                     std::vector<jpeg_scan_info> scans = {}) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr error;
  jpeg.err = jpeg_std_error(&error);
  jpeg_create_compress(&jpeg);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &buffer, &size);
  jpeg.image_width = jpeg.image_height = static_cast<JDIMENSION>(side);
  jpeg.input_components = components;
  jpeg.in_color_space = space;
  jpeg_set_defaults(&jpeg);
  if (!scans.empty()) {
    jpeg.scan_info = scans.data();
    jpeg.num_scans = static_cast<int>(scans.size());
  }
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<JSAMPLE> pixels(static_cast<size_t>(side * components), 90);
  JSAMPROW row = pixels.data();
  while (jpeg.next_scanline < jpeg.image_height) jpeg_write_scanlines(&jpeg, &row, 1);
  jpeg_finish_compress(&jpeg);
  std::string out(reinterpret_cast<char*>(buffer), size);
  jpeg_destroy_compress(&jpeg);
  std::free(buffer);
  return out;
}

// A progressive JPEG whose last scan comes `times` times.
std::string JpegOfManyScans(int side, int times) {
  const std::string one =
      MakeJpeg(side, 1, JCS_GRAYSCALE, {{1, {0}, 0, 0, 0, 0}, {1, {0}, 1, 63, 0, 0}});
  const size_t begin = one.rfind("\xff\xda"), end = one.size() - 2;
  std::string file = one.substr(0, end);
  for (int i = 1; i < times; ++i) file += one.substr(begin, end - begin);
  return file + one.substr(end);
}

TEST(HostileJpeg, MoreScansThanAnyEncoderWritesAreRefused) {
  std::vector<uint8_t> pixels(64 * 64);
  const std::string some = JpegOfManyScans(64, 20), many = JpegOfManyScans(64, 500);
  EXPECT_TRUE(DecodeImage(some, kLimit, 1, pixels.data(), pixels.size()).ok());
  EXPECT_EQ(pixels[64 * 64 - 1], 90);
  const absl::Status status = DecodeImage(many, kLimit, 1, pixels.data(), pixels.size());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("scans"), std::string_view::npos) << status;
}

TEST(HostileJpeg, CmykIsRefusedByName) {
  const std::string file = MakeJpeg(16, 4, JCS_CMYK);
  EXPECT_EQ(ReadImageInfo(file, kLimit).status().message(), "image: JPEG: CMYK is not supported");
  std::vector<uint8_t> pixels(16 * 16 * 3);
  EXPECT_EQ(DecodeImage(file, kLimit, 3, pixels.data(), pixels.size()).message(),
            "image: JPEG: CMYK is not supported");
}

TEST(HostileJpeg, GrayComesBackGrayInBothChannelCounts) {
  const std::string file = MakeJpeg(16, 1, JCS_GRAYSCALE);
  EXPECT_EQ(ReadImageInfo(file, kLimit)->channels, 1u);
  std::vector<uint8_t> gray(16 * 16), rgb(16 * 16 * 3);
  ASSERT_TRUE(DecodeImage(file, kLimit, 1, gray.data(), gray.size()).ok());
  ASSERT_TRUE(DecodeImage(file, kLimit, 3, rgb.data(), rgb.size()).ok());
  EXPECT_EQ(gray, std::vector<uint8_t>(16 * 16, 90));
  EXPECT_EQ(rgb, std::vector<uint8_t>(16 * 16 * 3, 90));
}

TEST(HostileJpeg, NothingIsPrintedForDamagedFiles) {
  const std::string good = MakeJpeg(16, 3, JCS_RGB);
  std::vector<uint8_t> pixels(16 * 16 * 3);
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  for (size_t i = 2; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0xff);
    static_cast<void>(DecodeImage(bad, kLimit, 3, pixels.data(), pixels.size()));
  }
  const std::string png = MakePng(2, 2, {8, PNG_COLOR_TYPE_RGB, false, false}, {1, 2, 3, 4, 5, 6});
  for (size_t i = 8; i < png.size(); ++i) {
    std::string bad = png;
    bad[i] = static_cast<char>(bad[i] ^ 0xff);
    static_cast<void>(DecodeImage(bad, kLimit, 3, pixels.data(), 12));
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

// Every EXIF block of up to 40 bytes cut from a good one, and every byte of it changed.
TEST(HostileJpeg, ExifIsReadWithinItsBounds) {
  const std::string exif(
      "Exif\0\0II\x2a\0\x08\0\0\0\x02\0\x0f\x01\x02\0\x01\0\0\0x\0\0\0\x12\x01\x03\0\x01\0\0\0\x06"
      "\0\0"
      "\0",
      40);
  EXPECT_EQ(ExifOrientation(exif), 6);
  for (size_t size = 0; size < exif.size(); ++size) {
    // An exact heap copy, so that a read past it is seen.
    const std::vector<char> cut(exif.begin(), exif.begin() + static_cast<long>(size));
    EXPECT_EQ(ExifOrientation({cut.data(), cut.size()}), 1) << size;
  }
  for (size_t i = 0; i < exif.size(); ++i) {
    for (const int value : {0, 1, 9, 0x7f, 0x80, 0xff}) {
      std::vector<char> bad(exif.begin(), exif.end());
      bad[i] = static_cast<char>(value);
      const int orientation = ExifOrientation({bad.data(), bad.size()});
      EXPECT_TRUE(orientation >= 1 && orientation <= 8);
    }
  }
}

}  // namespace
}  // namespace mk
