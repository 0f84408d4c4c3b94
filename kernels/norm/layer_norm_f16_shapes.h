// Shapes of LayerNormF16 that its test reads, and what runs it on a GPU.
#ifndef MERGEKERNEL_KERNELS_NORM_LAYER_NORM_F16_SHAPES_H_
#define MERGEKERNEL_KERNELS_NORM_LAYER_NORM_F16_SHAPES_H_

#include <cstdint>

namespace mk {

struct LayerNormF16Shape {
  const char* name;
  int64_t rows, channels;
};

// Each variant, just full and not full, with a last block that is not.
inline constexpr LayerNormF16Shape kLayerNormF16RaggedShapes[] = {
    {"one_element", 1, 1},     {"any_of_few", 3, 6},     {"any_of_a_tail", 9, 45},
    {"lanes8_one", 1, 8},      {"lanes8_tail", 33, 24},  {"lanes8_full", 32, 64},
    {"lanes16_tail", 17, 96},  {"lanes16_full", 3, 128}, {"lanes32_tail", 9, 192},
    {"lanes32_full", 8, 256},  {"chunks2", 5, 384},      {"chunks4_tail", 3, 776},
    {"chunks4_full", 1, 1024}, {"wide_tail", 9, 1032},   {"any_wide", 2, 1025},
};

inline constexpr LayerNormF16Shape kLayerNormF16ModelShapes[] = {
    {"vmamba_pico_stem", 256, 6},
    {"vmamba_t_s1", 3136, 96},
    {"vmamba_t_s4", 49, 768},
    {"the_widest", 2, 4096},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_NORM_LAYER_NORM_F16_SHAPES_H_
