// Shapes of GroupNormF16 that its test reads, and what runs it on a GPU.
#ifndef MERGEKERNEL_KERNELS_NORM_GROUP_NORM_F16_SHAPES_H_
#define MERGEKERNEL_KERNELS_NORM_GROUP_NORM_F16_SHAPES_H_

#include <cstdint>

namespace mk {

struct GroupNormF16Shape {
  const char* name;
  int64_t images, channels, positions, groups;
};

// Each variant, just full and not full; "cross": a piece of 8 goes from one channel to the next.
inline constexpr GroupNormF16Shape kGroupNormF16RaggedShapes[] = {
    {"one_element", 1, 1, 1, 1},
    {"one_channel", 2, 1, 7, 1},
    {"warp_any_tail", 2, 6, 5, 3},
    {"warp_any_full", 1, 1, 1023, 1},
    {"warp_short_channels_cross", 1, 16, 3, 2},
    {"warp_cross", 1, 16, 7, 2},
    {"warp_tail", 3, 6, 24, 3},
    {"warp_groups_are_channels", 1, 9, 40, 9},
    {"warp_full", 1, 4, 256, 1},
    {"block_any_least", 1, 1, 1025, 1},
    {"block_any_tail", 2, 3, 683, 1},
    {"block_cross", 2, 24, 49, 1},
    {"block_tail", 1, 8, 1032, 4},
    {"block_full", 1, 2, 8192, 1},
    {"slices_tail", 1, 4, 8200, 2},
    {"slices_any_tail", 1, 3, 5467, 1},
    {"slices_cross", 1, 336, 49, 1},
};

inline constexpr GroupNormF16Shape kGroupNormF16ModelShapes[] = {
    {"detector_level_13x21", 1, 256, 273, 32},
    {"detector_level_25x42", 1, 256, 1050, 32},
    {"detector_level_50x84", 1, 256, 4200, 32},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_NORM_GROUP_NORM_F16_SHAPES_H_
