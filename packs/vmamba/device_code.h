// The device code that the pack was built with: one module per op. Which images they have, those
// for GPUs or those of the emulator, is a matter of what is linked.
#ifndef MERGEKERNEL_PACKS_VMAMBA_DEVICE_CODE_H_
#define MERGEKERNEL_PACKS_VMAMBA_DEVICE_CODE_H_

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/conv/conv3x3_f16.h"
#include "kernels/conv/depthwise_f16.h"
#include "kernels/device/image.h"
#include "kernels/image/resize_normalize_f16.h"
#include "kernels/linear/feed_forward_f16.h"
#include "kernels/linear/linear_f16.h"
#include "kernels/linear/row_stats_f16.h"
#include "kernels/norm/layer_norm_f16.h"
#include "kernels/pool/global_average_pool_f16.h"
#include "kernels/scan/cross_scan_f16.h"

namespace mk::vmamba {

struct DeviceCode {
  const DeviceModule* conv3x3;
  const DeviceModule* cross_scan;
  const DeviceModule* depthwise;
  const DeviceModule* feed_forward;
  const DeviceModule* global_average_pool;
  const DeviceModule* layer_norm;
  const DeviceModule* linear;
  const DeviceModule* resize_normalize;
  const DeviceModule* row_stats;
};

// Defined by device_code.cc, and for tests by testing/device_code_emulated.cc.
DeviceCode BuiltDeviceCode();

// The kernels of all ops, loaded: handles that live as long as the model.
struct DeviceKernels {
  Conv3x3F16Kernels conv3x3;
  CrossScanF16Kernels cross_scan;
  DepthwiseF16Kernels depthwise;
  FeedForwardF16Kernels feed_forward;
  GlobalAveragePoolF16Kernels global_average_pool;
  LayerNormF16Kernels layer_norm;
  LinearF16Kernels linear;
  ResizeNormalizeF16Kernels resize_normalize;
  RowStatsF16Kernels row_stats;

  static Result<DeviceKernels> Load(const Host& host, const DeviceCode& code);
};

}  // namespace mk::vmamba

#endif  // MERGEKERNEL_PACKS_VMAMBA_DEVICE_CODE_H_
