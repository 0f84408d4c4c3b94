#include "packs/vmamba/device_code.h"

namespace mk::vmamba {

Result<DeviceKernels> DeviceKernels::Load(const Host& host, const DeviceCode& code) {
  const mk_device_service* const facts = host.device_facts();
  const mk_i32 sms = facts != nullptr && facts->sm_count != 0 ? static_cast<mk_i32>(facts->sm_count)
                                                              : 16;  // AGX Orin's
  DeviceKernels k;
  MK_TRY_ASSIGN(k.conv3x3, Conv3x3F16Kernels::Load(host, *code.conv3x3, sms));
  MK_TRY_ASSIGN(k.cross_scan, CrossScanF16Kernels::Load(host, *code.cross_scan));
  MK_TRY_ASSIGN(k.depthwise, DepthwiseF16Kernels::Load(host, *code.depthwise));
  MK_TRY_ASSIGN(k.global_average_pool,
                GlobalAveragePoolF16Kernels::Load(host, *code.global_average_pool));
  MK_TRY_ASSIGN(k.layer_norm, LayerNormF16Kernels::Load(host, *code.layer_norm));
  MK_TRY_ASSIGN(k.linear, LinearF16Kernels::Load(host, *code.linear, sms));
  MK_TRY_ASSIGN(k.resize_normalize, ResizeNormalizeF16Kernels::Load(host, *code.resize_normalize));
  MK_TRY_ASSIGN(k.row_stats, RowStatsF16Kernels::Load(host, *code.row_stats));
  MK_TRY_ASSIGN(k.feed_forward,
                FeedForwardF16Kernels::Load(host, *code.feed_forward, k.linear, k.row_stats));
  return k;
}

}  // namespace mk::vmamba
