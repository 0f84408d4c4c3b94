// Shapes of ChannelNormF16 that its test reads, and what runs it on a GPU.
#ifndef MERGEKERNEL_KERNELS_NORM_CHANNEL_NORM_F16_SHAPES_H_
#define MERGEKERNEL_KERNELS_NORM_CHANNEL_NORM_F16_SHAPES_H_

#include <cstdint>

namespace mk {

struct ChannelNormF16Shape {
  const char* name;
  int64_t images, channels, positions;
};

// Each variant, with a last tile that is full and one that is not, fewer channels than rows of
// threads, as many, and more.
inline constexpr ChannelNormF16Shape kChannelNormF16RaggedShapes[] = {
    {"one_element", 1, 1, 1},    {"one_channel", 2, 1, 17},   {"any_tail", 2, 19, 49},
    {"any_full", 1, 16, 33},     {"pairs_tail", 1, 40, 50},   {"pairs_full", 2, 32, 18},
    {"tile16_one", 1, 1, 8},     {"tile16_tail", 2, 6, 24},   {"tile16_rows", 1, 128, 16},
    {"tile16_many", 1, 131, 40}, {"tile64_tail", 16, 35, 72},
};

inline constexpr ChannelNormF16Shape kChannelNormF16ModelShapes[] = {
    {"vmamba_t_s1", 1, 96, 3136},
    {"vmamba_t_s3", 1, 384, 196},
    {"vmamba_t_s4", 1, 768, 49},
    {"the_most_channels", 1, 2048, 24},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_NORM_CHANNEL_NORM_F16_SHAPES_H_
