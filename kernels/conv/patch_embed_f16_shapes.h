// Shapes of PatchEmbedF16 that tests and benches share.
#ifndef MERGEKERNEL_KERNELS_CONV_PATCH_EMBED_F16_SHAPES_H_
#define MERGEKERNEL_KERNELS_CONV_PATCH_EMBED_F16_SHAPES_H_

#include <cstdint>

namespace mk {

struct PatchEmbedF16Shape {
  const char* name;
  int64_t height, width, in_channels, out_channels, patch;
};

inline constexpr PatchEmbedF16Shape kPatchEmbedF16Shapes[] = {
    {"one_pixel", 1, 1, 1, 1, 1},        {"one_patch", 16, 16, 3, 24, 16},
    {"vit_sixteen", 48, 32, 3, 40, 16},  {"vit_fourteen_of_four", 28, 56, 4, 72, 14},
    {"vit_fourteen", 28, 42, 3, 13, 14}, {"gray_four", 36, 40, 1, 7, 4},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_CONV_PATCH_EMBED_F16_SHAPES_H_
