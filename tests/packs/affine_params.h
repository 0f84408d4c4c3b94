// The parameter struct of the fixture kernel mk_affine: y = w[0] * x + w[1].
#ifndef MERGEKERNEL_TESTS_PACKS_AFFINE_PARAMS_H_
#define MERGEKERNEL_TESTS_PACKS_AFFINE_PARAMS_H_

#include "core/abi/mk_types.h"

namespace mk {

struct AffineParams {
  float* y;        // [count], device
  const float* x;  // [count], device
  const float* w;  // [2], device
  mk_i64 count;
};

}  // namespace mk

#endif  // MERGEKERNEL_TESTS_PACKS_AFFINE_PARAMS_H_
