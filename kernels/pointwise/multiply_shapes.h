// Shapes of Multiply that the test and the bench share.
#ifndef MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_SHAPES_H_
#define MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_SHAPES_H_

#include <cstdint>

namespace mk {

struct MultiplyShape {
  const char* name;
  int64_t count;
};

inline constexpr MultiplyShape kMultiplyRaggedShapes[] = {
    {"one_element", 1}, {"all_but_one", 15}, {"one_more", 17}, {"several_ranges", 300007}};

inline constexpr MultiplyShape kMultiplyModelShapes[] = {{"vmamba_t_s1", 3136 * 96},
                                                         {"vmamba_t_s1_at_1024", 65536 * 96}};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_SHAPES_H_
