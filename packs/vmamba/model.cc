#include "packs/vmamba/model.h"

#include <string>

#include "kernels/simd/isa.h"
#include "packs/vmamba/network.h"
#include "packs/vmamba/preprocess.h"
#include "packs/vmamba/source.h"

namespace mk::vmamba {
namespace {

constexpr char kLogits[] = "logits";

// Pixels, decoded into scratch where need be, to the network's input.
Status PrepareSource(Context& context, const Preprocessing& preprocessing, const PreparePlan& plan,
                     const Source& source, float* input) {
  if (source.pixels != nullptr) {
    return Prepare(context, preprocessing, plan, source.pixels, input);
  }
  const ScratchScope scope(context);
  const int64_t size = source.size.height * source.size.width * source.size.channels;
  MK_TRY_ASSIGN(uint8_t* const pixels, context.Scratch<uint8_t>(size));
  MK_TRY(Decode(context.host(), source, pixels));
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
  MK_TRY_ASSIGN(Description description, ParseDescription(host));
  if (host.device() != DeviceKind::kCpu) {
    MK_TRY_ASSIGN(std::unique_ptr<DeviceModel> device,
                  DeviceModel::Create(host, description, kWeightsFile));
    return std::unique_ptr<VMamba>(new VMamba(std::move(description), std::move(device)));
  }
  MK_TRY_ASSIGN(Weights weights, LoadWeights(host, description, kWeightsFile));
  host.Log(1, std::string("vmamba: the kernels run with ") + IsaName(BestIsa()));  // 1: information
  return std::unique_ptr<VMamba>(new VMamba(std::move(description), std::move(weights)));
}

Status VMamba::Run(Context& context) {
  const Preprocessing& preprocessing = description_.preprocessing;
  MK_TRY_ASSIGN(const Source source, FindSource(context, preprocessing.max_encoded_pixels));
  MK_TRY_ASSIGN(const PreparePlan plan, PlanPreparation(description_, source.size));
  const int64_t classes = description_.num_classes;
  MK_TRY_ASSIGN(void* const memory, context.Output(kLogits, MK_DTYPE_FP32, {classes},
                                                   static_cast<uint64_t>(classes) * sizeof(float)));
  auto* const logits = static_cast<float*>(memory);
  if (device_ != nullptr) return device_->Run(context, description_, plan, source, logits);
  const ScratchScope scope(context);
  Map input = {nullptr, plan.out_height, plan.out_width, preprocessing.channels};
  MK_TRY_ASSIGN(input.data, context.Scratch<float>(input.tokens() * input.channels));
  MK_TRY(PrepareSource(context, preprocessing, plan, source, input.data));
  return RunNetwork(context, description_, weights_, input, logits, nullptr);
}

}  // namespace mk::vmamba
