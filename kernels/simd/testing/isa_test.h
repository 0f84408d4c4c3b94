// Tests of a CPU twin that run once for each instruction set:
//
//   class LayerNormTwin : public testing::IsaTest {};
//   MK_FOR_EVERY_ISA(LayerNormTwin);
//   TEST_P(LayerNormTwin, CarriesNanToItsRowOnly) { ... LayerNormCpu(*context, params, isa()) ... }
#ifndef MERGEKERNEL_KERNELS_SIMD_TESTING_ISA_TEST_H_
#define MERGEKERNEL_KERNELS_SIMD_TESTING_ISA_TEST_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "kernels/simd/testing/isas.h"

namespace mk::testing {

class IsaTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (HasIsa(isa())) return;
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::printf("skipped %s.%s: this CPU has no %s\n", test->test_suite_name(), test->name(),
                IsaName(isa()));
    GTEST_SKIP();
  }
  static Isa isa() { return GetParam(); }
};

inline std::string IsaTestName(const ::testing::TestParamInfo<Isa>& info) {
  std::string name = IsaName(info.param);
  name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
  return name;
}

}  // namespace mk::testing

#define MK_FOR_EVERY_ISA(suite)                                                            \
  INSTANTIATE_TEST_SUITE_P(Isa, suite, ::testing::ValuesIn(::mk::testing::CompiledIsas()), \
                           ::mk::testing::IsaTestName)

#endif  // MERGEKERNEL_KERNELS_SIMD_TESTING_ISA_TEST_H_
