// The network on a device that launches kernels: fp16 maps, fp32 sums, states and statistics. The
// twin of network.h, fused as device code can be.
#ifndef MERGEKERNEL_PACKS_VMAMBA_DEVICE_NETWORK_H_
#define MERGEKERNEL_PACKS_VMAMBA_DEVICE_NETWORK_H_

#include <cstdint>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "packs/vmamba/description.h"
#include "packs/vmamba/device_code.h"
#include "packs/vmamba/device_weights.h"

namespace mk::vmamba {

// A channel-last map in device memory: [height, width, channels] fp16, dense.
struct DeviceMap {
  device::half* data = nullptr;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t tokens() const { return height * width; }
};

// logits [num_classes] fp32, device, of `input` [height, width, in_chans]. Starts launches and does
// not wait. Takes and gives back scratch. Cancelled soon after the caller has gone.
Status RunDeviceNetwork(Context& context, const Description& description,
                        const DeviceWeights& weights, const DeviceKernels& kernels,
                        const DeviceMap& input, float* logits);

}  // namespace mk::vmamba

#endif  // MERGEKERNEL_PACKS_VMAMBA_DEVICE_NETWORK_H_
