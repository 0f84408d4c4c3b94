#include "core/metrics/families.h"

#include <gtest/gtest.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>
#include <prometheus/text_serializer.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cctype>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/metrics/full_snapshot.h"

namespace mk {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

std::string Text(const std::vector<MetricFamily>& families) {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Values by series, as a scraper sees them.
std::map<std::string, double> Samples(const DaemonSnapshot& snapshot) {
  std::map<std::string, double> samples;
  for (const std::string& line : Lines(Text(Families(snapshot)))) {
    if (line.empty() || line[0] == '#') continue;
    const size_t blank = line.rfind(' ');
    EXPECT_TRUE(samples.emplace(line.substr(0, blank), atof(line.c_str() + blank)).second)
        << "twice: " << line;
  }
  return samples;
}

// [a-zA-Z_][a-zA-Z0-9_]*: legal for metrics and for labels. Not std::regex, whose headers do not
// compile without warnings under the sanitizers.
bool IsName(const std::string& name) {
  if (name.empty() || isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  for (const unsigned char c : name) {
    if (isalnum(c) == 0 && c != '_') return false;
  }
  return true;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

TEST(Families, TheExpositionIsValid) {
  std::set<std::string> seen;
  for (const MetricFamily& family : Families(FullSnapshot())) {
    EXPECT_TRUE(IsName(family.name)) << family.name;
    EXPECT_TRUE(seen.insert(family.name).second) << "twice: " << family.name;
    EXPECT_FALSE(family.help.empty()) << family.name;
    EXPECT_EQ(family.help.back(), '.') << family.name;
    EXPECT_NE(family.type, MetricType::Untyped) << family.name;
    ASSERT_FALSE(family.metric.empty()) << family.name;
    const bool ours = family.name.rfind("mergekernel_", 0) == 0;
    EXPECT_TRUE(ours || family.name.rfind("nv_", 0) == 0) << family.name;
    const bool total = EndsWith(family.name, "_total");
    if (ours) {
      EXPECT_EQ(total, family.type == MetricType::Counter) << family.name;
    }
    for (const auto& series : family.metric) {
      std::set<std::string> labels;
      for (const auto& label : series.label) {
        EXPECT_TRUE(IsName(label.name)) << label.name;
        EXPECT_TRUE(labels.insert(label.name).second) << family.name << " " << label.name;
      }
      EXPECT_EQ(labels.size(), family.metric.front().label.size()) << family.name;
    }
  }
}

TEST(Families, EachHasHelpAndTypeAndNoSeriesTwice) {
  const std::string text = Text(Families(FullSnapshot()));
  std::set<std::string> help;
  std::set<std::string> type;
  for (const std::string& line : Lines(text)) {
    if (line.size() < 8) continue;
    const std::string name = line.substr(7, line.find(' ', 7) - 7);
    if (line.rfind("# HELP ", 0) == 0) {
      EXPECT_TRUE(help.insert(name).second) << line;
    }
    if (line.rfind("# TYPE ", 0) == 0) {
      EXPECT_TRUE(type.insert(name).second) << line;
    }
  }
  EXPECT_EQ(help, type);
  EXPECT_EQ(help.size(), Families(FullSnapshot()).size());
  EXPECT_GT(Samples(FullSnapshot()).size(), 100u);
}

TEST(Families, PromtoolAcceptsThem) {
  if (system("command -v promtool > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "promtool is not installed";
  }
  const std::string path = testing::TempDir() + "/exposition.txt";
  std::ofstream(path) << Text(Families(FullSnapshot()));
  const int status = system(("promtool check metrics < " + path).c_str());
  ASSERT_TRUE(WIFEXITED(status));
  // 3: it parses, and a name is not to promtool's taste, as the nv_* ones are not.
  EXPECT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3) << WEXITSTATUS(status);
}

TEST(Families, LabelValuesAreEscapedAndUtf8) {
  DaemonSnapshot snapshot = FullSnapshot();
  snapshot.device_name = "a \"b\" \\ c\nd\xff";
  const std::string text = Text(Families(snapshot));
  EXPECT_NE(text.find(R"(name="a \"b\" \\ c\\x0ad\\xff"} 1)"), std::string::npos)
      << text.substr(text.find("mergekernel_device_info{"), 100);
  EXPECT_EQ(text.find('\xff'), std::string::npos);
}

TEST(Families, HistogramsAreCumulativeAndInSeconds) {
  const auto samples = Samples(FullSnapshot());
  const std::string run = R"({pack="echo",version="7",stage="run")";
  const std::string bucket = "mergekernel_request_stage_seconds_bucket" + run;
  EXPECT_EQ(samples.at(bucket + R"(,le="5e-05"})"), 2);  // 1 us and exactly 50 us
  EXPECT_EQ(samples.at(bucket + R"(,le="0.001"})"), 2);
  EXPECT_EQ(samples.at(bucket + R"(,le="0.002"})"), 3);  // exactly 2 ms
  EXPECT_EQ(samples.at(bucket + R"(,le="30"})"), 3);
  EXPECT_EQ(samples.at(bucket + R"(,le="+Inf"})"), 3);
  EXPECT_EQ(samples.at("mergekernel_request_stage_seconds_count" + run + "}"), 3);
  EXPECT_NEAR(samples.at("mergekernel_request_stage_seconds_sum" + run + "}"), 0.002051, 1e-12);
}

TEST(Families, RequestsAreCountedByOutcome) {
  const auto samples = Samples(FullSnapshot());
  const std::string family = R"(mergekernel_requests_total{pack="echo",version="7",outcome=)";
  EXPECT_EQ(samples.at(family + "\"ok\"}"), 2);
  EXPECT_EQ(samples.at(family + "\"rejected\"}"), 2);
  EXPECT_EQ(samples.at(family + "\"expired\"}"), 1);
  EXPECT_EQ(samples.at(R"(mergekernel_requests_in_flight{pack="echo",version="7"})"), 1);
  EXPECT_EQ(samples.at("mergekernel_unknown_model_requests_total"), 2);
}

TEST(Families, GenerationsOfOneVersionShareItsSeries) {
  const auto samples = Samples(FullSnapshot());
  const std::string version = R"({pack="echo",version="7")";
  EXPECT_EQ(samples.at("mergekernel_queue_requests" + version + "}"), 3);
  EXPECT_EQ(samples.at("mergekernel_running_requests" + version + "}"), 2);
  EXPECT_EQ(samples.at("mergekernel_load_seconds" + version + "}"), 0.5);
  const std::string scratch = version + R"(,region="scratch"})";
  EXPECT_EQ(samples.at("mergekernel_memory_peak_bytes" + scratch), 30);
  EXPECT_EQ(samples.at("mergekernel_memory_declared_bytes" + scratch), 40);
  const std::string live = "mergekernel_memory_live_bytes" + version;
  EXPECT_EQ(samples.at(live + R"(,generation="1",region="weights"})"), 10);
  EXPECT_EQ(samples.at(live + R"(,generation="2",region="weights"})"), 12);
  const std::string info = "mergekernel_generation_info" + version;
  EXPECT_EQ(samples.at(info + R"(,generation="2",digest="bb"})"), 1);
}

TEST(Families, TheGenerationLabelIsOnLiveBytesAndInfoAlone) {
  for (const MetricFamily& family : Families(FullSnapshot())) {
    bool labelled = false;
    for (const auto& label : family.metric.front().label) labelled |= label.name == "generation";
    EXPECT_EQ(labelled, family.name == "mergekernel_memory_live_bytes" ||
                            family.name == "mergekernel_generation_info")
        << family.name;
  }
}

TEST(Families, SwapsAndDaemonFacts) {
  const auto samples = Samples(FullSnapshot());
  const std::string swap = R"({pack="echo",kind="load",outcome="ok"})";
  EXPECT_EQ(samples.at("mergekernel_swaps_total" + swap), 2);
  EXPECT_EQ(samples.at("mergekernel_swap_seconds_total" + swap), 1.5);
  EXPECT_EQ(samples.at("mergekernel_retired_mappings_total"), 1);
  EXPECT_EQ(samples.at("mergekernel_device_budget_bytes"), 1000);
  EXPECT_EQ(samples.at("mergekernel_device_in_use_bytes"), 900);
  EXPECT_EQ(samples.at("mergekernel_host_pool_in_use_bytes"), 10);
  EXPECT_EQ(samples.at("mergekernel_host_pool_limit_bytes"), 100);
  EXPECT_EQ(samples.at("mergekernel_all_queues_requests"), 3);
  EXPECT_EQ(samples.at("mergekernel_all_queues_bytes"), 300);
  EXPECT_EQ(samples.at("mergekernel_ready"), 1);
  EXPECT_EQ(samples.at("mergekernel_uptime_seconds"), 12.5);
  EXPECT_EQ(samples.at("mergekernel_process_resident_bytes"), 5000);
  EXPECT_EQ(samples.at(R"(mergekernel_build_info{version="0.1.0"})"), 1);
  EXPECT_EQ(samples.at(R"(mergekernel_device_info{kind="cpu",name="A CPU"})"), 1);
  EXPECT_EQ(samples.at("mergekernel_scrape_errors_total"), 4);
}

TEST(Families, NvAliasesSayTheSame) {
  const auto samples = Samples(FullSnapshot());
  const std::string model = R"({model="echo",version="7"})";
  const std::string failure = R"(nv_inference_request_failure{model="echo",version="7",reason=)";
  EXPECT_EQ(samples.at("nv_inference_request_success" + model), 2);
  EXPECT_EQ(samples.at(failure + "\"REJECTED\"}"), 3);  // 2 rejected, 1 expired
  EXPECT_EQ(samples.at(failure + "\"CANCELED\"}"), 1);
  EXPECT_EQ(samples.at(failure + "\"BACKEND\"}"), 1);
  EXPECT_EQ(samples.at(failure + "\"OTHER\"}"), 1);
  EXPECT_EQ(samples.at("nv_inference_count" + model), 2);
  EXPECT_EQ(samples.at("nv_inference_exec_count" + model), 3);
  EXPECT_EQ(samples.at("nv_inference_request_duration_us" + model), 2150);
  EXPECT_EQ(samples.at("nv_inference_queue_duration_us" + model), 320);
  EXPECT_EQ(samples.at("nv_inference_compute_input_duration_us" + model), 9);
  EXPECT_EQ(samples.at("nv_inference_compute_infer_duration_us" + model), 2051);
  EXPECT_EQ(samples.at("nv_inference_compute_output_duration_us" + model), 15);
  EXPECT_EQ(samples.at("nv_inference_pending_request_count" + model), 3);
  EXPECT_EQ(samples.at("nv_model_load_duration_secs" + model), 0.5);
  EXPECT_EQ(samples.at("nv_cpu_memory_total_bytes"), 8000);
  EXPECT_EQ(samples.at("nv_cpu_memory_used_bytes"), 6000);
}

TEST(Families, WhatIsNotKnownIsAbsent) {
  const std::string text = Text(Families(DaemonSnapshot()));
  EXPECT_EQ(text.find("resident"), std::string::npos);
  EXPECT_EQ(text.find("nv_"), std::string::npos) << text;
  EXPECT_EQ(text.find("mergekernel_requests_total"), std::string::npos);
  EXPECT_NE(text.find("mergekernel_ready 0"), std::string::npos);
  // No GPU here: a series of zeros would claim one.
  EXPECT_EQ(Text(Families(FullSnapshot())).find("nv_gpu"), std::string::npos);
}

TEST(ScrapeErrorFamilies, IsTheSameFamilyAsInAFullScrape) {
  const std::string text = Text(ScrapeErrorFamilies(4));
  EXPECT_NE(text.find("mergekernel_scrape_errors_total 4"), std::string::npos);
  EXPECT_NE(Text(Families(FullSnapshot())).find(text), std::string::npos);
}

}  // namespace
}  // namespace mk
