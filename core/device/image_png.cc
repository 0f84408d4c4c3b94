#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/device/image_formats.h"

namespace mk {
namespace {

struct Source {
  std::string_view left;
  char message[128] = {};
};

[[noreturn]] void OnError(png_structp png, png_const_charp text) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  std::strncpy(source->message, text, sizeof source->message - 1);
  png_longjmp(png, 1);
}

void OnWarning(png_structp, png_const_charp) {}

void Read(png_structp png, png_bytep out, size_t size) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (size > source->left.size()) png_error(png, "the file ends early");
  std::memcpy(out, source->left.data(), size);
  source->left.remove_prefix(size);
}

// Reads the header (and, with `pixels`, all of it) of a PNG whose chunks carry checksums, so damage
// is always seen. `rgba` and `rows` live outside of setjmp's reach.
absl::Status ReadPng(std::string_view file, StoredImage& image, std::vector<uint8_t>* rgba,
                     std::vector<png_bytep>* rows) {
  Source source{file};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, &OnError, &OnWarning);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  if (info == nullptr) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    return absl::ResourceExhaustedError("image: PNG: out of memory");
  }
  if (setjmp(png_jmpbuf(png))) {
    png_destroy_read_struct(&png, &info, nullptr);
    return absl::InvalidArgumentError(absl::StrCat("image: PNG: ", source.message));
  }
  png_set_read_fn(png, &source, &Read);
  png_set_user_limits(png, 0x7fffffff, 0x7fffffff);  // ours come after the header
  // Comments, profiles and the like are not used. Skipped unread, as a small file of compressed
  // ones unpacks to gigabytes.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_chunk_malloc_max(png, 8 << 20);
  png_read_info(png, info);
  image.width = png_get_image_width(png, info);
  image.height = png_get_image_height(png, info);
  image.channels = (png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR) ? 3 : 1;
  if (rgba != nullptr) {
    // Everything becomes 8-bit RGBA; what to keep of it is decided by the caller.
    png_set_expand(png);
    png_set_strip_16(png);
    png_set_gray_to_rgb(png);
    png_set_add_alpha(png, 0xff, PNG_FILLER_AFTER);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    const size_t pitch = png_get_rowbytes(png, info);
    rgba->resize(pitch * static_cast<size_t>(image.height));
    rows->resize(static_cast<size_t>(image.height));
    for (size_t y = 0; y < rows->size(); ++y) (*rows)[y] = rgba->data() + y * pitch;
    png_read_image(png, rows->data());
    png_read_end(png, nullptr);
  }
  png_destroy_read_struct(&png, &info, nullptr);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StoredImage> ReadPngHeader(std::string_view file) {
  StoredImage image;
  const absl::Status status = ReadPng(file, image, nullptr, nullptr);
  if (!status.ok()) return status;
  return image;
}

absl::Status DecodePng(std::string_view file, uint32_t channels, uint8_t* pixels) {
  StoredImage image;
  std::vector<uint8_t> rgba;
  std::vector<png_bytep> rows;
  const absl::Status status = ReadPng(file, image, &rgba, &rows);
  if (!status.ok()) return status;
  const size_t count = static_cast<size_t>(image.width) * static_cast<size_t>(image.height);
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* from = rgba.data() + i * 4;
    uint32_t rgb[3];
    for (int c = 0; c < 3; ++c) rgb[c] = (from[c] * from[3] + 127u) / 255u;  // over black
    if (channels == 3) {
      for (int c = 0; c < 3; ++c) pixels[i * 3 + c] = static_cast<uint8_t>(rgb[c]);
    } else if (image.channels == 1) {
      pixels[i] = static_cast<uint8_t>(rgb[0]);
    } else {
      pixels[i] = static_cast<uint8_t>((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
    }
  }
  return absl::OkStatus();
}

}  // namespace mk
