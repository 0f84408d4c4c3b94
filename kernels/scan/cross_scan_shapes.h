// Shapes of CrossScan that the test and the bench share.
#ifndef MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_SHAPES_H_
#define MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_SHAPES_H_

#include <cstdint>

namespace mk {

struct CrossScanShape {
  const char* name;
  int64_t height, width, channels, rank, state;
};

inline constexpr CrossScanShape kCrossScanRaggedShapes[] = {
    {"one_element", 1, 1, 1, 1, 1},
    {"one_row", 1, 33, 3, 2, 1},
    {"one_column", 33, 1, 5, 1, 3},
    {"tall", 7, 2, 16, 3, 1},
    {"wide", 2, 9, 17, 2, 4},
    {"one_block_and_a_channel", 5, 4, 65, 5, 1},
    {"state_of_16", 4, 6, 33, 4, 16},
    {"several_ranges", 12, 11, 130, 9, 2},
    {"groups_of_4_2_1", 3, 4, 127, 7, 1},
    {"odd_rank_of_many", 4, 3, 64, 49, 1},
};

inline constexpr CrossScanShape kCrossScanModelShapes[] = {
    {"vmamba_pico_s1", 8, 8, 12, 1, 1},   {"vmamba_pico_s4", 1, 1, 96, 6, 1},
    {"vmamba_t_s1", 56, 56, 96, 6, 1},    {"vmamba_t_s3", 14, 14, 384, 24, 1},
    {"state_of_16", 14, 14, 384, 24, 16},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_SHAPES_H_
