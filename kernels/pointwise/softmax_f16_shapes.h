// Shapes of SoftmaxF16 that its test reads, and what runs it on a GPU.
#ifndef MERGEKERNEL_KERNELS_POINTWISE_SOFTMAX_F16_SHAPES_H_
#define MERGEKERNEL_KERNELS_POINTWISE_SOFTMAX_F16_SHAPES_H_

#include <cstdint>

namespace mk {

struct SoftmaxF16Shape {
  const char* name;
  int64_t rows, columns;
};

// Each variant, just full and not full, with a last block that is not.
inline constexpr SoftmaxF16Shape kSoftmaxF16RaggedShapes[] = {
    {"one_element", 1, 1},     {"any_of_a_tail", 9, 45}, {"chunk_one", 3, 8},
    {"chunk_tail", 9, 200},    {"chunk_full", 2, 256},   {"chunks4_tail", 3, 776},
    {"chunks4_full", 1, 1024}, {"wide_tail", 2, 1048},   {"any_wide", 1, 1001},
};

inline constexpr SoftmaxF16Shape kSoftmaxF16ModelShapes[] = {
    {"vmamba_classes", 1, 1000}, {"vit_s_scores", 37, 1370}, {"swin_window", 64, 49}};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_POINTWISE_SOFTMAX_F16_SHAPES_H_
