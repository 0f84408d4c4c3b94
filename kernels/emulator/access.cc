// Judging accesses: where they are, whether they may be, what they find there, and whom they race
// with.
#include <cstring>

#include "kernels/emulator/launch.h"

namespace mk {
namespace emu {
namespace {

// A thread that loads one word this often, and nothing else, waits for another's store: that one
// gets a turn. After so many turns nobody will store it.
constexpr uint32_t kSpinLoads = 1u << 13;
constexpr uint32_t kSpinTurns = 16;
constexpr uint32_t kSharedGap = 128;  // between static arrays, so that running off one is seen
constexpr uint32_t kMaxStatic = 48 * 1024;

bool IsWrite(Access kind) { return kind == Access::kStore || kind == Access::kAtomic; }

const char* Does(Access kind) {
  switch (kind) {
    case Access::kLoad:
    case Access::kLoadReadOnly:
      return "loads";
    case Access::kLoadMatrixRow:
      return "loads a matrix row";
    case Access::kStore:
      return "stores";
    case Access::kAtomic:
      return "updates atomically";
  }
  return "touches";
}

bool AllAre(const uint8_t* state, uint32_t bytes, uint8_t least) {
  for (uint32_t i = 0; i < bytes; ++i) {
    if (state[i] < least) return false;
  }
  return true;
}

}  // namespace

void* Launch::Scratch() {
  std::memset(scratch_, 0xff, sizeof(scratch_));
  return scratch_;
}

void Launch::Breathe(ThreadRun* t, const Site& site) {
  if (!scheduler_->preempts()) return;
  t->now = site;
  const uint32_t to = scheduler_->Preempt(t->linear);
  if (to == Scheduler::kNone) return;
  Note(*t, to, "before its access at", site);
  SwitchTo(t, to);
}

void Launch::LetOthersStore(ThreadRun* t, const void* address, Access kind, const Site& site) {
  if (address != t->last_address || kind != Access::kLoad) {
    t->last_address = address;
    t->same_loads = t->spin_turns = 0;
    return;
  }
  if (++t->same_loads < kSpinLoads) return;
  t->same_loads = 0;
  if (++t->spin_turns > kSpinTurns) {
    Found(t, FindingKind::kNoProgress, "loads", site, "",
          "the same word " + std::to_string(kSpinLoads * kSpinTurns) +
              " times on end, and nobody stores it",
          true);
    return;
  }
  const uint32_t other = scheduler_->Other(t->linear);
  if (other != Scheduler::kNone) SwitchTo(t, other);
}

void* Launch::Reach(ThreadRun* t, const void* address, uint32_t bytes, Access kind,
                    const Site& site) {
  Breathe(t, site);
  LetOthersStore(t, address, kind, site);
  const uint64_t number = reinterpret_cast<uint64_t>(address);
  if (number % bytes != 0) {
    Found(t, FindingKind::kMisaligned, Does(kind), site, "",
          std::to_string(bytes) + " bytes at an address that is " + std::to_string(number % bytes) +
              " past a multiple");
    return Scratch();
  }
  if ((number & kTagMask) == kSharedTag)
    return ReachShared(t, number & ~kTagMask, bytes, kind, site);
  if (kind == Access::kLoadMatrixRow) {
    Found(t, FindingKind::kOutOfBounds, Does(kind), site, "",
          "ldmatrix of an address outside of shared memory");
    return Scratch();
  }
  return ReachGlobal(t, number, bytes, kind, site);
}

Buffer* Launch::FindBuffer(uint64_t host_address) {
  for (Buffer* b : recent_) {
    if (b != nullptr && host_address - reinterpret_cast<uint64_t>(b->host) < b->bytes) return b;
  }
  Buffer* found = memory_->Find(host_address);
  if (found != nullptr) recent_[recent_next_++ % 4] = found;
  return found;
}

void Launch::Footprint(Buffer* buffer, uint64_t host, uint32_t bytes, bool write) {
  constexpr uint64_t kSector = 32;
  const uint64_t first = reinterpret_cast<uint64_t>(buffer->host) / kSector;
  if (buffer->sectors_launch != launch_number_) {
    const uint64_t last = (reinterpret_cast<uint64_t>(buffer->host) + buffer->bytes - 1) / kSector;
    buffer->sectors.assign(last - first + 1, 0);
    buffer->sectors_launch = launch_number_;
  }
  for (uint64_t i = host / kSector; i * kSector < host + bytes; ++i) {
    uint8_t& sector = buffer->sectors[i - first];
    if (write && (sector & 2) == 0) {
      sector |= 2;
      ++traffic_.counts.footprint_stores;
    } else if (!write && sector == 0) {
      sector |= 1;
      ++traffic_.counts.footprint_loads;
    }
  }
}

void* Launch::ReachGlobal(ThreadRun* t, uint64_t address, uint32_t bytes, Access kind,
                          const Site& site) {
  if ((address & kTagMask) != kGlobalTag) {
    Found(t, FindingKind::kOutOfBounds, Does(kind), site, "",
          address < 4096 ? "a null pointer"
                         : "an address that is no device memory; is it the host's?");
    return Scratch();
  }
  const uint64_t host = address & ~kTagMask;
  Buffer* buffer = FindBuffer(host);
  const uint64_t offset = buffer == nullptr ? 0 : host - reinterpret_cast<uint64_t>(buffer->host);
  if (buffer == nullptr || bytes > buffer->bytes - offset) {
    Found(t, FindingKind::kOutOfBounds, Does(kind), site, "device memory",
          std::to_string(bytes) + " bytes, " +
              memory_->Nearest(buffer == nullptr ? host : host + bytes));
    return Scratch();
  }
  const bool write = IsWrite(kind);
  if (write && buffer->read_only) {
    Found(t, FindingKind::kReadOnlyWrite, Does(kind), site, GlobalPlace(*buffer, offset),
          "the buffer is an input");
    return Scratch();
  }
  if (!buffer->written.empty()) {
    uint8_t* written = &buffer->written[offset];
    if (kind != Access::kStore && options_.uninitialised && !AllAre(written, bytes, 1)) {
      Found(t, FindingKind::kUninitialised, Does(kind), site, GlobalPlace(*buffer, offset),
            "nobody wrote this");
    }
    if (write) std::memset(written, 1, bytes);
  }
  if (options_.races) {
    if (kind == Access::kAtomic) clocks_.Atomic(host);
    // Nobody can store into a read-only buffer, so nobody races there.
    if (!buffer->read_only) Race(t, &buffer->shadow, offset, bytes, kind, site, buffer);
  }
  if (options_.count) {
    if (kind == Access::kAtomic) {
      ++traffic_.counts.global_atomics;
    } else {
      traffic_.Touch(t->linear / 32, t->linear % 32, warps_[t->linear / 32].live, SiteId(site),
                     false, write, bytes, host);
      Footprint(buffer, host, bytes, write);
    }
  }
  return buffer->host + offset;
}

void* Launch::ReachShared(ThreadRun* t, uint64_t offset, uint32_t bytes, Access kind,
                          const Site& site) {
  if (offset + bytes > kWindowBytes || !AllAre(&window_state_[offset], bytes, kUnwritten)) {
    Found(t, FindingKind::kOutOfBounds, Does(kind), site,
          SharedPlace(static_cast<uint32_t>(offset)),
          std::to_string(bytes) + " bytes outside of what the block has");
    return Scratch();
  }
  const bool write = IsWrite(kind);
  uint8_t* state = &window_state_[offset];
  for (uint64_t word = offset / 4; word * 4 < offset + bytes; ++word) {
    if (window_pending_[word] == 0) continue;
    const ThreadRun& copier = *threads_[window_pending_[word] - 1];
    Site issued = {nullptr, 0};
    for (const AsyncCopy& c : copier.copies) {
      if (c.offset / 4 <= word && word * 4 < c.offset + c.bytes) issued = c.site;
    }
    Found(FindingKind::kAsyncRead, SharedPlace(static_cast<uint32_t>(offset)),
          "an asynchronous copy to it is under way: its wait is missing, or names too many groups",
          {PartyOf(*t, Does(kind), site), PartyOf(copier, "copies asynchronously", issued)});
    break;
  }
  if (kind != Access::kStore && !AllAre(state, bytes, kWritten)) {
    bool pending = false;
    for (uint64_t word = offset / 4; word * 4 < offset + bytes; ++word)
      pending |= window_pending_[word] != 0;
    if (!pending) {
      Found(t, FindingKind::kUninitialised, Does(kind), site,
            SharedPlace(static_cast<uint32_t>(offset)), "nobody of this block wrote this");
    }
  }
  if (write) std::memset(state, kWritten, bytes);
  if (options_.races) Race(t, &window_shadow_, offset, bytes, kind, site, nullptr);
  if (options_.count) {
    if (kind == Access::kAtomic) {
      ++traffic_.counts.shared_atomics;
    } else if (kind == Access::kLoadMatrixRow) {
      // Eight rows are one wavefront where their banks differ: counted as a 16-byte load is.
      traffic_.Touch(t->linear / 32, t->linear % 32, warps_[t->linear / 32].live, SiteId(site),
                     true, false, bytes, offset);
    } else {
      traffic_.Touch(t->linear / 32, t->linear % 32, warps_[t->linear / 32].live, SiteId(site),
                     true, write, bytes, offset);
    }
  }
  return window_->bytes + offset;
}

void Launch::Race(ThreadRun* t, RaceShadow* shadow, uint64_t offset, uint32_t bytes, Access kind,
                  const Site& site, const Buffer* buffer) {
  Stamp other;
  bool other_writes = false;
  const Stamp now = clocks_.Now(t->linear, SiteId(site), kind == Access::kAtomic);
  if (shadow->Touch(clocks_, offset, bytes, IsWrite(kind), now, &other, &other_writes)) return;
  const Party earlier = PartyOf(other, other.atomic != 0 ? "updates atomically"
                                       : other_writes    ? "stores"
                                                         : "loads");
  const char* what = earlier.block != block_ ? "another block's access, which nothing orders"
                     : other.thread / 32 == t->linear / 32
                         ? "two lanes of a warp, with no SyncWarp and no barrier between them"
                         : "two warps, with no barrier between them";
  Found(
      FindingKind::kRace,
      buffer != nullptr ? GlobalPlace(*buffer, offset) : SharedPlace(static_cast<uint32_t>(offset)),
      what, {earlier, PartyOf(*t, Does(kind), site)});
}

void* Launch::StaticShared(ThreadRun* t, const void* key, const char* name, uint32_t bytes,
                           uint32_t align, const Site& site) {
  const auto address = [](uint32_t offset) { return reinterpret_cast<void*>(kSharedTag | offset); };
  for (const SharedArray& a : shared_arrays_) {
    if (a.key == key) return address(a.offset);
  }
  // Offsets are multiples of 128, so that the banks are those of an array that stands alone.
  const uint32_t offset =
      (static_end_ + (static_end_ > kStaticBegin ? kSharedGap : 0) + 127) / 128 * 128;
  uint64_t total = bytes + uint64_t{shape_.dynamic_shared_bytes};
  for (const SharedArray& a : shared_arrays_) total += a.bytes;
  if (align > 128 || total - shape_.dynamic_shared_bytes > kMaxStatic ||
      total > options_.shared_limit_bytes || offset + bytes > kDynamicBegin) {
    Found(t, FindingKind::kSharedOverflow, "declares", site, name,
          std::to_string(total) + " bytes in all, of which at most " + std::to_string(kMaxStatic) +
              " may be static and " + std::to_string(options_.shared_limit_bytes) + " together",
          true);
  }
  AllocateShared(offset, bytes);
  static_end_ = offset + bytes;
  shared_arrays_.push_back({key, name, offset, bytes});
  return address(offset);
}

void* Launch::DynamicShared(ThreadRun* t, const Site& site) {
  if (shape_.dynamic_shared_bytes == 0) {
    Found(t, FindingKind::kSharedOverflow, "declares", site, "",
          "the launch gave no dynamic shared memory", true);
  }
  return reinterpret_cast<void*>(kSharedTag | kDynamicBegin);
}

}  // namespace emu
}  // namespace mk
