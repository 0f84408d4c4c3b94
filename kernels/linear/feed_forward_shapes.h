// Shapes of FeedForward that the test and the bench share.
#ifndef MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_SHAPES_H_
#define MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_SHAPES_H_

#include <cstdint>

namespace mk {

struct FeedForwardShape {
  const char* name;
  int64_t rows, channels, hidden;
};

inline constexpr FeedForwardShape kFeedForwardRaggedShapes[] = {
    {"one_element", 1, 1, 1},
    {"less_than_a_vector", 3, 2, 5},
    {"one_row", 1, 17, 33},
    {"narrowing", 9, 31, 7},
    {"one_tile_and_a_row", 129, 5, 4096},
    {"several_tiles", 1000, 24, 1000},
};

inline constexpr FeedForwardShape kFeedForwardModelShapes[] = {
    {"vmamba_pico_s1", 64, 12, 48},           {"vmamba_t_s1", 3136, 96, 384},
    {"vmamba_t_s2", 784, 192, 768},           {"vmamba_t_s3", 196, 384, 1536},
    {"vmamba_t_s4", 49, 768, 3072},           {"vmamba_t_s3_at_1024", 4096, 384, 1536},
    {"vmamba_t_s4_at_1024", 1024, 768, 3072},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_SHAPES_H_
