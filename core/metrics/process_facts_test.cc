#include "core/metrics/process_facts.h"

#include <gtest/gtest.h>

namespace mk {
namespace {

TEST(ResidentBytes, TakesTheSecondFieldInPages) {
  EXPECT_EQ(ResidentBytes("2000 300 100 1 0 50 0\n", 4096), 300u * 4096);
}

TEST(ResidentBytes, UnknownIsZero) {
  EXPECT_EQ(ResidentBytes("", 4096), 0u);
  EXPECT_EQ(ResidentBytes("2000", 4096), 0u);
  EXPECT_EQ(ResidentBytes("2000 x", 4096), 0u);
  EXPECT_EQ(ResidentBytes("2000 18446744073709551615", 4096), 0u);
}

TEST(ReadMemInfo, UsedIsTotalLessAvailable) {
  ProcessFacts facts;
  ReadMemInfo("MemTotal:       8000 kB\nMemFree:  10 kB\nMemAvailable:   6000 kB\n", facts);
  EXPECT_EQ(facts.cpu_memory_total_bytes, 8000u * 1024);
  EXPECT_EQ(facts.cpu_memory_used_bytes, 2000u * 1024);
}

TEST(ReadMemInfo, UnknownIsZero) {
  ProcessFacts facts;
  ReadMemInfo("MemTotal: 8000 kB\n", facts);
  EXPECT_EQ(facts.cpu_memory_used_bytes, 0u);
  ReadMemInfo("MemTotal: 8000 kB\nMemAvailable: 9000 kB", facts);
  EXPECT_EQ(facts.cpu_memory_used_bytes, 0u);
  ReadMemInfo("", facts);
  EXPECT_EQ(facts.cpu_memory_total_bytes, 0u);
  ReadMemInfo("MemTotal: lots", facts);
  EXPECT_EQ(facts.cpu_memory_total_bytes, 0u);
}

TEST(ReadProcessFacts, ThisProcessHasMemory) {
  const ProcessFacts facts = ReadProcessFacts();
  EXPECT_GT(facts.resident_bytes, 100'000u);
  EXPECT_GT(facts.cpu_memory_total_bytes, facts.resident_bytes);
  EXPECT_GT(facts.cpu_memory_used_bytes, 0u);
  EXPECT_LT(facts.cpu_memory_used_bytes, facts.cpu_memory_total_bytes);
}

}  // namespace
}  // namespace mk
