// Shapes of Depthwise3x3 that the test and the bench share.
#ifndef MERGEKERNEL_KERNELS_CONV_DEPTHWISE3X3_SHAPES_H_
#define MERGEKERNEL_KERNELS_CONV_DEPTHWISE3X3_SHAPES_H_

#include <cstdint>

namespace mk {

struct Depthwise3x3Shape {
  const char* name;
  int64_t height, width, channels;
};

inline constexpr Depthwise3x3Shape kDepthwise3x3RaggedShapes[] = {
    {"one_element", 1, 1, 1},       {"one_row", 1, 5, 3},    {"one_column", 6, 1, 5},
    {"two_by_two", 2, 2, 9},        {"tall", 7, 3, 33},      {"wide", 3, 11, 12},
    {"several_ranges", 40, 30, 61}, {"one_strip", 2, 4, 16}, {"strips_and_two", 3, 10, 31},
};

inline constexpr Depthwise3x3Shape kDepthwise3x3ModelShapes[] = {
    {"vmamba_pico_s1", 8, 8, 12},
    {"vmamba_t_s1", 56, 56, 96},
    {"vmamba_t_s4", 7, 7, 768},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_CONV_DEPTHWISE3X3_SHAPES_H_
