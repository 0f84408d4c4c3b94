// The checkpoint as device code wants it: fp16 matrices, fp32 vectors, in the model's device
// memory.
//
// Folds, beside those of weights.h (A, d, x_proj over directions):
//
//   norm -> in_proj, norm2 -> fc1   a LayerNorm folded into the product behind it, as
//                                   kernels/linear/norm_fold.h has it: no norm is launched
//   conv [co, ci, 3, 3]             to [co, 3, 3, ci], fp16: rows of an implicit matrix product
//   dt_projs [4, di, R]             padded to the K of a tensor-core step
#ifndef MERGEKERNEL_PACKS_VMAMBA_DEVICE_WEIGHTS_H_
#define MERGEKERNEL_PACKS_VMAMBA_DEVICE_WEIGHTS_H_

#include <vector>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/device/types.h"
#include "packs/vmamba/description.h"

namespace mk::vmamba {

// All pointers: device memory of the weights region, 256-byte aligned, alive as long as the model.
struct DeviceNorm {
  const float* weight = nullptr;  // [channels]
  const float* bias = nullptr;    // [channels]
};

struct DeviceMatrix {
  const device::half* weight = nullptr;  // [out, in]; of a convolution [co, 3, 3, ci]
  const float* bias = nullptr;           // [out], or null
  const float* norm_sums = nullptr;      // [out], where a norm is folded in; else null
};

struct DeviceScan {
  DeviceMatrix x_proj;                      // [4 (R + 2N), di]
  const device::half* dt_weight = nullptr;  // as PackDtWeight makes it
  const float* dt_bias = nullptr;           // [4, di]
  const float* a = nullptr;                 // [4, N, di]
  const float* d = nullptr;                 // [di]
};

struct DeviceBlock {
  DeviceMatrix in_proj;              // d -> di, norm folded in
  DeviceMatrix gate_proj;            // d -> di, norm folded in; null without a gate
  const float* depthwise = nullptr;  // [3, 3, di]
  DeviceScan scan;
  DeviceNorm out_norm;    // di
  DeviceMatrix out_proj;  // di -> d
  DeviceMatrix fc1;       // d -> hidden, norm2 folded in
  DeviceMatrix fc2;       // hidden -> d
};

struct DeviceStage {
  std::vector<DeviceBlock> blocks;
  DeviceMatrix downsample;  // null in the last stage
  DeviceNorm downsample_norm;
};

struct DeviceWeights {
  DeviceMatrix stem0;
  DeviceNorm stem0_norm;
  DeviceMatrix stem1;
  DeviceNorm stem1_norm;
  std::vector<DeviceStage> stages;
  DeviceNorm head_norm;
  DeviceMatrix head;
};

// Reads `file` into host memory, folds, and uploads tensor by tensor; the host memory is given
// back. The host refuses tensors as LoadWeights does.
Result<DeviceWeights> LoadDeviceWeights(const Host& host, const Description& description,
                                        const char* file);

}  // namespace mk::vmamba

#endif  // MERGEKERNEL_PACKS_VMAMBA_DEVICE_WEIGHTS_H_
