// Shapes of LayerNorm that the test and the bench share.
#ifndef MERGEKERNEL_KERNELS_NORM_LAYER_NORM_SHAPES_H_
#define MERGEKERNEL_KERNELS_NORM_LAYER_NORM_SHAPES_H_

#include <cstdint>

namespace mk {

struct LayerNormShape {
  const char* name;
  int64_t rows, channels;
};

inline constexpr LayerNormShape kLayerNormRaggedShapes[] = {
    {"one_element", 1, 1},        {"less_than_the_lanes", 3, 7}, {"the_lanes", 2, 8},
    {"one_more", 5, 9},           {"a_tail_of_several", 4, 21},  {"one_row", 1, 100},
    {"several_ranges", 4099, 67}, {"pairs_and_one", 3, 48},      {"all_but_one", 3, 63},
};

inline constexpr LayerNormShape kLayerNormModelShapes[] = {
    {"vmamba_pico_stem", 256, 6},
    {"vmamba_pico_s1", 64, 12},
    {"vmamba_t_s1", 3136, 96},
    {"vmamba_t_s4", 49, 768},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_NORM_LAYER_NORM_SHAPES_H_
