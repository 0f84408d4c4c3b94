// Shapes of CrossScanF16 that its test reads, and what runs it on a GPU.
#ifndef MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_F16_SHAPES_H_
#define MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_F16_SHAPES_H_

#include <cstdint>

namespace mk {

struct CrossScanF16Shape {
  const char* name;
  int32_t height, width, channels, rank, state;
};

// Of one tile, one block or several, and of several tiles in either way or both.
inline constexpr CrossScanF16Shape kCrossScanF16RaggedShapes[] = {
    {"one_element", 1, 1, 1, 1, 1},
    {"one_row", 1, 9, 3, 2, 1},
    {"one_column", 11, 1, 5, 1, 1},
    {"a_slice_and_a_channel", 3, 4, 33, 3, 1},
    {"several_blocks", 17, 2, 40, 6, 1},
    {"odd_rank_of_two_parts", 2, 3, 8, 17, 1},
    {"three_states", 2, 5, 9, 2, 3},
    {"tiles_across", 2, 35, 4, 2, 1},
    {"tiles_down_and_states", 17, 1, 5, 2, 2},
};

inline constexpr CrossScanF16Shape kCrossScanF16ModelShapes[] = {
    {"vmamba_pico_s1", 8, 8, 12, 1, 1},     {"vmamba_pico_s2", 4, 4, 24, 2, 1},
    {"vmamba_pico_s3", 2, 2, 48, 3, 1},     {"vmamba_pico_s4", 1, 1, 96, 6, 1},
    {"vmamba_t_s3", 14, 14, 384, 24, 1},    {"vmamba_t_s4", 7, 7, 768, 48, 1},
    {"the_largest_tile", 32, 32, 32, 2, 1},
};

// Of more states: three launches each.
inline constexpr CrossScanF16Shape kCrossScanF16StateShapes[] = {
    {"state_of_16", 3, 9, 40, 4, 16},
    {"state_of_17", 2, 9, 6, 1, 17},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_F16_SHAPES_H_
