// A request's image before its pixels are looked at: which of the two inputs it came by, and its
// size.
#ifndef MERGEKERNEL_PACKS_VMAMBA_SOURCE_H_
#define MERGEKERNEL_PACKS_VMAMBA_SOURCE_H_

#include <cstdint>
#include <string_view>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "packs/vmamba/preprocess.h"

namespace mk::vmamba {

inline constexpr char kImage[] = "image";
inline constexpr char kEncodedImage[] = "encoded_image";

struct Source {
  ImageSize size;
  const uint8_t* pixels = nullptr;  // of the device; null: still encoded
  std::string_view encoded;         // of the host
};

// InvalidArgument for a request with neither or both images, an `image` that is none, an
// `encoded_image` that cannot be read or passes `max_encoded_pixels`; Unimplemented where the host
// decodes no images.
Result<Source> FindSource(Context& context, int64_t max_encoded_pixels);

// The pixels of an encoded source, size.height * size.width * size.channels bytes, to host memory.
Status Decode(const Host& host, const Source& source, uint8_t* pixels);

}  // namespace mk::vmamba

#endif  // MERGEKERNEL_PACKS_VMAMBA_SOURCE_H_
