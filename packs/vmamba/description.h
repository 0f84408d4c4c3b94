// What makes one VMamba out of the family: its sizes and its preprocessing, read from the
// manifest's parameters. The keys are those of the model file's metadata.
#ifndef MERGEKERNEL_PACKS_VMAMBA_DESCRIPTION_H_
#define MERGEKERNEL_PACKS_VMAMBA_DESCRIPTION_H_

#include <cstdint>
#include <vector>

#include "core/sdk/context.h"
#include "core/sdk/status.h"

namespace mk::vmamba {

// Image to network input, as train/preprocess.py defines it.
struct Preprocessing {
  int64_t resize = 0;    // the shorter side becomes this; 0: not resized
  int64_t crop = 0;      // side of the centre window; 0: all of it
  int64_t pad = 0;       // samples of 0 added on each side
  int64_t channels = 0;  // 1 or 3
  uint32_t filter = 0;   // of the resize: MK_RESIZE_TRIANGLE or MK_RESIZE_BICUBIC
  float mean[3] = {0, 0, 0};
  float std[3] = {1, 1, 1};
  // Most pixels of an encoded image: what it decodes to lies in scratch.
  int64_t max_encoded_pixels = 0;
  // Most pixels of the network's input: its maps lie in scratch.
  int64_t max_input_pixels = 0;
};

// REQUIRES of all members: the ranges that ParseDescription checks.
struct Description {
  int64_t in_chans = 0;
  int64_t embed_dim = 0;        // channels of stage 0; doubled from stage to stage
  std::vector<int64_t> depths;  // blocks of each stage
  int64_t num_classes = 0;
  double ssm_ratio = 1;
  int64_t d_state = 1;
  int64_t dt_rank = 0;  // 0: ceil(channels / 16)
  double mlp_ratio = 4;
  bool gated = false;  // forward type v05: y is multiplied by SiLU(z) before out_proj
  Preprocessing preprocessing;

  int64_t stages() const { return static_cast<int64_t>(depths.size()); }
  int64_t Channels(int64_t stage) const { return embed_dim << stage; }
  // Channels inside SS2D.
  int64_t Inner(int64_t stage) const;
  // Rank of the step projection.
  int64_t Rank(int64_t stage) const;
  // Channels that in_proj makes: x, and behind it z where there is a gate.
  int64_t Projected(int64_t stage) const { return gated ? 2 * Inner(stage) : Inner(stage); }
  // Channels inside the MLP.
  int64_t Hidden(int64_t stage) const;
  // Both sides of the network's input are to be multiples of this, so that no stage sees a map with
  // a rounded side: 4 for the stem, 2 for each downsample.
  int64_t SideMultiple() const { return int64_t{4} << (stages() - 1); }
};

// Reads `config.*` and `preprocess.*`. InvalidArgument naming the parameter, its value and the rule
// when one is missing, malformed or out of range, or when two do not fit together. The ranges keep
// every size that is computed from a description far from overflow.
Result<Description> ParseDescription(const Host& host);

}  // namespace mk::vmamba

#endif  // MERGEKERNEL_PACKS_VMAMBA_DESCRIPTION_H_
