// Shapes of ResizeNormalizeF16 that its test reads, and what runs it on a GPU: those of
// ResizeNormalize.
#ifndef MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_F16_SHAPES_H_
#define MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_F16_SHAPES_H_

#include "kernels/image/resize_normalize_shapes.h"

#endif  // MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_F16_SHAPES_H_
