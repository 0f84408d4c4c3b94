#include <gtest/gtest.h>

#include <vector>

#include "core/base/checked.h"
#include "core/base/clock.h"
#include "core/base/dtype.h"
#include "core/base/text.h"

namespace mk {
namespace {

TEST(CheckedProduct, RefusesNegativeAndOverflow) {
  EXPECT_EQ(CheckedProduct(std::vector<int64_t>{}), 1u);
  EXPECT_EQ(CheckedProduct(std::vector<int64_t>{2, 3}), 6u);
  EXPECT_EQ(CheckedProduct(std::vector<int64_t>{-1, 16}), std::nullopt);
  EXPECT_EQ(CheckedProduct(std::vector<int64_t>{INT64_MIN}), std::nullopt);
  EXPECT_EQ(CheckedProduct(std::vector<int64_t>{INT64_MAX, 2}), std::nullopt);
  EXPECT_EQ(CheckedProduct(std::vector<int64_t>{1LL << 32, 1LL << 31}), std::nullopt);
}

TEST(CheckedProduct, ZeroDimDoesNotHideOverflow) {
  EXPECT_EQ(CheckedProduct(std::vector<int64_t>{0, 3}), 0u);
  EXPECT_EQ(CheckedProduct(std::vector<int64_t>{0, INT64_MAX, INT64_MAX}), std::nullopt);
}

TEST(Checked, MulAndAddReportOverflow) {
  EXPECT_EQ(CheckedAdd(UINT64_MAX, 1), std::nullopt);
  EXPECT_EQ(CheckedMul(UINT64_MAX, 2), std::nullopt);
  EXPECT_EQ(CheckedMul(3, 4), 12u);
}

TEST(Dtype, NamesAndSizesRoundTrip) {
  for (mk_dtype d = MK_DTYPE_BOOL; d <= MK_DTYPE_BYTES; ++d)
    EXPECT_EQ(DtypeFromName(DtypeName(d)), d);
  EXPECT_EQ(DtypeFromName("fp32"), MK_DTYPE_INVALID);
  EXPECT_EQ(DtypeFromName("INVALID"), MK_DTYPE_INVALID);
  EXPECT_EQ(DtypeFromName(""), MK_DTYPE_INVALID);
  EXPECT_EQ(DtypeSize(MK_DTYPE_BF16), 2u);
  EXPECT_EQ(DtypeSize(MK_DTYPE_BYTES), 0u);
  EXPECT_EQ(DtypeSize(99), 0u);
}

TEST(Text, PrintableHidesControlCharactersAndCuts) {
  EXPECT_EQ(Printable("a\nb\x7f"), "a\\x0ab\\x7f");
  EXPECT_EQ(Printable("abcdef", 3), "abc...");
}

// Field case A18: names that walk out of the repository, and their legal neighbours.
TEST(Text, PlainNamesCannotWalkOutOfTheRepository) {
  for (const char* bad :
       {"../etc", "a/../b", "..", "/etc/passwd", "model/", " ..", ".. ", "", " ", "\t", "."})
    EXPECT_FALSE(IsPlainName(bad)) << bad;
  for (const char* good : {"model.version1", "...", "..my_model", "model..1", "vmamba-pico"})
    EXPECT_TRUE(IsPlainName(good)) << good;
  EXPECT_FALSE(IsPlainName(std::string(129, 'a')));
}

TEST(Clock, FakeStandsStill) {
  FakeClock clock;
  const int64_t before = clock.NowNs();
  EXPECT_EQ(clock.NowNs(), before);
  clock.AdvanceNs(5);
  EXPECT_EQ(clock.NowNs(), before + 5);
}

}  // namespace
}  // namespace mk
