// From an image of any size to the network's input, as train/preprocess.py defines it.
#ifndef MERGEKERNEL_PACKS_VMAMBA_PREPROCESS_H_
#define MERGEKERNEL_PACKS_VMAMBA_PREPROCESS_H_

#include <algorithm>
#include <cstdint>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "packs/vmamba/description.h"

namespace mk::vmamba {

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
};

inline constexpr int64_t kMaxImageSide = 16384;
inline constexpr int64_t kMaxImagePixels = int64_t{64} << 20;

// What becomes of an image of one size.
struct PreparePlan {
  ImageSize image;
  int64_t resized_height = 0;
  int64_t resized_width = 0;
  int64_t crop_top = 0;
  int64_t crop_left = 0;
  int64_t crop_height = 0;
  int64_t crop_width = 0;
  int64_t out_height = 0;  // of the network's input: the window and its padding
  int64_t out_width = 0;
};

// Pure. InvalidArgument naming the side and the rule: sides 1..16384, at most 64 Mpx, channels 1 or
// 3, no smaller than the crop, and, without a crop, such that the network's input sides are
// multiples of description.SideMultiple(), and at most max_input_pixels.
Result<PreparePlan> PlanPreparation(const Description& description, const ImageSize& image);

// What a resize of either device is told of `plan`: all but its pointers. `params` has the members
// of ResizeNormalizeParams.
template <typename Params>
void SetResize(const Preprocessing& preprocessing, const PreparePlan& plan, Params& params) {
  params.height = plan.image.height;
  params.width = plan.image.width;
  params.channels = plan.image.channels;
  params.resized_height = plan.resized_height;
  params.resized_width = plan.resized_width;
  params.crop_top = plan.crop_top;
  params.crop_left = plan.crop_left;
  params.crop_height = plan.crop_height;
  params.crop_width = plan.crop_width;
  params.pad = preprocessing.pad;
  params.out_channels = preprocessing.channels;
  std::copy(preprocessing.mean, preprocessing.mean + 3, params.mean);
  std::copy(preprocessing.std, preprocessing.std + 3, params.std);
  params.filter = preprocessing.filter;
}

// Fills `input` [out_height, out_width, channels] from `pixels` [height, width, channels]. Takes
// and gives back scratch that does not grow with the image's height.
Status Prepare(Context& context, const Preprocessing& preprocessing, const PreparePlan& plan,
               const uint8_t* pixels, float* input);

}  // namespace mk::vmamba

#endif  // MERGEKERNEL_PACKS_VMAMBA_PREPROCESS_H_
