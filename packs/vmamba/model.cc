#include "packs/vmamba/model.h"

#include <cstring>
#include <string>
#include <string_view>

#include "kernels/op.h"
#include "kernels/simd/isa.h"
#include "packs/vmamba/network.h"
#include "packs/vmamba/preprocess.h"

namespace mk::vmamba {
namespace {

constexpr char kImage[] = "image";
constexpr char kEncodedImage[] = "encoded_image";
constexpr char kLogits[] = "logits";

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

// A request's image before its pixels are looked at.
struct Source {
  ImageSize size;
  const uint8_t* pixels = nullptr;  // null: still encoded
  std::string_view encoded;
};

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

// Pixels, decoded into scratch where need be, to the network's input.
Status PrepareSource(Context& context, const Preprocessing& preprocessing, const PreparePlan& plan,
                     const Source& source, float* input) {
  if (source.pixels != nullptr) {
    return Prepare(context, preprocessing, plan, source.pixels, input);
  }
  const ScratchScope scope(context);
  const int64_t size = source.size.height * source.size.width * source.size.channels;
  MK_TRY_ASSIGN(uint8_t* const pixels, context.Scratch<uint8_t>(size));
  const mk_image_service* service = context.host().image();
  if (const mk_status s = service->decode(
          service->self, source.encoded.data(), source.encoded.size(),
          static_cast<mk_u32>(source.size.channels), pixels, static_cast<mk_u64>(size))) {
    return FromImageService(*service, s);
  }
  if (context.cancelled()) return Cancelled("vmamba: cancelled after decoding");
  return Prepare(context, preprocessing, plan, pixels, input);
}

}  // namespace

Status VMamba::Describe(const Host& host, SignatureBuilder& signature) {
  MK_TRY_ASSIGN(const Description description, ParseDescription(host));
  signature.Input(kImage, MK_DTYPE_UINT8, {-1, -1, -1}, /*optional=*/true);
  signature.Input(kEncodedImage, MK_DTYPE_BYTES, {1}, /*optional=*/true);
  signature.Output(kLogits, MK_DTYPE_FP32, {description.num_classes});
  return Ok();
}

Result<std::unique_ptr<VMamba>> VMamba::Create(const Host& host) {
  if (host.device() != DeviceKind::kCpu) return NotOnDevice("vmamba", host.device());
  MK_TRY_ASSIGN(Description description, ParseDescription(host));
  MK_TRY_ASSIGN(Weights weights, LoadWeights(host, description, kWeightsFile));
  host.Log(1, std::string("vmamba: the kernels run with ") + IsaName(BestIsa()));  // 1: information
  return std::unique_ptr<VMamba>(new VMamba(std::move(description), std::move(weights)));
}

Status VMamba::Run(Context& context) {
  const Preprocessing& preprocessing = description_.preprocessing;
  MK_TRY_ASSIGN(const Source source, FindSource(context, preprocessing.max_encoded_pixels));
  MK_TRY_ASSIGN(const PreparePlan plan, PlanPreparation(description_, source.size));
  const ScratchScope scope(context);
  Map input = {nullptr, plan.out_height, plan.out_width, preprocessing.channels};
  MK_TRY_ASSIGN(input.data, context.Scratch<float>(input.tokens() * input.channels));
  MK_TRY(PrepareSource(context, preprocessing, plan, source, input.data));
  MK_TRY_ASSIGN(void* const logits,
                context.Output(kLogits, MK_DTYPE_FP32, {description_.num_classes},
                               static_cast<uint64_t>(description_.num_classes) * sizeof(float)));
  return RunNetwork(context, description_, weights_, input, static_cast<float*>(logits), nullptr);
}

}  // namespace mk::vmamba
