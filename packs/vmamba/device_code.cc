#include "packs/vmamba/device_code.h"

#include "kernels/conv/conv3x3_f16_kernels_images.h"
#include "kernels/conv/depthwise_f16_kernels_images.h"
#include "kernels/image/resize_normalize_f16_kernels_images.h"
#include "kernels/linear/feed_forward_f16_kernels_images.h"
#include "kernels/linear/linear_f16_kernels_images.h"
#include "kernels/linear/row_stats_f16_kernels_images.h"
#include "kernels/norm/layer_norm_f16_kernels_images.h"
#include "kernels/pool/global_average_pool_f16_kernels_images.h"
#include "kernels/scan/cross_scan_f16_kernels_images.h"

namespace mk::vmamba {

DeviceCode BuiltDeviceCode() {
  return {&mk_images_conv3x3_f16_kernels,
          &mk_images_cross_scan_f16_kernels,
          &mk_images_depthwise_f16_kernels,
          &mk_images_feed_forward_f16_kernels,
          &mk_images_global_average_pool_f16_kernels,
          &mk_images_layer_norm_f16_kernels,
          &mk_images_linear_f16_kernels,
          &mk_images_resize_normalize_f16_kernels,
          &mk_images_row_stats_f16_kernels};
}

}  // namespace mk::vmamba
