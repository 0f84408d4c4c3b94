// Shapes of Conv3x3 that the test and the bench share.
#ifndef MERGEKERNEL_KERNELS_CONV_CONV3X3_SHAPES_H_
#define MERGEKERNEL_KERNELS_CONV_CONV3X3_SHAPES_H_

#include <cstdint>

namespace mk {

struct Conv3x3Shape {
  const char* name;
  int64_t height, width, in_channels, out_channels, stride;
};

inline constexpr Conv3x3Shape kConv3x3RaggedShapes[] = {
    {"one_element", 1, 1, 1, 1, 1},
    {"one_element_stride_2", 1, 1, 2, 3, 2},
    {"one_row", 1, 7, 3, 5, 1},
    {"one_column", 7, 1, 3, 5, 2},
    {"two_by_two", 2, 2, 1, 9, 2},
    {"odd_sides", 7, 9, 3, 5, 2},
    {"even_sides", 8, 6, 5, 4, 2},
    {"stride_1", 5, 6, 4, 7, 1},
    {"several_slices", 61, 37, 33, 65, 1},
};

inline constexpr Conv3x3Shape kConv3x3ModelShapes[] = {
    {"vmamba_pico_stem_0", 32, 32, 1, 6, 2},  {"vmamba_pico_stem_1", 16, 16, 6, 12, 2},
    {"vmamba_pico_s1_down", 8, 8, 12, 24, 2}, {"vmamba_t_stem_0", 224, 224, 3, 48, 2},
    {"vmamba_t_s1_down", 56, 56, 96, 192, 2}, {"vmamba_t_s3_down", 14, 14, 384, 768, 2},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_CONV_CONV3X3_SHAPES_H_
