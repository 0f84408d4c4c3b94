#include "packs/vmamba/device_model.h"

#include <vector>

#include "packs/vmamba/device_network.h"

namespace mk::vmamba {
namespace {

Status Prepare(Context& context, const DeviceKernels& kernels, const Preprocessing& preprocessing,
               const PreparePlan& plan, const uint8_t* pixels, device::half* input) {
  ResizeNormalizeF16Params params = {};
  params.image = pixels;
  params.y = input;
  SetResize(preprocessing, plan, params);
  return ResizeNormalizeF16(context, kernels.resize_normalize, params);
}

// The source's pixels in device memory: where they are, or decoded into scratch.
Result<const uint8_t*> Pixels(Context& context, const Source& source) {
  if (source.pixels != nullptr) return source.pixels;
  const int64_t size = source.size.height * source.size.width * source.size.channels;
  MK_TRY_ASSIGN(uint8_t* const pixels, context.Scratch<uint8_t>(size));
  std::vector<uint8_t> decoded(static_cast<size_t>(size));
  MK_TRY(Decode(context.host(), source, decoded.data()));
  MK_TRY(context.CopyToDevice(pixels, decoded.data(), decoded.size()));
  return static_cast<const uint8_t*>(pixels);
}

}  // namespace

Result<std::unique_ptr<DeviceModel>> DeviceModel::Create(const Host& host,
                                                         const Description& description,
                                                         const char* file) {
  MK_TRY_ASSIGN(const DeviceKernels kernels, DeviceKernels::Load(host, BuiltDeviceCode()));
  MK_TRY_ASSIGN(DeviceWeights weights, LoadDeviceWeights(host, description, file));
  return std::unique_ptr<DeviceModel>(new DeviceModel(kernels, std::move(weights)));
}

Status DeviceModel::Run(Context& context, const Description& description, const PreparePlan& plan,
                        const Source& source, float* logits) const {
  const ScratchScope scope(context);
  DeviceMap input = {nullptr, plan.out_height, plan.out_width, description.preprocessing.channels};
  MK_TRY_ASSIGN(input.data, context.Scratch<device::half>(input.tokens() * input.channels));
  {
    const ScratchScope pixels_scope(context);
    MK_TRY_ASSIGN(const uint8_t* const pixels, Pixels(context, source));
    MK_TRY(Prepare(context, kernels_, description.preprocessing, plan, pixels, input.data));
  }
  return RunDeviceNetwork(context, description, weights_, kernels_, input, logits);
}

}  // namespace mk::vmamba
