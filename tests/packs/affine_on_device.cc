// A pack for both kinds of device: Y = w[0] * X + w[1], by loops on the CPU and by the kernel
// mk_affine elsewhere. Its device code is the smallest text that a driver of our own accepts.
#include <cstdint>
#include <memory>
#include <vector>

#include "core/sdk/pack.h"
#include "tests/packs/affine_params.h"

namespace mk {
namespace {

constexpr char kPtx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry mk_affine()\n{ ret; }\n";

struct AffineOnDevice {
  static Status Describe(const Host&, SignatureBuilder& s) {
    s.Input("X", MK_DTYPE_FP32, {-1});
    s.Output("Y", MK_DTYPE_FP32, {-1});
    return Ok();
  }
  static Result<std::unique_ptr<AffineOnDevice>> Create(const Host& host) {
    auto pack = std::make_unique<AffineOnDevice>();
    MK_TRY_ASSIGN(void* memory, host.AllocateWeights(2 * sizeof(float)));
    pack->w = static_cast<float*>(memory);
    const int64_t shape[] = {2};
    // By way of the host where the manifest asks for it, else straight into its place.
    float folded[2] = {};
    const bool by_host = host.Parameter("load", "") == "host";
    std::vector<mk_weight> weights = {{"w", MK_DTYPE_FP32, 1, shape,
                                       by_host ? static_cast<void*>(folded) : memory,
                                       by_host ? MK_WEIGHT_HOST : 0, 0}};
    MK_TRY(host.LoadWeights("model.safetensors", weights));
    if (by_host) MK_TRY(host.UploadWeights(memory, folded, sizeof folded));
    if (host.device() == DeviceKind::kCpu) return pack;
    const std::vector<mk_kernel_image> images = {
        {MK_IMAGE_CUBIN, 110, 13000, 0, "not for this one", 16},
        {MK_IMAGE_PTX, 80, 12000, 0, kPtx, sizeof kPtx}};
    MK_TRY_ASSIGN(mk_module * module, host.LoadModule("affine", images));
    MK_TRY_ASSIGN(pack->affine, host.FindKernel<AffineParams>(module, "mk_affine"));
    return pack;
  }
  Status Run(Context& context) {
    const mk_tensor* x = context.Input("X");
    const int64_t count = x->shape[0];
    MK_TRY_ASSIGN(void* y, context.Output("Y", MK_DTYPE_FP32, {count}, x->size_bytes));
    const AffineParams params = {static_cast<float*>(y), static_cast<const float*>(x->data), w,
                                 count};
    if (context.device() == DeviceKind::kCpu) {
      for (int64_t i = 0; i < count; ++i) params.y[i] = w[0] * params.x[i] + w[1];
      return Ok();
    }
    if (count == 0) return Ok();
    const auto blocks = static_cast<uint32_t>((count + 255) / 256);
    return context.Launch(affine, {blocks, 1, 1}, {256, 1, 1}, 0, params,
                          {2 * x->size_bytes, 2 * static_cast<uint64_t>(count), 0});
  }

  float* w = nullptr;  // [2], device
  Kernel<AffineParams> affine;
};

}  // namespace
}  // namespace mk

MK_PACK_MINOR(mk::AffineOnDevice, "affine", 1, 1);
