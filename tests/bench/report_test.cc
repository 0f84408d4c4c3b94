#include "tests/bench/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mk {
namespace {

std::vector<Cell> Cells() {
  return {{"echo-1KiB", "direct", 1, {Summarise({1000}, 1, -1)}},
          {"echo-1KiB", "lanes", 1, {Summarise({11'000}, 1, -1)}},
          {"echo-1KiB", "grpc", 1, {Summarise({101'000}, 1, 0.0005), Summarise({99'000}, 1, 0.5)}},
          {"echo-1KiB", "grpc", 8, {Summarise({500'000}, 1, -1)}}};
}

TEST(Table, HasALineForEachCellAndADashForWhatIsNotKnown) {
  const std::string table = Table(Cells());
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 5) << table;
  EXPECT_NE(table.find("99.0"), std::string::npos) << table;
  EXPECT_EQ(table.substr(table.size() - 2), "-\n");
}

TEST(AddedLatency, IsTheDifferenceToThePackAloneAtConcurrencyOne) {
  EXPECT_EQ(AddedLatency(Cells()),
            "echo-1KiB: the daemon adds 98.0 us at p50 (99.0 over gRPC, 1.0 the pack alone, 11.0 "
            "with its lane)\n");
  EXPECT_EQ(AddedLatency({Cells()[2]}), "");
}

TEST(Json, KeepsEveryRound) {
  const auto json = nlohmann::json::parse(Json(Cells(), {{"cpu", "a \"quoted\" name"}}));
  EXPECT_EQ(json["cpu"], "a \"quoted\" name");
  ASSERT_EQ(json["cells"].size(), 4u);
  EXPECT_EQ(json["cells"][2]["rounds"].size(), 2u);
  EXPECT_EQ(json["cells"][2]["median"]["p50_us"], 99.0);
  EXPECT_EQ(json["cells"][2]["rounds"][0]["server_cpu_seconds_per_1000"], 0.5);
  EXPECT_TRUE(json["cells"][3]["median"]["server_cpu_seconds_per_1000"].is_null());
}

}  // namespace
}  // namespace mk
