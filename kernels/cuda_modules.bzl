"""Every module of device code that packs may carry: what the static gates read (kernels/static_gates.py).

`cuda_kernels` refuses to build one that is not here, so none escapes them.
"""

CUDA_MODULES = [
    "//kernels/conv:conv3x3_f16_kernels",
    "//kernels/conv:depthwise_f16_kernels",
    "//kernels/conv:patch_embed_f16_kernels",
    "//kernels/image:resize_normalize_f16_kernels",
    "//kernels/linear:feed_forward_f16_kernels",
    "//kernels/linear:linear_f16_kernels",
    "//kernels/linear:row_stats_f16_kernels",
    "//kernels/norm:channel_norm_f16_kernels",
    "//kernels/norm:group_norm_f16_kernels",
    "//kernels/norm:layer_norm_f16_kernels",
    "//kernels/pointwise:multiply_f16_kernels",
    "//kernels/pointwise:softmax_f16_kernels",
    "//kernels/pool:global_average_pool_f16_kernels",
    "//kernels/roof:roof_kernels",
    "//kernels/scan:cross_scan_f16_kernels",
]
