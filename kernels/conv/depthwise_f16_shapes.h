// Shapes of DepthwiseF16 that its test reads, and what runs it on a GPU.
#ifndef MERGEKERNEL_KERNELS_CONV_DEPTHWISE_F16_SHAPES_H_
#define MERGEKERNEL_KERNELS_CONV_DEPTHWISE_F16_SHAPES_H_

#include <cstdint>

namespace mk {

struct DepthwiseF16Shape {
  const char* name;
  int32_t height, width, channels;
};

inline constexpr DepthwiseF16Shape kDepthwiseF16RaggedShapes[] = {
    {"one_element", 1, 1, 1}, {"one_row", 1, 5, 3},       {"one_column", 6, 1, 4},
    {"a_strip", 2, 4, 8},     {"strip_and_one", 3, 5, 7}, {"strips_and_two", 9, 10, 12},
    {"tall", 11, 3, 20},
};

inline constexpr DepthwiseF16Shape kDepthwiseF16ModelShapes[] = {
    {"vmamba_pico_s1", 8, 8, 12},
    {"vmamba_t_s2", 28, 28, 192},
    {"vmamba_t_s4", 7, 7, 768},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_CONV_DEPTHWISE_F16_SHAPES_H_
