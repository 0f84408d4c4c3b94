// Shapes of GlobalAveragePoolF16 that its test reads, and what runs it on a GPU.
#ifndef MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_F16_SHAPES_H_
#define MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_F16_SHAPES_H_

#include <cstdint>

namespace mk {

struct GlobalAveragePoolF16Shape {
  const char* name;
  int64_t rows, channels;
};

inline constexpr GlobalAveragePoolF16Shape kGlobalAveragePoolF16RaggedShapes[] = {
    {"one_element", 1, 1}, {"one_row", 1, 77},       {"few", 3, 6},
    {"a_group", 64, 34},   {"one_row_more", 65, 33}, {"several_groups", 700, 40},
};

inline constexpr GlobalAveragePoolF16Shape kGlobalAveragePoolF16ModelShapes[] = {
    {"vmamba_pico", 1, 96},
    {"vmamba_t_224", 49, 768},
    {"vmamba_t_512", 256, 768},
    {"more_than_a_block_of_pairs", 3, 1200},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_F16_SHAPES_H_
