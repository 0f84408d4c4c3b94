#include "core/run/run_graphs.h"

#include <cstring>
#include <iterator>
#include <utility>
#include <variant>

namespace mk {
namespace {

void Append(std::string& key, uint64_t number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// With its length before it, so that no text runs into the next.
void Append(std::string& key, std::string_view text) {
  Append(key, uint64_t{text.size()});
  key.append(text);
}

struct AppendValue {
  std::string& key;
  void operator()(bool value) const { Append(key, uint64_t{value}); }
  void operator()(int64_t value) const { Append(key, static_cast<uint64_t>(value)); }
  void operator()(uint64_t value) const { Append(key, value); }
  void operator()(double value) const {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    Append(key, bits);
  }
  void operator()(const std::string& value) const { Append(key, std::string_view(value)); }
};

}  // namespace

std::string RunKey(const InferRequest& request) {
  std::string key;
  Append(key, uint64_t{request.inputs.size()});
  for (const InputTensor& input : request.inputs) {
    Append(key, std::string_view(input.name));
    Append(key, uint64_t{input.dtype});
    Append(key, uint64_t{input.shape.size()});
    for (const int64_t dim : input.shape) Append(key, static_cast<uint64_t>(dim));
  }
  for (const auto& [name, value] : request.parameters) {
    Append(key, std::string_view(name));
    Append(key, uint64_t{value.index()});
    std::visit(AppendValue{key}, value);
  }
  return key;
}

RunGraphs::Entry* RunGraphs::Find(const std::string& key) {
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return &entries_.front();
}

RunGraphs::Step RunGraphs::Next(const std::string& key, RunGraph** graph) {
  if (most_graphs_ == 0) return Step::kLaunch;
  Entry* entry = Find(key);
  if (entry == nullptr) return Step::kLaunch;
  switch (entry->state) {
    case Entry::State::kRanOnce:
      return Step::kCapture;
    case Entry::State::kRefused:
      return Step::kLaunch;
    case Entry::State::kCaptured:
      ++counters_.replayed;
      *graph = &entry->graph;
      return Step::kReplay;
  }
  return Step::kLaunch;
}

void RunGraphs::RanWell(const std::string& key) {
  if (most_graphs_ == 0 || Find(key) != nullptr) return;
  Put({key, Entry::State::kRanOnce, {}});
}

void RunGraphs::Store(const std::string& key, RunGraph graph) {
  ++counters_.captured;
  Put({key, Entry::State::kCaptured, std::move(graph)});
}

void RunGraphs::Refuse(const std::string& key) {
  if (most_graphs_ == 0) return;
  Entry* entry = Find(key);
  if (entry != nullptr && entry->state == Entry::State::kRefused) return;
  ++counters_.refused;
  Put({key, Entry::State::kRefused, {}});
}

void RunGraphs::Put(Entry entry) {
  const auto found = index_.find(entry.key);
  if (found != index_.end()) {
    graphs_ -= found->second->state == Entry::State::kCaptured;
    const auto old = found->second;
    index_.erase(found);  // before the text that it looks at
    entries_.erase(old);
  }
  graphs_ += entry.state == Entry::State::kCaptured;
  entries_.push_front(std::move(entry));
  index_.emplace(entries_.front().key, entries_.begin());
  Trim();
}

void RunGraphs::Trim() {
  for (auto entry = entries_.end(); graphs_ > most_graphs_ || entries_.size() > kMostKeys;) {
    --entry;
    const bool captured = entry->state == Entry::State::kCaptured;
    if (!captured && entries_.size() <= kMostKeys) continue;
    counters_.evicted += captured;
    graphs_ -= captured;
    index_.erase(entry->key);
    entry = entries_.erase(entry);
  }
}

}  // namespace mk
