#include "kernels/emulator/traffic.h"

#include <algorithm>
#include <cstdio>

#include "kernels/emulator/finding.h"

namespace mk {
namespace emu {
namespace {

constexpr uint64_t kSector = 32;
constexpr uint64_t kBanks = 32;
constexpr uint64_t kWord = 4;
constexpr size_t kMaxOpen = 4096;  // groups that wait for lanes which may never come

void CountGlobal(const WarpAccess& access, MemoryCounts* counts) {
  struct Piece {
    uint64_t sector;
    uint32_t mask;  // of its bytes
  };
  Piece pieces[32];
  uint32_t count = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if ((access.lanes >> lane & 1u) == 0) continue;
    const uint64_t at = access.address[lane];
    if (access.bytes[lane] == 0) continue;
    const uint64_t mask = ((uint64_t{1} << access.bytes[lane]) - 1) << (at % kSector);
    pieces[count++] = {at / kSector, static_cast<uint32_t>(mask)};
  }
  std::sort(pieces, pieces + count,
            [](const Piece& a, const Piece& b) { return a.sector < b.sector; });
  uint64_t distinct_bytes = 0;
  for (uint32_t i = 0; i < count;) {
    uint32_t mask = 0;
    uint32_t j = i;
    for (; j < count && pieces[j].sector == pieces[i].sector; ++j) mask |= pieces[j].mask;
    distinct_bytes += static_cast<uint64_t>(__builtin_popcount(mask));
    ++counts->units;
    i = j;
  }
  counts->ideal += (distinct_bytes + kSector - 1) / kSector;
}

void CountShared(const WarpAccess& access, MemoryCounts* counts) {
  uint32_t widest = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if ((access.lanes >> lane & 1u) != 0) widest = std::max<uint32_t>(widest, access.bytes[lane]);
  }
  const uint32_t lanes_at_once = widest <= 4 ? 32 : widest <= 8 ? 16 : 8;
  for (uint32_t first = 0; first < 32; first += lanes_at_once) {
    uint64_t words[32];
    uint32_t count = 0;
    for (uint32_t lane = first; lane < first + lanes_at_once; ++lane) {
      if ((access.lanes >> lane & 1u) == 0) continue;
      for (uint64_t w = access.address[lane] / kWord;
           w * kWord < access.address[lane] + access.bytes[lane]; ++w) {
        words[count++] = w;
        if (count == 32) break;
      }
    }
    if (count == 0) continue;
    std::sort(words, words + count);
    const auto end = std::unique(words, words + count);
    uint32_t per_bank[kBanks] = {};
    for (const uint64_t* w = words; w != end; ++w) ++per_bank[*w % kBanks];
    counts->units += *std::max_element(per_bank, per_bank + kBanks);
    counts->ideal += 1;
  }
}

}  // namespace

void MemoryCounts::Add(const MemoryCounts& other) {
  requests += other.requests;
  bytes += other.bytes;
  units += other.units;
  ideal += other.ideal;
}

MemoryCounts CountAccess(const WarpAccess& access, bool shared) {
  MemoryCounts counts;
  counts.requests = 1;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if ((access.lanes >> lane & 1u) != 0) counts.bytes += access.bytes[lane];
  }
  if (shared) {
    CountShared(access, &counts);
  } else {
    CountGlobal(access, &counts);
  }
  return counts;
}

std::string Counts::Text() const {
  std::string text;
  char line[256];
  std::snprintf(line, sizeof(line), "%-28s %12s %12s %10s %12s %12s %10s\n", "line", "global B",
                "sectors", "waste", "shared B", "wavefronts", "conflicts");
  text += line;
  for (const SiteCounts& s : sites) {
    std::snprintf(line, sizeof(line), "%-28s %12llu %12llu %10llu %12llu %12llu %10llu\n",
                  SiteText(s.site).c_str(), static_cast<unsigned long long>(s.global.bytes),
                  static_cast<unsigned long long>(s.global.units),
                  static_cast<unsigned long long>(s.global.units - s.global.ideal),
                  static_cast<unsigned long long>(s.shared.bytes),
                  static_cast<unsigned long long>(s.shared.units),
                  static_cast<unsigned long long>(s.shared.units - s.shared.ideal));
    text += line;
  }
  return text;
}

void Traffic::BeginLaunch() {
  counts = Counts{};
  by_site_.clear();
}

void Traffic::BeginBlock(uint32_t warps) {
  lines_.resize(warps);
  for (std::vector<Line>& lines : lines_) lines.clear();
}

void Traffic::Touch(uint32_t warp, uint32_t lane, uint32_t live, uint32_t site, bool shared,
                    bool store, uint32_t bytes, uint64_t address) {
  std::vector<Line>& lines = lines_[warp];
  const uint32_t index = 4 * site + (shared ? 2 : 0) + (store ? 1 : 0);
  if (index >= lines.size()) lines.resize(index + 1);
  Line& line = lines[index];
  const uint32_t visit = line.visits[lane]++;
  WarpAccess alone;
  WarpAccess* group = &alone;  // where its group was closed long ago
  if (visit >= line.base) {
    while (visit - line.base >= line.open.size()) line.open.emplace_back();
    group = &line.open[visit - line.base];
  }
  group->lanes |= 1u << lane;
  group->bytes[lane] = static_cast<uint8_t>(bytes);
  group->address[lane] = address;
  if (group == &alone) Close(index, alone);
  while (!line.open.empty() &&
         ((line.open.front().lanes & live) == live || line.open.size() > kMaxOpen)) {
    Close(index, line.open.front());
    line.open.pop_front();
    ++line.base;
  }
}

void Traffic::Close(uint32_t line, const WarpAccess& access) {
  if (access.lanes == 0) return;
  const uint32_t site = line / 4;
  const bool shared = (line & 2u) != 0;
  const bool store = (line & 1u) != 0;
  const MemoryCounts c = CountAccess(access, shared);
  if (site >= by_site_.size()) by_site_.resize(site + 1);
  (shared ? by_site_[site].shared : by_site_[site].global).Add(c);
  MemoryCounts& total = shared ? (store ? counts.shared_stores : counts.shared_loads)
                               : (store ? counts.global_stores : counts.global_loads);
  total.Add(c);
}

void Traffic::EndBlock() {
  for (std::vector<Line>& lines : lines_) {
    for (size_t line = 0; line < lines.size(); ++line) {
      for (const WarpAccess& access : lines[line].open) Close(static_cast<uint32_t>(line), access);
      lines[line].open.clear();
    }
  }
}

}  // namespace emu
}  // namespace mk
