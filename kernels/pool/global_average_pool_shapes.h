// Shapes of GlobalAveragePool that the test and the bench share.
#ifndef MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_SHAPES_H_
#define MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_SHAPES_H_

#include <cstdint>

namespace mk {

struct GlobalAveragePoolShape {
  const char* name;
  int64_t rows, channels;
};

inline constexpr GlobalAveragePoolShape kGlobalAveragePoolRaggedShapes[] = {
    {"one_element", 1, 1},         {"one_row", 1, 77},   {"one_channel", 65, 1},
    {"a_group", 64, 64},           {"one_more", 65, 65}, {"a_tail_of_several", 200, 131},
    {"several_ranges", 4099, 257},
};

inline constexpr GlobalAveragePoolShape kGlobalAveragePoolModelShapes[] = {
    {"vmamba_pico", 1, 96},
    {"vmamba_t_224", 49, 768},
    {"vmamba_t_1024", 1024, 768},
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_SHAPES_H_
