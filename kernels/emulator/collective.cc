// Meeting places: collectives of a warp, and barriers of a block.
#include <algorithm>

#include "kernels/emulator/launch.h"

namespace mk {
namespace emu {
namespace {

const char* BarrierName(Barrier kind, uint32_t id) {
  if (kind == Barrier::kArrive) return "BarrierArrive";
  if (kind != Barrier::kSync) return "SyncThreads with a vote";
  return id == 0 ? "SyncThreads" : "BarrierSync";
}

bool SameMeeting(const Collective& a, const Collective& b) {
  return a.op == b.op && a.mask == b.mask && a.detail == b.detail && a.site.line == b.site.line &&
         a.site.file == b.site.file;
}

}  // namespace

bool IsMatrixOp(Op op) { return op >= Op::kLoadMatrix; }

void Launch::Collect(ThreadRun* t, const Collective* part) {
  const bool is_barrier = part->op == Op::kSyncWarp;
  if (is_barrier && Ignored(part->site, OpName(part->op))) return;
  const uint32_t index = t->linear / 32;
  const uint32_t lane = t->linear % 32;
  WarpRun* warp = &warps_[index];
  if ((part->mask >> lane & 1u) == 0) {
    Found(t, FindingKind::kBadCollective, OpName(part->op), part->site, "",
          "its own mask does not name this lane", true);
    return;
  }
  char* key = &warp->keys[warp->generation % 2];
  if (is_barrier) Release(key);
  t->part = part;
  if (warp->waiting == 0) {
    warp->like = *part;
    warp->uniform = true;
  } else if (warp->uniform) {
    warp->uniform = SameMeeting(warp->like, *part);
  }
  warp->waiting |= 1u << lane;
  if (!warp->uniform) Judge(t, part);
  if (stop_) return;
  if (!TryComplete(warp, index * 32, part->mask & warp->live)) Wait(t, part->site);
  if (!is_barrier || stop_) return;
  Acquire(key);
  Passed(t, part->site, OpName(part->op));
}

void Launch::Judge(ThreadRun* t, const Collective* part) {
  const uint32_t first = t->linear / 32 * 32;
  const uint32_t lane = t->linear % 32;
  for (uint32_t others = warps_[first / 32].waiting & part->mask & ~(1u << lane); others != 0;
       others &= others - 1) {
    const ThreadRun& other = *threads_[first + static_cast<uint32_t>(__builtin_ctz(others))];
    const Collective& theirs = *other.part;
    if ((theirs.mask >> lane & 1u) == 0) continue;  // it waits for others first
    const bool same = theirs.op == part->op && theirs.mask == part->mask &&
                      theirs.detail == part->detail &&
                      (!IsMatrixOp(part->op) || SameSite(theirs.site, part->site));
    if (same) continue;
    Found(
        FindingKind::kDivergence, "",
        "lanes that name each other in their masks met at different collectives",
        {PartyOf(other, OpName(theirs.op), theirs.site), PartyOf(*t, OpName(part->op), part->site)},
        true);
    return;
  }
}

bool Launch::TryComplete(WarpRun* warp, uint32_t first, uint32_t lanes) {
  if (lanes == 0 || (warp->waiting & lanes) != lanes) return false;
  const Collective* parts[32];
  const Collective* like = threads_[first + static_cast<uint32_t>(__builtin_ctz(lanes))]->part;
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(rest));
    parts[lane] = threads_[first + lane]->part;
    if (parts[lane]->op != like->op || parts[lane]->mask != like->mask) return false;
  }
  uint32_t culprit = 0;
  const char* wrong = PerformWarpOp(parts, lanes, &culprit);
  if (wrong != nullptr) {
    Found(FindingKind::kBadCollective, "", wrong,
          {PartyOf(*threads_[first + culprit], OpName(like->op), parts[culprit]->site)}, true);
  }
  Account(like->op, first, lanes);
  warp->waiting &= ~lanes;
  if (like->op == Op::kSyncWarp) ++warp->generation;
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const uint32_t thread = first + static_cast<uint32_t>(__builtin_ctz(rest));
    threads_[thread]->part = nullptr;
    scheduler_->SetReady(thread);
  }
  return true;
}

void Launch::Account(Op op, uint32_t first, uint32_t lanes) {
  Counts& counts = traffic_.counts;
  switch (op) {
    case Op::kSyncWarp: {
      ++counts.warp_barriers;
      std::vector<uint16_t>& joined = joined_;
      joined.clear();
      for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        joined.push_back(static_cast<uint16_t>(first + static_cast<uint32_t>(__builtin_ctz(rest))));
      }
      if (options_.races) clocks_.Join(joined, joined, true);
      return;
    }
    case Op::kLoadMatrix:
    case Op::kLoadMatrixTransposed:
      ++counts.matrix_loads;
      return;
    case Op::kMmaF16:
    case Op::kMmaBf16:
      ++counts.mmas;
      counts.mma_flops += 2 * 16 * 8 * 16;
      return;
    case Op::kMmaTf32:
      ++counts.mmas;
      counts.mma_flops += 2 * 16 * 8 * 8;
      return;
    case Op::kMmaS8:
      ++counts.mmas;
      counts.mma_flops += 2 * 16 * 8 * 32;
      return;
    default:
      ++counts.shuffles;
      return;
  }
}

uint32_t Launch::ArriveAtBarrier(ThreadRun* t, Barrier kind, uint32_t id, uint32_t count,
                                 uint32_t predicate, const Site& site) {
  const char* name = BarrierName(kind, id);
  if (Ignored(site, name)) return predicate;
  if (id >= kBarriers || count % 32 != 0 || count > (threads_count_ + 31) / 32 * 32 ||
      (kind == Barrier::kArrive && count == 0)) {
    Found(t, FindingKind::kBadCollective, name, site, "",
          "barrier " + std::to_string(id) + " of " + std::to_string(count) +
              " threads: ids are 0..15, and counts a multiple of 32 within the block",
          true);
    return 0;
  }
  BarrierRun& b = barriers_[id];
  if (b.arrived.empty()) {
    b.expected = count;
    b.site = site;
    b.kind = kind;
    b.holds = 0;
  } else if (b.expected != count || (count == 0 && (b.kind != kind || !SameSite(b.site, site)))) {
    Found(FindingKind::kDivergence, "",
          "threads met at the same barrier from different places, or with other counts",
          {PartyOf(*threads_[b.arrived.front()], "waits", b.site), PartyOf(*t, "arrives", site)},
          true);
    return 0;
  }
  if (count != 0 && std::find(b.arrived.begin(), b.arrived.end(), t->linear) != b.arrived.end()) {
    Found(t, FindingKind::kDivergence, name, site, "",
          "the thread comes to barrier " + std::to_string(id) +
              " a second time before it is complete",
          true);
    return 0;
  }
  char* key = &b.keys[b.generation % 2];
  Release(key);
  b.arrived.push_back(static_cast<uint16_t>(t->linear));
  b.holds += predicate;
  if (kind == Barrier::kArrive) {
    TryCompleteBarrier(id);
    return 0;
  }
  t->barrier = static_cast<int32_t>(id);
  t->barrier_site = site;
  if (!TryCompleteBarrier(id)) Wait(t, site);
  if (stop_) return 0;
  Acquire(key);
  Passed(t, site, name);
  return t->barrier_result;
}

bool Launch::TryCompleteBarrier(uint32_t id) {
  BarrierRun& b = barriers_[id];
  const size_t needed = b.expected == 0 ? live_ : b.expected;
  if (b.arrived.empty() || b.arrived.size() < needed) return false;
  const uint32_t result = b.kind == Barrier::kCount ? b.holds
                          : b.kind == Barrier::kAnd ? b.holds == b.arrived.size()
                                                    : b.holds != 0;
  std::sort(b.arrived.begin(), b.arrived.end());
  std::vector<uint16_t> waiting;
  for (const uint16_t thread : b.arrived) {
    ThreadRun* t = threads_[thread].get();
    if (t->barrier != static_cast<int32_t>(id)) continue;
    t->barrier = -1;
    t->barrier_result = result;
    waiting.push_back(thread);
    scheduler_->SetReady(thread);
  }
  ++traffic_.counts.barriers;
  ++b.generation;
  if (waiting.size() >= live_) {
    clocks_.FullBarrier();
  } else if (options_.races) {
    clocks_.Join(b.arrived, waiting, false);
  }
  b.arrived.clear();
  return true;
}

}  // namespace emu
}  // namespace mk
