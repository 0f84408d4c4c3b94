// The pack's device code as the emulator runs it.
#include "kernels/conv/conv3x3_f16_kernels_emulated.h"
#include "kernels/conv/depthwise_f16_kernels_emulated.h"
#include "kernels/image/resize_normalize_f16_kernels_emulated.h"
#include "kernels/linear/feed_forward_f16_kernels_emulated.h"
#include "kernels/linear/linear_f16_kernels_emulated.h"
#include "kernels/linear/row_stats_f16_kernels_emulated.h"
#include "kernels/norm/layer_norm_f16_kernels_emulated.h"
#include "kernels/pool/global_average_pool_f16_kernels_emulated.h"
#include "kernels/scan/cross_scan_f16_kernels_emulated.h"
#include "packs/vmamba/device_code.h"

namespace mk::vmamba {
namespace {

// A module with the one image that the emulated device takes.
template <const emu::Module& kModule>
const DeviceModule* Emulated() {
  static constexpr DeviceImage kImage = {ImageKind::kEmulated, 0, 0, &kModule, sizeof(emu::Module)};
  static constexpr DeviceModule kDeviceModule = {"emulated", nullptr, 0, &kImage, 1};
  return &kDeviceModule;
}

}  // namespace

DeviceCode BuiltDeviceCode() {
  return {Emulated<mk_emulated_conv3x3_f16_kernels>(),
          Emulated<mk_emulated_cross_scan_f16_kernels>(),
          Emulated<mk_emulated_depthwise_f16_kernels>(),
          Emulated<mk_emulated_feed_forward_f16_kernels>(),
          Emulated<mk_emulated_global_average_pool_f16_kernels>(),
          Emulated<mk_emulated_layer_norm_f16_kernels>(),
          Emulated<mk_emulated_linear_f16_kernels>(),
          Emulated<mk_emulated_resize_normalize_f16_kernels>(),
          Emulated<mk_emulated_row_stats_f16_kernels>()};
}

}  // namespace mk::vmamba
