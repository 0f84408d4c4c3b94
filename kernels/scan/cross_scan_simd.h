// The loops of CrossScan, compiled for each instruction set.
#ifndef MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_SIMD_H_
#define MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_SIMD_H_

#include "kernels/scan/cross_scan_params.h"
#include "kernels/simd/dispatch.h"

namespace mk::simd {

// The first, second, third or fourth direction (0 to 3) over channels [first, first + count). The
// first starts y with d x, the others add to it, so they go in this order. `h` is room for
// state x count floats; unused with a state of 1. REQUIRES CheckCrossScan(p) is OK.
MK_SIMD_DECLARE(void ScanDirection(const CrossScanParams& p, mk_i64 direction, mk_i64 first,
                                   mk_i64 count, float* h))

}  // namespace mk::simd

#endif  // MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_SIMD_H_
