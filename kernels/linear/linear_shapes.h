// Shapes of Linear that the test and the bench share.
#ifndef MERGEKERNEL_KERNELS_LINEAR_LINEAR_SHAPES_H_
#define MERGEKERNEL_KERNELS_LINEAR_LINEAR_SHAPES_H_

#include <cstdint>

namespace mk {

struct LinearShape {
  const char* name;
  int64_t m, n, k;
};

inline constexpr LinearShape kLinearRaggedShapes[] = {
    {"one_element", 1, 1, 1},
    {"less_than_one_vector", 3, 3, 2},
    {"one_more_than_a_vector", 5, 5, 9},
    {"one_row", 1, 33, 17},
    {"one_column", 33, 1, 17},
    {"one_panel_and_a_row", 65, 1025, 3},
    {"several_ranges", 301, 67, 129},
};

inline constexpr LinearShape kLinearModelShapes[] = {
    {"vmamba_pico_s1_fc1", 64, 48, 12}, {"vmamba_pico_s1_fc2", 64, 12, 48},
    {"vmamba_pico_s4_fc1", 1, 384, 96}, {"vmamba_t_s1_fc1", 3136, 384, 96},
    {"vmamba_t_s1_fc2", 3136, 96, 384}, {"vmamba_t_s3_fc1", 196, 1536, 384},
    {"vmamba_t_s4_fc2", 49, 768, 3072},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_LINEAR_SHAPES_H_
