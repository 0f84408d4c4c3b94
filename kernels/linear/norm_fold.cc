#include "kernels/linear/norm_fold.h"

#include "kernels/device/convert.h"

namespace mk {

void FoldNorm(const NormFoldInputs& in, const NormFoldOutputs& out) {
  for (int64_t j = 0; j < in.n; ++j) {
    double sum = 0;
    double bias = in.bias != nullptr ? in.bias[j] : 0.0;
    for (int64_t p = 0; p < in.k; ++p) {
      const float w = in.weight[j * in.k + p];
      const float scaled = in.gamma != nullptr ? w * in.gamma[p] : w;
      const device::half stored = {device::FloatToHalfBits(scaled)};
      out.weight[j * in.k + p] = stored;
      sum += device::HalfBitsToFloat(stored.bits);
      if (in.beta != nullptr) bias += static_cast<double>(w) * in.beta[p];
    }
    out.sums[j] = static_cast<float>(sum);
    out.bias[j] = static_cast<float>(bias);
  }
}

}  // namespace mk
