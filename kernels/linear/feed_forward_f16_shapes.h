// Shapes of FeedForwardF16 that tests and benches share.
#ifndef MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_F16_SHAPES_H_
#define MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_F16_SHAPES_H_

#include <cstdint>

namespace mk {

struct FeedForwardF16Shape {
  const char* name;
  int64_t rows, channels, hidden;
};

// For the fused forms: channels and hidden are multiples of 8; `k96` also for that of 192.
inline constexpr FeedForwardF16Shape kFeedForwardF16Shapes96[] = {
    {"one_row", 1, 8, 8},
    {"less_than_a_warp", 13, 24, 96},
    {"one_more_than_a_block", 129, 96, 384},
    {"padded_channels_and_hidden", 70, 40, 72},
};
inline constexpr FeedForwardF16Shape kFeedForwardF16Shapes192[] = {
    {"all_channels", 65, 192, 64},
    {"padded_channels", 9, 136, 200},
};

// Any: the separate form.
inline constexpr FeedForwardF16Shape kFeedForwardF16AnyShapes[] = {
    {"vmamba_pico_s1", 64, 12, 48},
    {"odd_everything", 5, 7, 9},
};

inline constexpr FeedForwardF16Shape kFeedForwardF16ModelShapes[] = {
    {"vmamba_t_s1", 3136, 96, 384},      {"vmamba_t_s2", 784, 192, 768},
    {"vmamba_t_s3", 196, 384, 1536},     {"vmamba_t_s4", 49, 768, 3072},
    {"vmamba_t_s1_512", 16384, 96, 384}, {"vmamba_t_s2_512", 4096, 192, 768},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_F16_SHAPES_H_
