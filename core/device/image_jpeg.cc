#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <string>
// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>

#include "absl/strings/str_cat.h"
#include "core/device/image_formats.h"

namespace mk {
namespace {

// Encoders write a dozen scans. A file of nothing but tiny scans over a large area would hold a
// thread for minutes.
constexpr int kMaxScans = 100;

// libjpeg ends in longjmp on an error, so no object with a destructor may live between setjmp and
// the last call.
struct ErrorManager {
  jpeg_error_mgr base;
  jpeg_progress_mgr progress;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void OnError(j_common_ptr common) {
  auto* manager = reinterpret_cast<ErrorManager*>(common->err);
  manager->base.format_message(common, manager->message);
  std::longjmp(manager->jump, 1);
}

// A warning means damaged or missing data, which libjpeg would paint gray: here it is an error.
void OnMessage(j_common_ptr common, int level) {
  if (level < 0) OnError(common);
}

void Quiet(j_common_ptr) {}

void CountScans(j_common_ptr common) {
  if (reinterpret_cast<j_decompress_ptr>(common)->input_scan_number <= kMaxScans) return;
  auto* manager = reinterpret_cast<ErrorManager*>(common->err);
  std::snprintf(manager->message, sizeof manager->message, "more than %d scans", kMaxScans);
  std::longjmp(manager->jump, 1);
}

void Prepare(ErrorManager& manager, jpeg_decompress_struct& jpeg, std::string_view file) {
  jpeg_create_decompress(&jpeg);
  jpeg.progress = &manager.progress;
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(file.data()), file.size());
}

void InstallErrors(ErrorManager& manager, jpeg_decompress_struct& jpeg) {
  jpeg.err = jpeg_std_error(&manager.base);
  manager.base.error_exit = &OnError;
  manager.base.emit_message = &OnMessage;
  manager.base.output_message = &Quiet;
  manager.progress = {};
  manager.progress.progress_monitor = &CountScans;
  manager.message[0] = '\0';
}

absl::Status Damaged(const ErrorManager& manager) {
  return absl::InvalidArgumentError(absl::StrCat("image: JPEG: ", manager.message));
}

uint32_t Read16(std::string_view bytes, size_t at, bool little) {
  const auto low = static_cast<uint8_t>(bytes[little ? at : at + 1]);
  const auto high = static_cast<uint8_t>(bytes[little ? at + 1 : at]);
  return static_cast<uint32_t>(low | (high << 8));
}

uint32_t Read32(std::string_view bytes, size_t at, bool little) {
  const uint32_t first = Read16(bytes, at, little), second = Read16(bytes, at + 2, little);
  return little ? first | (second << 16) : (first << 16) | second;
}

}  // namespace

int ExifOrientation(std::string_view app1) {
  if (app1.substr(0, 6) != std::string_view("Exif\0\0", 6)) return 1;
  const std::string_view tiff = app1.substr(6);
  if (tiff.size() < 8) return 1;
  const bool little = tiff.substr(0, 2) == "II";
  if (!little && tiff.substr(0, 2) != "MM") return 1;
  const uint64_t directory = Read32(tiff, 4, little);
  if (directory + 2 > tiff.size()) return 1;
  const uint64_t entries = Read16(tiff, directory, little);
  for (uint64_t i = 0; i < entries; ++i) {
    const uint64_t at = directory + 2 + i * 12;
    if (at + 12 > tiff.size()) return 1;
    constexpr uint32_t kOrientationTag = 0x0112, kShort = 3;
    if (Read16(tiff, at, little) == kOrientationTag && Read16(tiff, at + 2, little) == kShort) {
      const uint32_t value = Read16(tiff, at + 8, little);
      return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
    }
  }
  return 1;
}

absl::StatusOr<StoredImage> ReadJpegHeader(std::string_view file) {
  ErrorManager manager;
  jpeg_decompress_struct jpeg;
  InstallErrors(manager, jpeg);
  if (setjmp(manager.jump)) {
    jpeg_destroy_decompress(&jpeg);
    return Damaged(manager);
  }
  Prepare(manager, jpeg, file);
  jpeg_save_markers(&jpeg, JPEG_APP0 + 1, 0xffff);
  jpeg_read_header(&jpeg, TRUE);
  StoredImage image;
  image.width = jpeg.image_width;
  image.height = jpeg.image_height;
  image.channels = jpeg.num_components == 1 ? 1 : 3;
  const bool cmyk = jpeg.num_components == 4;
  for (jpeg_saved_marker_ptr marker = jpeg.marker_list; marker; marker = marker->next) {
    const int orientation = ExifOrientation(
        std::string_view(reinterpret_cast<const char*>(marker->data), marker->data_length));
    if (orientation != 1) image.orientation = orientation;
  }
  jpeg_destroy_decompress(&jpeg);
  if (cmyk) return absl::InvalidArgumentError("image: JPEG: CMYK is not supported");
  return image;
}

absl::Status DecodeJpeg(std::string_view file, uint32_t channels, uint8_t* pixels) {
  ErrorManager manager;
  jpeg_decompress_struct jpeg;
  InstallErrors(manager, jpeg);
  if (setjmp(manager.jump)) {
    jpeg_destroy_decompress(&jpeg);
    return Damaged(manager);
  }
  Prepare(manager, jpeg, file);
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&jpeg);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row =
        pixels + static_cast<size_t>(jpeg.output_scanline) * jpeg.output_width * channels;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return absl::OkStatus();
}

}  // namespace mk
