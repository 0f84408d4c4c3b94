// Shapes of Conv3x3F16 that tests and benches share.
#ifndef MERGEKERNEL_KERNELS_CONV_CONV3X3_F16_SHAPES_H_
#define MERGEKERNEL_KERNELS_CONV_CONV3X3_F16_SHAPES_H_

#include "kernels/conv/conv3x3_shapes.h"

namespace mk {

// Channels a multiple of 8: operands move by 16 bytes. For each tile.
inline constexpr Conv3x3Shape kConv3x3F16ChunkShapes[] = {
    {"one_position", 1, 1, 8, 8, 1},       {"one_position_stride_2", 1, 1, 8, 3, 2},
    {"one_row", 1, 9, 16, 8, 1},           {"one_column", 9, 1, 8, 24, 2},
    {"odd_sides", 7, 9, 24, 40, 2},        {"even_sides", 8, 6, 8, 72, 2},
    {"more_than_a_tile", 13, 11, 8, 8, 1}, {"a_tap_over_two_stages", 5, 5, 40, 16, 1},
};

// Any channels: element by element.
inline constexpr Conv3x3Shape kConv3x3F16AnyShapes[] = {
    {"one_element", 1, 1, 1, 1, 1},       {"gray_stem", 10, 8, 1, 6, 2},
    {"colour_stem", 9, 11, 3, 48, 2},     {"six_channels", 6, 7, 6, 12, 1},
    {"twelve_channels", 8, 8, 12, 24, 2},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_CONV_CONV3X3_F16_SHAPES_H_
