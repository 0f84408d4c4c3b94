// The VMamba pack: an image in, class scores out.
//
//   image          UINT8 [height, width, channels], channels 1 or 3     } exactly one of the two
//   encoded_image  BYTES [1], a JPEG or PNG file                        }
//   logits         FP32 [num_classes]
#ifndef MERGEKERNEL_PACKS_VMAMBA_MODEL_H_
#define MERGEKERNEL_PACKS_VMAMBA_MODEL_H_

#include <memory>
#include <utility>

#include "core/sdk/context.h"
#include "core/sdk/pack.h"
#include "core/sdk/status.h"
#include "packs/vmamba/description.h"
#include "packs/vmamba/device_model.h"
#include "packs/vmamba/weights.h"

namespace mk::vmamba {

// The file of the pack that holds the weights.
inline constexpr char kWeightsFile[] = "model.safetensors";

class VMamba {
 public:
  // The signature, from the manifest's parameters. InvalidArgument as ParseDescription.
  static Status Describe(const Host& host, SignatureBuilder& signature);
  // Reads the description and loads the weights, and on a device with kernels its code; blocks on
  // that.
  static Result<std::unique_ptr<VMamba>> Create(const Host& host);

  // Serves one request; any number of threads at once. InvalidArgument for an image that cannot be
  // used, naming what is wrong with it; ResourceExhausted when the scratch does not do; Cancelled
  // soon after the caller has gone.
  Status Run(Context& context);

  const Description& description() const { return description_; }
  const Weights& weights() const { return weights_; }

 private:
  VMamba(Description description, Weights weights)
      : description_(std::move(description)), weights_(std::move(weights)) {}
  VMamba(Description description, std::unique_ptr<DeviceModel> device)
      : description_(std::move(description)), device_(std::move(device)) {}

  const Description description_;
  const Weights weights_;  // empty where there is a device_
  const std::unique_ptr<DeviceModel> device_;
};

}  // namespace mk::vmamba

#endif  // MERGEKERNEL_PACKS_VMAMBA_MODEL_H_
