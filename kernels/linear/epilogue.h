// What follows a matrix product while its panel is in the cache:
//
//   y[i, j] = act(y[i, j] + bias[j]) + residual[i, j]
//
// Compiled for each instruction set. Twin of nothing: the host's part of Linear, Conv3x3 and
// FeedForward. Source: ours.
#ifndef MERGEKERNEL_KERNELS_LINEAR_EPILOGUE_H_
#define MERGEKERNEL_KERNELS_LINEAR_EPILOGUE_H_

#include "kernels/math/activation_params.h"
#include "kernels/simd/dispatch.h"

namespace mk {

struct EpilogueParams {
  float* y;               // [rows, n] fp32, dense
  const float* bias;      // [n] fp32; null: none
  const float* residual;  // [rows, n] fp32, dense; null: none. Does not overlap y
  mk_i64 rows;
  mk_i64 n;
  Activation activation;  // a member
};

namespace simd {
MK_SIMD_DECLARE(void Epilogue(const EpilogueParams& p))
}  // namespace simd

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_EPILOGUE_H_
