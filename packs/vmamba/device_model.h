// The model on a device that launches kernels: fp16 weights in its memory, and its code.
#ifndef MERGEKERNEL_PACKS_VMAMBA_DEVICE_MODEL_H_
#define MERGEKERNEL_PACKS_VMAMBA_DEVICE_MODEL_H_

#include <memory>
#include <utility>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "packs/vmamba/description.h"
#include "packs/vmamba/device_code.h"
#include "packs/vmamba/device_weights.h"
#include "packs/vmamba/preprocess.h"
#include "packs/vmamba/source.h"

namespace mk::vmamba {

class DeviceModel {
 public:
  // Loads code and weights; blocks. FailedPrecondition where no image of the code fits the device.
  static Result<std::unique_ptr<DeviceModel>> Create(const Host& host,
                                                     const Description& description,
                                                     const char* file);

  // From pixels to logits [num_classes] fp32, device; does not wait. An encoded image is decoded
  // into host memory, the one thing that a run allocates, and copied.
  Status Run(Context& context, const Description& description, const PreparePlan& plan,
             const Source& source, float* logits) const;

 private:
  DeviceModel(DeviceKernels kernels, DeviceWeights weights)
      : kernels_(kernels), weights_(std::move(weights)) {}

  const DeviceKernels kernels_;
  const DeviceWeights weights_;
};

}  // namespace mk::vmamba

#endif  // MERGEKERNEL_PACKS_VMAMBA_DEVICE_MODEL_H_
