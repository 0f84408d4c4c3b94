// How families are written down; private to this room.
#ifndef MERGEKERNEL_CORE_METRICS_FAMILY_LIST_H_
#define MERGEKERNEL_CORE_METRICS_FAMILY_LIST_H_

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/metrics/families.h"
#include "core/metrics/model_stats.h"

namespace mk {

using Label = std::pair<const char*, std::string>;
using Labels = std::vector<Label>;

// `Begin` a family, then `Add` its series. One without series is left out of the result.
class FamilyList {
 public:
  void Begin(const char* name, prometheus::MetricType type, const char* help);
  // Label values that are no printable ASCII are escaped: the exposition must be UTF-8, and a
  // device's name is not ours.
  void Add(const Labels& labels, double value);  // REQUIRES a counter or gauge
  void Add(const Labels& labels, const HistogramSnapshot& histogram);  // in seconds
  // A family of one series.
  void One(const char* name, prometheus::MetricType type, const char* help, double value) {
    Begin(name, type, help);
    Add({}, value);
  }
  std::vector<prometheus::MetricFamily> Take();

 private:
  prometheus::ClientMetric& AddSeries(const Labels& labels);

  std::vector<prometheus::MetricFamily> families_;
};

// The generations of one version seen as one.
struct VersionView {
  uint64_t generation = 0;  // the newest
  double load_seconds = 0;  // its
  uint64_t queued = 0;
  uint64_t running = 0;
  std::map<std::string, RegionBytes> regions;  // by name
};
// Keys are pack and version.
using VersionViews = std::map<std::pair<std::string, int64_t>, VersionView>;
VersionViews MergeGenerations(const std::vector<GenerationSnapshot>& generations);

// The nv_* families, behind ours.
void AddNvFamilies(const DaemonSnapshot& snapshot, const VersionViews& versions, FamilyList& list);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_METRICS_FAMILY_LIST_H_
