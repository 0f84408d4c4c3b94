// The host's side of EpilogueF16, for the ops that end in one: its checks, its bytes, its twin.
#ifndef MERGEKERNEL_KERNELS_LINEAR_EPILOGUE_F16_HOST_H_
#define MERGEKERNEL_KERNELS_LINEAR_EPILOGUE_F16_HOST_H_

#include <cstdint>
#include <vector>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/linear/epilogue_f16_params.h"

namespace mk {

// InvalidArgument, as `op`, naming the first broken precondition; y is [m, n].
Status CheckEpilogueF16(const char* op, const EpilogueF16& epilogue, int64_t m, int64_t n);

// From and to device memory, each operand once, and what the ordinary units do: an erf, an
// exponential or a division counts as 1. REQUIRES CheckEpilogueF16 is OK.
int64_t EpilogueF16Bytes(const EpilogueF16& epilogue, int64_t m, int64_t n);
int64_t EpilogueF16Flops(const EpilogueF16& epilogue, int64_t m, int64_t n);

// The twin, for row i: `sums` are the n sums of the product. Host memory.
void FinishRowF16Cpu(const EpilogueF16& epilogue, int64_t i, int64_t n,
                     const std::vector<double>& sums);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_EPILOGUE_F16_HOST_H_
