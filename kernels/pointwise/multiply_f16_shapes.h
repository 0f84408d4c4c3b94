// Shapes of MultiplyF16 that its test reads, and what runs it on a GPU.
#ifndef MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_F16_SHAPES_H_
#define MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_F16_SHAPES_H_

#include <cstdint>

namespace mk {

struct MultiplyF16Shape {
  const char* name;
  int64_t count;
};

inline constexpr MultiplyF16Shape kMultiplyF16RaggedShapes[] = {
    {"one_element", 1}, {"all_but_one", 7},   {"a_vector", 8},
    {"one_more", 9},    {"a_block", 8 * 256}, {"several_blocks_and_a_tail", 5003}};

inline constexpr MultiplyF16Shape kMultiplyF16ModelShapes[] = {{"vmamba_t_s1", 3136 * 96}};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_F16_SHAPES_H_
