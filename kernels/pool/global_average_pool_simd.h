// The loops of GlobalAveragePool, compiled for each instruction set.
#ifndef MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_SIMD_H_
#define MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_SIMD_H_

#include "kernels/pool/global_average_pool_params.h"
#include "kernels/simd/dispatch.h"

namespace mk::simd {

// Channels [begin, end). REQUIRES CheckGlobalAveragePool(p) is OK.
MK_SIMD_DECLARE(void PoolChannels(const GlobalAveragePoolParams& p, mk_i64 begin, mk_i64 end))

}  // namespace mk::simd

#endif  // MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_SIMD_H_
