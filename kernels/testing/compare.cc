#include "kernels/testing/compare.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace mk::testing {
namespace {

// "[2, 0, 7]" for a row-major flat index, or "[37]" without a shape.
std::string IndexText(size_t flat, const std::vector<int64_t>& shape) {
  std::string text;
  for (size_t d = shape.size(); d-- > 0;) {
    const auto side = static_cast<size_t>(shape[d]);
    text = std::to_string(flat % side) + (text.empty() ? "" : ", ") + text;
    flat /= side;
  }
  return "[" + (shape.empty() ? std::to_string(flat) : text) + "]";
}

// The first position where one side is NaN or infinite and the other is not the same.
::testing::AssertionResult CheckSpecial(const std::vector<float>& got,
                                        const std::vector<double>& want,
                                        const std::vector<int64_t>& shape) {
  if (got.size() != want.size()) {
    return ::testing::AssertionFailure() << "size " << got.size() << ", expected " << want.size();
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isfinite(got[i]) && std::isfinite(want[i])) continue;
    const bool same =
        (std::isnan(got[i]) && std::isnan(want[i])) || (std::isinf(got[i]) && got[i] == want[i]);
    if (!same) {
      return ::testing::AssertionFailure()
             << "at " << IndexText(i, shape) << ": got " << got[i] << ", expected " << want[i];
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace

::testing::AssertionResult IsNearRelL2(const std::vector<float>& got,
                                       const std::vector<double>& want, double bound,
                                       const std::vector<int64_t>& shape) {
  if (const auto special = CheckSpecial(got, want, shape); !special) return special;
  double error = 0;
  double norm = 0;
  double worst = -1;
  size_t worst_index = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(want[i])) continue;
    const double difference = got[i] - want[i];
    error += difference * difference;
    norm += want[i] * want[i];
    if (std::fabs(difference) > worst) worst = std::fabs(difference), worst_index = i;
  }
  const double relative = error == 0 ? 0 : std::sqrt(error) / std::max(std::sqrt(norm), 1e-300);
  if (relative <= bound) {
    return ::testing::AssertionSuccess() << "rel_l2 " << relative << " <= " << bound;
  }
  return ::testing::AssertionFailure() << "rel_l2 " << relative << " > " << bound << "; worst at "
                                       << IndexText(worst_index, shape) << ": got "
                                       << got[worst_index] << ", expected " << want[worst_index];
}

::testing::AssertionResult IsNearRelL2(const std::vector<float>& got,
                                       const std::vector<float>& want, double bound,
                                       const std::vector<int64_t>& shape) {
  return IsNearRelL2(got, std::vector<double>(want.begin(), want.end()), bound, shape);
}

::testing::AssertionResult IsNear(const std::vector<float>& got, const std::vector<double>& want,
                                  double absolute, double relative,
                                  const std::vector<int64_t>& shape) {
  if (const auto special = CheckSpecial(got, want, shape); !special) return special;
  double worst = 1;  // in units of the bound
  size_t worst_index = got.size();
  for (size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(want[i])) continue;
    const double bound = absolute + relative * std::fabs(want[i]);
    const double difference = std::fabs(got[i] - want[i]);
    const double units = difference == 0 ? 0 : difference / bound;
    if (units > worst) worst = units, worst_index = i;
  }
  if (worst_index == got.size()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "worst at " << IndexText(worst_index, shape) << ": got " << got[worst_index]
         << ", expected " << want[worst_index] << ", " << worst << " times the bound (" << absolute
         << " + " << relative << " * |expected|)";
}

}  // namespace mk::testing
