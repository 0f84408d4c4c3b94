// What a GPU gives at most, as a pack like any other, so that `mk explain --measure` clocks it like
// any other: copies of five sizes (the small ones stay in the L2 cache), tensor cores, fp32.
#include "core/sdk/pack.h"

#include <cstdint>
#include <memory>

#include "kernels/roof/roof.h"
#include "kernels/roof/roof_kernels_images.h"

namespace mk {
namespace {

constexpr int64_t kMostBytes = int64_t{64} << 20;
constexpr int64_t kCopies[] = {int64_t{256} << 10, int64_t{1} << 20, int64_t{4} << 20,
                               int64_t{16} << 20, kMostBytes};
constexpr int64_t kBlocksPerSm = 8;  // as many as fit; more than one round would say nothing else
constexpr int64_t kMostSms = 512;
constexpr mk_i32 kSteps = 2048;

class Roof {
 public:
  static Status Describe(const Host&, SignatureBuilder& signature) {
    signature.Input("X", MK_DTYPE_FP32, {1});
    signature.Output("Y", MK_DTYPE_FP32, {kRoofThreads});
    return Ok();
  }

  static Result<std::unique_ptr<Roof>> Create(const Host& host) {
    auto roof = std::make_unique<Roof>();
    const mk_device_service* facts = host.device_facts();
    roof->sms_ = facts == nullptr || facts->sm_count == 0 ? 1 : facts->sm_count;
    if (roof->sms_ > kMostSms) roof->sms_ = kMostSms;
    MK_TRY_ASSIGN(roof->kernels_, RoofKernels::Load(host, mk_images_roof_kernels));
    return roof;
  }

  Status Run(Context& context) {
    MK_TRY_ASSIGN(void* y,
                  context.Output("Y", MK_DTYPE_FP32, {kRoofThreads}, kRoofThreads * sizeof(float)));
    MK_TRY_ASSIGN(char* from, context.Scratch<char>(kMostBytes));
    MK_TRY_ASSIGN(char* to, context.Scratch<char>(kMostBytes));
    MK_TRY_ASSIGN(float* sums, context.Scratch<float>(kMostSms * kBlocksPerSm * kRoofThreads));
    for (const int64_t bytes : kCopies) {
      MK_TRY(RoofCopy(context, kernels_, {from, to, bytes}));
    }
    MK_TRY(RoofTensor(context, kernels_, {sums, 1, kSteps}, sms_ * kBlocksPerSm));
    MK_TRY(RoofFp32(context, kernels_, {sums, 1, kSteps}, sms_ * kBlocksPerSm));
    return RoofCopy(context, kernels_, {sums, y, kRoofThreads * sizeof(float)});
  }

 private:
  RoofKernels kernels_;
  int64_t sms_ = 1;
};

}  // namespace
}  // namespace mk

MK_PACK_MINOR(mk::Roof, "roof", 1, 2);
