// Shapes of LinearF16 that tests and benches share.
#ifndef MERGEKERNEL_KERNELS_LINEAR_LINEAR_F16_SHAPES_H_
#define MERGEKERNEL_KERNELS_LINEAR_LINEAR_F16_SHAPES_H_

#include <cstdint>

namespace mk {

struct LinearF16Shape {
  const char* name;
  int64_t m, n, k;
};

// k a multiple of 8: operands move by 16 bytes. For each tile.
inline constexpr LinearF16Shape kLinearF16ChunkShapes[] = {
    {"one_row_one_column", 1, 1, 8},        {"less_than_one_tile", 19, 24, 24},
    {"one_more_than_a_tile", 129, 136, 40}, {"columns_not_of_eight", 33, 70, 72},
    {"all_stages_and_a_tail", 40, 72, 232}, {"more_rows_than_a_band", 290, 72, 8},
};

// Any k: element by element.
inline constexpr LinearF16Shape kLinearF16AnyShapes[] = {
    {"one_element", 1, 1, 1},
    {"head_of_ten_classes", 1, 10, 96},  // k would do, but a misaligned x
    {"vmamba_pico_s1_fc1", 64, 48, 12},
    {"odd_everything", 65, 67, 133},
};

inline constexpr LinearF16Shape kLinearF16ModelShapes[] = {
    {"vmamba_t_s1_fc1", 3136, 384, 96},      {"vmamba_t_s1_fc2", 3136, 96, 384},
    {"vmamba_t_s2_fc1", 784, 768, 192},      {"vmamba_t_s3_fc1", 196, 1536, 384},
    {"vmamba_t_s3_fc2", 196, 384, 1536},     {"vmamba_t_s4_fc2", 49, 768, 3072},
    {"vmamba_t_s1_512_fc1", 16384, 384, 96},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_LINEAR_F16_SHAPES_H_
