// Skeletons of real exports: every label, and no other.
#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "verify/scan/testing/graph_builder.h"

namespace mk::scan::testing {
namespace {

constexpr char kFolder[] = "verify/scan/testdata/";

struct Labelled {
  std::string name, spots;
};

std::vector<Labelled> ReadLabels() {
  std::vector<Labelled> all;
  std::ifstream in(std::string(kFolder) + "labels.txt");
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t space = line.find(' ');
    all.push_back({line.substr(0, space), line.substr(space + 1)});
  }
  return all;
}

absl::StatusOr<Report> ScanSkeleton(const std::string& name) {
  std::ifstream in(kFolder + name + ".onnx.gz", std::ios::binary);
  google::protobuf::io::IstreamInputStream file(&in);
  google::protobuf::io::GzipInputStream bytes(&file);
  return ScanBytes(&bytes, {});
}

TEST(Exports, HaveTheirLabelsAndNoOther) {
  const std::vector<Labelled> all = ReadLabels();
  ASSERT_GE(all.size(), 10u);
  int misses = 0, alarms = 0;
  for (const Labelled& model : all) {
    const auto report = ScanSkeleton(model.name);
    ASSERT_TRUE(report.ok()) << model.name << ": " << report.status();
    for (int spot = 0; spot < kSpots; ++spot) {
      const bool is_expected = model.spots.find(SpotId(spot)) != std::string::npos;
      const bool is_found = report->counts[static_cast<size_t>(spot)] != 0;
      misses += is_expected && !is_found;
      alarms += !is_expected && is_found;
      EXPECT_EQ(is_found, is_expected) << model.name << " " << SpotId(spot);
    }
    EXPECT_EQ(report->hidden_count, 0) << model.name;
    // Only weights were taken out: nothing dangles.
    for (const Remark& remark : report->remarks)
      EXPECT_NE(remark.code, "dangling-input") << model.name << remark.text;
  }
  std::printf("%zu graphs: %d missed, %d false alarms\n", all.size(), misses, alarms);
}

}  // namespace
}  // namespace mk::scan::testing
