#include "packs/vmamba/source.h"

#include <cstring>
#include <string>

namespace mk::vmamba {
namespace {

Status FromImageService(const mk_image_service& service, mk_status code) {
  const char* reason = service.last_error(service.self);
  return {code, std::string("vmamba: encoded_image: ") + (reason != nullptr ? reason : "refused")};
}

// The one element of a BYTES tensor.
Result<std::string_view> SingleElement(const mk_tensor& tensor) {
  uint32_t size = 0;
  if (tensor.size_bytes >= sizeof(size)) std::memcpy(&size, tensor.data, sizeof(size));
  if (tensor.size_bytes < sizeof(size) || size != tensor.size_bytes - sizeof(size)) {
    return InvalidArgument("vmamba: encoded_image: " + std::to_string(tensor.size_bytes) +
                           " bytes are not one length-prefixed element");
  }
  return std::string_view(static_cast<const char*>(tensor.data) + sizeof(size), size);
}

Result<Source> RawSource(const mk_tensor& image) {
  if (image.rank != 3) {
    return InvalidArgument("vmamba: image rank " + std::to_string(image.rank) + " is not 3");
  }
  Source source;
  source.size = {image.shape[0], image.shape[1], image.shape[2]};
  source.pixels = static_cast<const uint8_t*>(image.data);
  return source;
}

Result<Source> EncodedSource(const Host& host, const mk_tensor& tensor, int64_t max_pixels) {
  const mk_image_service* service = host.image();
  if (service == nullptr) {
    return Unimplemented("vmamba: encoded_image: this host decodes no images; send image");
  }
  Source source;
  MK_TRY_ASSIGN(source.encoded, SingleElement(tensor));
  mk_image_info info = {};
  info.struct_size = sizeof(info);
  if (const mk_status s =
          service->info(service->self, source.encoded.data(), source.encoded.size(), &info)) {
    return FromImageService(*service, s);
  }
  // Sides first, so that their product cannot overflow.
  if (info.width > kMaxImageSide || info.height > kMaxImageSide ||
      info.width * info.height > max_pixels) {
    return InvalidArgument("vmamba: encoded_image of " + std::to_string(info.height) + " x " +
                           std::to_string(info.width) + " pixels passes " +
                           std::to_string(max_pixels) + " pixels or a side of " +
                           std::to_string(kMaxImageSide) + "; send it smaller, or as image");
  }
  source.size = {info.height, info.width, static_cast<int64_t>(info.channels)};
  return source;
}

}  // namespace

Result<Source> FindSource(Context& context, int64_t max_encoded_pixels) {
  const mk_tensor* image = context.Input(kImage);
  const mk_tensor* encoded = context.Input(kEncodedImage);
  if ((image == nullptr) == (encoded == nullptr)) {
    return InvalidArgument(
        std::string("vmamba: send exactly one of image and encoded_image; got ") +
        (image == nullptr ? "neither" : "both"));
  }
  if (image != nullptr) return RawSource(*image);
  return EncodedSource(context.host(), *encoded, max_encoded_pixels);
}

Status Decode(const Host& host, const Source& source, uint8_t* pixels) {
  const mk_image_service* service = host.image();
  const auto size =
      static_cast<mk_u64>(source.size.height * source.size.width * source.size.channels);
  if (const mk_status s =
          service->decode(service->self, source.encoded.data(), source.encoded.size(),
                          static_cast<mk_u32>(source.size.channels), pixels, size)) {
    return FromImageService(*service, s);
  }
  return Ok();
}

}  // namespace mk::vmamba
