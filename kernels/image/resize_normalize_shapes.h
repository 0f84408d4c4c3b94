// Shapes of ResizeNormalize that the test and the bench share.
#ifndef MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_SHAPES_H_
#define MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_SHAPES_H_

#include <cstdint>

namespace mk {

struct ResizeNormalizeShape {
  const char* name;
  int64_t height, width, channels;
  int64_t resized_height, resized_width;
  int64_t crop_top, crop_left, crop_height, crop_width;
  int64_t pad, out_channels;
};

inline constexpr ResizeNormalizeShape kResizeNormalizeRaggedShapes[] = {
    {"one_pixel", 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 1},
    {"as_it_is", 6, 5, 3, 6, 5, 0, 0, 6, 5, 0, 3},
    {"crop_only", 9, 7, 1, 9, 7, 2, 1, 4, 5, 0, 1},
    {"pad_only", 4, 3, 1, 4, 3, 0, 0, 4, 3, 2, 1},
    {"halved", 8, 12, 3, 4, 6, 0, 0, 4, 6, 1, 3},
    {"shrunk_by_a_fraction", 13, 17, 1, 5, 7, 0, 1, 5, 5, 0, 3},
    {"enlarged", 3, 2, 3, 11, 7, 2, 0, 7, 7, 0, 1},
    {"one_pixel_enlarged", 1, 1, 3, 8, 8, 0, 0, 8, 8, 1, 3},
    {"one_way_only", 10, 4, 1, 10, 9, 0, 0, 10, 9, 0, 1},
    {"one_row_enlarged", 1, 40, 1, 6, 240, 0, 117, 6, 6, 0, 1},
    {"several_slices", 211, 263, 3, 61, 76, 0, 7, 61, 61, 3, 3},
};

inline constexpr ResizeNormalizeShape kResizeNormalizeModelShapes[] = {
    {"vmamba_pico_28x28", 28, 28, 1, 28, 28, 0, 0, 28, 28, 2, 1},
    {"vmamba_pico_photo", 1080, 1920, 3, 28, 49, 0, 10, 28, 28, 2, 1},
    {"imagenet_photo", 1080, 1920, 3, 256, 455, 16, 115, 224, 224, 0, 3},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_SHAPES_H_
