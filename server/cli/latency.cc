#include "server/cli/latency.h"

#include <algorithm>
#include <cmath>

namespace mk::cli {
namespace {

constexpr int kStepBits = 10;
constexpr uint64_t kSteps = 1u << kStepBits;
constexpr int kOctaves = 34;  // 2^(10 + 33) ns is 2.4 hours; longer falls into the last bucket

// Values below kSteps have a bucket each; above, each power of two is cut into kSteps equal parts.
size_t BucketOf(uint64_t ns) {
  if (ns < kSteps) return ns;
  const int octave = 63 - __builtin_clzll(ns) - kStepBits;
  const uint64_t step = (ns >> octave) - kSteps;
  return std::min<uint64_t>((static_cast<uint64_t>(octave) + 1) * kSteps + step,
                            (kOctaves + 1) * kSteps - 1);
}

// The largest value of a bucket.
int64_t UpperOf(size_t bucket) {
  if (bucket < kSteps) return static_cast<int64_t>(bucket);
  const size_t octave = bucket / kSteps - 1;
  return static_cast<int64_t>(((kSteps + bucket % kSteps + 1) << octave) - 1);
}

}  // namespace

LatencyRecorder::LatencyRecorder() : counts_((kOctaves + 1) * kSteps) {}

void LatencyRecorder::Record(int64_t ns) {
  ns = std::max<int64_t>(ns, 0);
  ++counts_[BucketOf(static_cast<uint64_t>(ns))];
  ++count_;
  max_ns_ = std::max(max_ns_, ns);
  sum_ns_ += static_cast<double>(ns);
}

void LatencyRecorder::Merge(const LatencyRecorder& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ns_ = std::max(max_ns_, other.max_ns_);
  sum_ns_ += other.sum_ns_;
}

int64_t LatencyRecorder::PercentileNs(double fraction) const {
  if (count_ == 0) return 0;
  const auto rank = std::max<uint64_t>(
      1, static_cast<uint64_t>(std::ceil(fraction * static_cast<double>(count_))));
  uint64_t seen = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::min(UpperOf(i), max_ns_);
  }
  return max_ns_;
}

}  // namespace mk::cli
