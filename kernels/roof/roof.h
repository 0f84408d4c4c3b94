// What a GPU gives at most, measured by the instructions that the other kernels are made of:
// copies, mma.sync, fused multiply-adds. No model's op; what their times are held against.
//
//   RoofCopy     y = x                              2 bytes per byte
//   RoofTensor   y[t] = kRoofChains 16 x steps      4096 kRoofChains FLOP per warp and step
//   RoofFp32     y[t] = kRoofChains x steps         2 kRoofChains FLOP per thread and step
//
// Source: ours.
#ifndef MERGEKERNEL_KERNELS_ROOF_ROOF_H_
#define MERGEKERNEL_KERNELS_ROOF_ROOF_H_

#include <cstdint>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/device/image.h"
#include "kernels/op.h"
#include "kernels/roof/roof_params.h"

namespace mk {

// The device code of roof.cu. A copyable handle, valid as long as the model.
struct RoofKernels {
  Kernel<RoofCopyParams> copy;
  Kernel<RoofMathParams> tensor, fp32;

  // Only during create. `module` is mk_images_roof_kernels, or its emulated twin.
  static Result<RoofKernels> Load(const Host& host, const DeviceModule& module);
};

// Each checks, and starts one launch of `blocks` (1 to 2^20; for the copy as many as its bytes
// need); takes no scratch, does not wait. InvalidArgument naming the first broken precondition.
Status RoofCopy(Context& context, const RoofKernels& kernels, const RoofCopyParams& params);
Status RoofTensor(Context& context, const RoofKernels& kernels, const RoofMathParams& params,
                  int64_t blocks);
Status RoofFp32(Context& context, const RoofKernels& kernels, const RoofMathParams& params,
                int64_t blocks);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_ROOF_ROOF_H_
