// The network itself: from a preprocessed image to class scores.
#ifndef MERGEKERNEL_PACKS_VMAMBA_NETWORK_H_
#define MERGEKERNEL_PACKS_VMAMBA_NETWORK_H_

#include <cstdint>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "packs/vmamba/description.h"
#include "packs/vmamba/weights.h"

namespace mk::vmamba {

// A channel-last map in scratch or in the caller's memory: [height, width, channels] fp32, dense.
struct Map {
  float* data = nullptr;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t tokens() const { return height * width; }
};

// Looks at intermediate results, for tests: "stem", "layers.<i>.blocks.<j>",
// "layers.<i>.downsample", "features" (a map of one token), "logits".
struct Tap {
  void* self = nullptr;
  void (*see)(void* self, const char* name, const Map& map) = nullptr;
};

// logits [num_classes] of `input` [height, width, in_chans], of any sides >= 1 (the pack asks for
// multiples of description.SideMultiple(), as the reference's users do). Takes and gives back
// scratch. Cancelled, soon after the caller has gone; `tap` may be null.
Status RunNetwork(Context& context, const Description& description, const Weights& weights,
                  const Map& input, float* logits, const Tap* tap);

}  // namespace mk::vmamba

#endif  // MERGEKERNEL_PACKS_VMAMBA_NETWORK_H_
