// cp.async: from its issue to the wait that covers it, the destination belongs to the copy.
#include <cstring>

#include "kernels/emulator/launch.h"

namespace mk {
namespace emu {

bool Launch::CopyAsync(ThreadRun* t, void* shared, const void* global, uint32_t bytes,
                       uint32_t source_bytes, const Site& site, void** to_now,
                       const void** from_now) {
  constexpr const char* kDoes = "copies asynchronously";
  Breathe(t, site);
  const uint64_t to = reinterpret_cast<uint64_t>(shared);
  const uint64_t from = reinterpret_cast<uint64_t>(global);
  if (to % bytes != 0 || (source_bytes > 0 && from % bytes != 0)) {
    Found(t, FindingKind::kMisaligned, kDoes, site, "",
          std::to_string(bytes) + " bytes, of which an address is no multiple");
  }
  const uint64_t offset = to & ~kTagMask;
  bool inside = (to & kTagMask) == kSharedTag && offset + bytes <= kWindowBytes && offset % 4 == 0;
  for (uint32_t i = 0; inside && i < bytes; ++i) inside = window_state_[offset + i] != kOutside;
  if (!inside || source_bytes > bytes) {
    Found(t, FindingKind::kOutOfBounds, kDoes, site, "",
          source_bytes > bytes ? "more source bytes than bytes"
                               : "its destination is not in what the block has of shared memory");
    return false;
  }
  ++traffic_.counts.async_copies;
  AsyncCopy copy = {window_->bytes + offset,
                    nullptr,
                    static_cast<uint32_t>(offset),
                    bytes,
                    source_bytes,
                    t->group,
                    site,
                    options_.async == AsyncCopies::kEager,
                    {}};
  const uint32_t warp = t->linear / 32;
  if (source_bytes > 0) {
    copy.from = ReachGlobal(t, from, source_bytes, Access::kLoad, site);
    if (copy.from == scratch_) return false;  // reported
  } else if (options_.count) {
    traffic_.Touch(warp, t->linear % 32, warps_[warp].live, SiteId(site), false, false, 0, 0);
  }
  for (uint32_t word = copy.offset / 4; word < (copy.offset + bytes) / 4; ++word) {
    if (window_pending_[word] != 0) {
      Found(t, FindingKind::kAsyncRead, kDoes, site, SharedPlace(copy.offset),
            "an earlier copy to it is still under way");
    }
    window_pending_[word] = static_cast<uint16_t>(t->linear + 1);
  }
  if (options_.races) Race(t, &window_shadow_, copy.offset, bytes, Access::kStore, site, nullptr);
  if (options_.count) {
    traffic_.Touch(warp, t->linear % 32, warps_[warp].live, SiteId(site), true, true, bytes,
                   copy.offset);
  }
  t->copies.push_back(copy);
  if (!copy.done) {
    std::memset(copy.to, 0xff, bytes);
    return false;
  }
  waited_ = copy;
  HandOut(to_now, from_now);
  return true;
}

// Where `waited_` is copied from: where not all of it is read, a copy with the zeros behind it.
void Launch::HandOut(void** to, const void** from) {
  *to = waited_.to;
  *from = waited_.from;
  if (waited_.source_bytes == waited_.bytes) return;
  std::memset(waited_.staged, 0, sizeof(waited_.staged));
  if (waited_.source_bytes > 0) std::memcpy(waited_.staged, waited_.from, waited_.source_bytes);
  *from = waited_.staged;
}

bool Launch::CopyWait(ThreadRun* t, uint32_t pending, const Site& site, void** to,
                      const void** from, uint32_t* bytes) {
  if (Ignored(site, "CopyAsyncWait")) return false;
  while (!t->copies.empty() && t->copies.front().group + pending < t->group) {
    waited_ = t->copies.front();
    t->copies.pop_front();
    AsyncCopy& copy = waited_;
    for (uint32_t word = copy.offset / 4; word < (copy.offset + copy.bytes) / 4; ++word)
      window_pending_[word] = 0;
    std::fill_n(window_state_.begin() + copy.offset, copy.bytes, kWritten);
    if (options_.races)
      Race(t, &window_shadow_, copy.offset, copy.bytes, Access::kStore, copy.site, nullptr);
    if (copy.done) continue;
    *bytes = copy.bytes;
    HandOut(to, from);
    return true;
  }
  Passed(t, site, "CopyAsyncWait");
  return false;
}

}  // namespace emu
}  // namespace mk
