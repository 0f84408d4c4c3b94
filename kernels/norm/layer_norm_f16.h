// LayerNorm, or RMSNorm, of fp16 rows on a GPU, with a residual added before it and an activation
// behind it:
//
//   s[i, c] = half(x[i, c] + residual[i, c])         where there is a residual; else x[i, c]
//   mean_i  = sum_c s[i, c] / C                      RMSNorm: 0
//   var_i   = sum_c (s[i, c] - mean_i)^2 / C
//   y[i, c] = half(act((s[i, c] - mean_i) / sqrt(var_i + epsilon) * weight[c] + bias[c]))
//
// All of it in fp32 but for what is stored; the variance in a second pass over the row, so that a
// large mean does not cancel it. The norm is of the sum as it is stored, so the fused op gives what
// an addition and a norm would give one behind the other.
// Moves 4 rows C bytes, with a residual 8 rows C, and 8 C of weights. Twin: LayerNormF16Cpu.
// Source: Ba, Kiros, Hinton, arXiv 1607.06450; Zhang, Sennrich, arXiv 1910.07467; code ours.
#ifndef MERGEKERNEL_KERNELS_NORM_LAYER_NORM_F16_H_
#define MERGEKERNEL_KERNELS_NORM_LAYER_NORM_F16_H_

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/device/image.h"
#include "kernels/norm/layer_norm_f16_params.h"
#include "kernels/op.h"

namespace mk {

// The device code of layer_norm_f16.cu. A copyable handle, valid as long as the model.
struct LayerNormF16Kernels {
  // A row in the registers of 8, 16 or 32 lanes, by chunks of 8 channels: up to 64, 128, 256, 512,
  // 1024 channels.
  Kernel<LayerNormF16Params> lanes8, lanes16, lanes32, chunks2, chunks4;
  Kernel<LayerNormF16Params> wide;  // any multiple of 8 channels
  Kernel<LayerNormF16Params> any;

  // Only during create. `module` is mk_images_layer_norm_f16_kernels, or its emulated twin.
  static Result<LayerNormF16Kernels> Load(const Host& host, const DeviceModule& module);
};

// InvalidArgument naming the first broken precondition of LayerNormF16Params.
Status CheckLayerNormF16(const LayerNormF16Params& params);

// REQUIRES CheckLayerNormF16(params) is OK.
LaunchCost LayerNormF16Cost(const LayerNormF16Params& params);

// Checks and starts one launch; takes no scratch, does not wait.
Status LayerNormF16(Context& context, const LayerNormF16Kernels& kernels,
                    const LayerNormF16Params& params);

// The CPU twin, over host memory: plain loops in double, one rounding where the device stores.
// REQUIRES CheckLayerNormF16(params) is OK.
void LayerNormF16Cpu(const LayerNormF16Params& params);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_NORM_LAYER_NORM_F16_H_
