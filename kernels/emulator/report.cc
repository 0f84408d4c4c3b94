// Putting findings into words.
#include <algorithm>
#include <cstdio>

#include "kernels/emulator/launch.h"

namespace mk {
namespace emu {
namespace {

std::string Hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

uint32_t Launch::SiteId(const Site& site) {
  const size_t hash =
      (reinterpret_cast<uint64_t>(site.file) / 8 + static_cast<uint64_t>(site.line) * 131) % 256;
  std::pair<Site, uint32_t>& cached = site_cache_[hash];
  if (cached.first.file == site.file && cached.first.line == site.line) return cached.second;
  uint32_t id = 1;
  while (id < sites_.size() && !SameSite(sites_[id], site)) ++id;
  if (id == sites_.size()) sites_.push_back(site);
  cached = {site, id};
  return id;
}

Party Launch::PartyOf(const ThreadRun& t, const char* does, const Site& site) const {
  Party party;
  party.thread = t.thread_index;
  party.linear = t.linear;
  party.block = block_;
  party.site = site;
  party.does = does;
  party.last_sync = t.last_sync;
  party.last_sync_name = t.last_sync_name;
  return party;
}

Party Launch::PartyOf(const Stamp& stamp, const char* does) const {
  const uint64_t block = clocks_.BlockOf(stamp);
  Party party = PartyOf(*threads_[stamp.thread], does, sites_[stamp.site]);
  party.block = block;
  party.last_sync_name = nullptr;  // it may have gone on since
  return party;
}

void Launch::Found(FindingKind kind, const std::string& place, const std::string& what,
                   const std::vector<Party>& parties, bool fatal) {
  uint32_t ids[2] = {0, 0};
  for (size_t i = 0; i < parties.size() && i < 2; ++i) ids[i] = SiteId(parties[i].site);
  if (seen_.insert({static_cast<int>(kind), ids[0], ids[1]}).second) {
    report_.findings.push_back({kind, kernel_name_, place, what, parties});
  }
  if (fatal || report_.findings.size() >= static_cast<size_t>(std::max(1, options_.max_findings)))
    stop_ = true;
}

void Launch::Found(ThreadRun* t, FindingKind kind, const char* does, const Site& site,
                   const std::string& place, const std::string& what, bool fatal) {
  Found(kind, place, what, {PartyOf(*t, does, site)}, fatal);
}

std::string Launch::SharedPlace(uint32_t offset) const {
  const SharedArray* best = nullptr;
  for (const SharedArray& a : shared_arrays_) {
    if (a.offset <= offset && (best == nullptr || a.offset > best->offset)) best = &a;
  }
  if (offset >= kDynamicBegin || best == nullptr) {
    return "shared memory, dynamic+" + Hex(uint64_t{offset} - kDynamicBegin);
  }
  return "shared memory, " + best->name + "+" + Hex(offset - best->offset) + " (of " +
         std::to_string(best->bytes) + " bytes)";
}

std::string Launch::GlobalPlace(const Buffer& buffer, uint64_t offset) {
  return "device memory, " + buffer.name + "+" + Hex(offset) + " (of " +
         std::to_string(buffer.bytes) + " bytes)";
}

bool Launch::Ignored(const Site& site, const char* name) {
  bool known = false;
  for (const SyncSite& s : report_.sync_sites) known = known || SameSite(s.site, site);
  if (!known) report_.sync_sites.push_back({site, name});
  return options_.ignored_sync.file != nullptr && SameSite(options_.ignored_sync, site);
}

void Launch::Passed(ThreadRun* t, const Site& site, const char* name) {
  t->last_sync = site;
  t->last_sync_name = name;
}

}  // namespace emu
}  // namespace mk
