#include "kernels/op.h"

#include <gtest/gtest.h>

namespace mk {
namespace {

TEST(Op, RefusalsNameTheOpTheValueAndTheBound) {
  const int something = 0;
  EXPECT_TRUE(CheckPointer("Linear", "x", &something).ok());
  EXPECT_EQ(CheckPointer("Linear", "x", nullptr).message(), "Linear: x is null");
  EXPECT_TRUE(CheckRange("Linear", "k", 1, 1, 8).ok());
  EXPECT_TRUE(CheckRange("Linear", "k", 8, 1, 8).ok());
  EXPECT_EQ(CheckRange("Linear", "k", 0, 1, 8).message(), "Linear: k 0 not in 1..8");
  EXPECT_EQ(CheckRange("Linear", "k", 9, 1, 8).code(), MK_INVALID_ARGUMENT);
}

TEST(Op, ElementProductsAreCheckedWithoutOverflow) {
  EXPECT_TRUE(CheckElements("Op", "y", kMaxElements, 1).ok());
  EXPECT_TRUE(CheckElements("Op", "y", INT64_MAX, 0).ok());
  EXPECT_FALSE(CheckElements("Op", "y", kMaxElements, 2).ok());
  EXPECT_EQ(CheckElements("Op", "y", INT64_MAX, INT64_MAX).code(), MK_INVALID_ARGUMENT);
}

TEST(Op, UnimplementedNamesTheDevice) {
  EXPECT_EQ(NotOnDevice("Linear", DeviceKind::kCuda).code(), MK_UNIMPLEMENTED);
  EXPECT_EQ(NotOnDevice("Linear", DeviceKind::kCuda).message(), "Linear: no code for device cuda");
  EXPECT_EQ(NotOnDevice("Scan", DeviceKind::kPlanning).message(),
            "Scan: no code for device planning");
}

TEST(Op, GrainFallsWithTheCostOfAnItem) {
  EXPECT_EQ(GrainForSteps(0), kMinRangeSteps);
  EXPECT_EQ(GrainForSteps(kMinRangeSteps / 4), 4);
  EXPECT_EQ(GrainForSteps(INT64_MAX), 1);
}

}  // namespace
}  // namespace mk
