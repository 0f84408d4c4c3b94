#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/checked.h"
#include "core/base/clock.h"
#include "core/base/dtype.h"
#include "core/base/half.h"
#include "core/base/meminfo.h"
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

TEST(Half, HalfHasTheKnownValues) {
  EXPECT_EQ(HalfToFloat(0x3c00), 1.0f);
  EXPECT_EQ(HalfToFloat(0x7bff), 65504.0f);
  EXPECT_EQ(HalfToFloat(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(HalfToFloat(0x83ff), -std::ldexp(1023.0f, -24));
  EXPECT_TRUE(std::isinf(HalfToFloat(0xfc00)));
  EXPECT_TRUE(std::isnan(HalfToFloat(0x7e00)));
}

TEST(Half, EveryValueComesBackAndEveryMiddleGoesToTheEvenOne) {
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    const auto narrow = static_cast<uint16_t>(bits);
    for (const bool half : {true, false}) {
      const auto widen = half ? HalfToFloat : BFloat16ToFloat;
      const auto shorten = half ? FloatToHalf : FloatToBFloat16;
      const float value = widen(narrow);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(widen(shorten(value)))) << bits;
        ASSERT_EQ(std::signbit(widen(shorten(value))), std::signbit(value)) << bits;
        continue;
      }
      ASSERT_EQ(shorten(value), narrow) << bits;
      // Halfway to the next number of the same sign, where there is a finite one; exact in fp32.
      const float next = widen(static_cast<uint16_t>(narrow + 1));
      if (!std::isfinite(value) || !std::isfinite(next)) continue;
      const float middle = value + (next - value) / 2;
      const uint16_t even = static_cast<uint16_t>(narrow + (narrow & 1));
      ASSERT_EQ(shorten(middle), even) << bits;
      ASSERT_EQ(shorten(std::nextafter(middle, next)), narrow + 1) << bits;
      ASSERT_EQ(shorten(std::nextafter(middle, value)), narrow) << bits;
    }
  }
  EXPECT_EQ(FloatToHalf(65519.996f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(1e30f), 0x7c00);
  EXPECT_EQ(FloatToHalf(1e-30f), 0);
  EXPECT_EQ(FloatToBFloat16(0.01f), 0x3c24);  // A19: rounded, where a cut gives 3c23
}

TEST(Text, ATerminalGetsUtf8AndNothingThatSteersIt) {
  EXPECT_EQ(TerminalText("Caf\u00e9 \u8863\u670d \U0001F600"), "Caf\u00e9 \u8863\u670d \U0001F600");
  EXPECT_EQ(TerminalText("\x1b[2J\n"), "\\x1b[2J\\x0a");
  EXPECT_EQ(TerminalText("a\xc2\x9b"
                         "b"),
            "a\\xc2\\x9b"
            "b");  // CSI as a C1 control
  EXPECT_EQ(TerminalText("\u202e"
                         "x"),
            "\\xe2\\x80\\xaex");                               // right-to-left override
  EXPECT_EQ(TerminalText("\xc0\x80"), "\\xc0\\x80");           // NUL in too long a form
  EXPECT_EQ(TerminalText("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(TerminalText("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(TerminalText("ab\xe8\xa1"), "ab\\xe8\\xa1");  // cut short
  EXPECT_EQ(TerminalText("abcdef", 3), "abc...");
}

TEST(Text, TheNearestNameIsTheOneWithTheFewestEdits) {
  EXPECT_EQ(Nearest("statsu", {"packs", "status", "statue"}), "status");
  EXPECT_EQ(Nearest("zzz", {"status", "packs"}, 2), "");
  EXPECT_EQ(Nearest("zzz", {}), "");
  EXPECT_EQ(Nearest("", {"ab", "a"}), "a");
}

TEST(MemInfo, OnlyTheLineOfThatNameCounts) {
  const char* text =
      "MemTotalX:  7 kB\nMemTotal:   16 kB\nHugePages_Total:   \nBig: 99999999999999999999 kB\n";
  EXPECT_EQ(MemInfoBytes(text, "MemTotal"), 16384u);
  for (const char* key : {"Mem", "HugePages_Total", "Big", "Absent", ""})
    EXPECT_EQ(MemInfoBytes(text, key), std::nullopt) << key;
  EXPECT_GT(MemInfoBytes("MemTotal"), 0u);
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
