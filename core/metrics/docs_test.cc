// docs/metrics.md lists what the code gives: no more, no less.
#include <gtest/gtest.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/metrics/families.h"
#include "core/metrics/full_snapshot.h"

namespace mk {
namespace {

const char* TypeName(prometheus::MetricType type) {
  switch (type) {
    case prometheus::MetricType::Counter:
      return "counter";
    case prometheus::MetricType::Gauge:
      return "gauge";
    case prometheus::MetricType::Histogram:
      return "histogram";
    case prometheus::MetricType::Summary:
      return "summary";
    case prometheus::MetricType::Untyped:
      return "untyped";
  }
  return "unknown";
}

std::string Trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" `");
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(" `") - first + 1);
}

// "type|labels" by name, of the rows "| `name` | type | labels | unit | meaning |".
std::map<std::string, std::string> Documented() {
  std::map<std::string, std::string> rows;
  std::ifstream page("docs/metrics.md");
  EXPECT_TRUE(page.good());
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| `", 0) != 0) continue;
    std::vector<std::string> cells;
    std::istringstream in(line.substr(1));
    for (std::string cell; std::getline(in, cell, '|');) cells.push_back(Trimmed(cell));
    EXPECT_EQ(cells.size(), 5u) << line;
    if (cells.size() != 5) continue;
    EXPECT_FALSE(cells[4].empty()) << line;
    EXPECT_TRUE(rows.emplace(cells[0], cells[1] + "|" + cells[2]).second) << "twice: " << line;
  }
  return rows;
}

TEST(MetricsPage, ListsEveryFamilyWithItsTypeAndLabels) {
  const std::map<std::string, std::string> rows = Documented();
  std::map<std::string, std::string> families;
  for (const prometheus::MetricFamily& family : Families(FullSnapshot())) {
    std::string labels;
    for (const auto& label : family.metric.front().label) {
      labels += (labels.empty() ? "" : ", ") + label.name;
    }
    families[family.name] = std::string(TypeName(family.type)) + "|" + labels;
  }
  EXPECT_EQ(rows, families);
}

}  // namespace
}  // namespace mk
