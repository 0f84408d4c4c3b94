#include "kernels/emulator/race.h"

#include <algorithm>

namespace mk {
namespace emu {
namespace {

constexpr uint32_t kWarp = 32;

}  // namespace

void Clocks::BeginLaunch(uint64_t blocks) {
  first_epoch_ = ++epoch_;
  blocks_ = blocks;
  epochs_.clear();
  epoch_blocks_.clear();
  published_.clear();
}

void Clocks::BeginBlock(uint64_t block, uint32_t threads) {
  block_epoch_ = ++epoch_;
  block_ = block;
  epochs_.push_back(epoch_);
  epoch_blocks_.push_back(block);
  fenced_ = false;
  acquired_.clear();
  if (threads_ != threads || dirty_) {
    threads_ = threads;
    clocks_.assign(threads, 0);
    seen_.assign(size_t{threads} * threads, 0);
    merged_.assign(threads, 0);
    across_warps_ = dirty_ = false;
  }
}

void Clocks::Join(const std::vector<uint16_t>& releasing, const std::vector<uint16_t>& acquiring,
                  bool one_warp) {
  dirty_ = true;
  if (!one_warp) across_warps_ = true;
  if (releasing.empty()) return;
  // While nothing crossed warps, a thread can have seen steps of its own warp only.
  const uint32_t begin = across_warps_ ? 0 : releasing.front() / kWarp * kWarp;
  const uint32_t end = across_warps_ ? threads_ : std::min(threads_, begin + kWarp);
  std::fill(merged_.begin() + begin, merged_.begin() + end, 0);
  for (const uint16_t r : releasing) {
    const uint32_t* row = &seen_[size_t{r} * threads_];
    for (uint32_t v = begin; v < end; ++v) merged_[v] = std::max(merged_[v], row[v]);
  }
  for (const uint16_t r : releasing) merged_[r] = std::max(merged_[r], ++clocks_[r]);
  for (const uint16_t a : acquiring) {
    uint32_t* row = &seen_[size_t{a} * threads_];
    for (uint32_t v = begin; v < end; ++v) row[v] = std::max(row[v], merged_[v]);
  }
}

void Clocks::Atomic(uint64_t address) {
  const auto it = published_.find(address);
  if (it == published_.end() && !fenced_) return;
  if (acquired_.empty()) acquired_.assign(blocks_, false);
  if (it != published_.end()) {
    for (uint64_t b = 0; b < blocks_; ++b) acquired_[b] = acquired_[b] || it->second[b];
  }
  if (!fenced_) return;
  std::vector<bool>& published = published_[address];
  if (published.empty()) published.assign(blocks_, false);
  for (uint64_t b = 0; b < blocks_; ++b) published[b] = published[b] || acquired_[b];
  published[block_] = true;
}

bool Clocks::Ordered(const Stamp& earlier, uint32_t thread, bool of_block) const {
  if (earlier.epoch < first_epoch_) return true;  // none, or an earlier launch
  if (earlier.epoch < block_epoch_)
    return of_block || (!acquired_.empty() && acquired_[BlockOf(earlier)]);
  if (earlier.epoch < epoch_ || earlier.thread == thread) return true;
  return dirty_ && seen_[size_t{thread} * threads_ + earlier.thread] > earlier.clock;
}

uint64_t Clocks::BlockOf(const Stamp& stamp) const {
  const auto after = std::upper_bound(epochs_.begin(), epochs_.end(), stamp.epoch);
  return after == epochs_.begin() ? 0
                                  : epoch_blocks_[static_cast<size_t>(after - epochs_.begin()) - 1];
}

bool RaceShadow::TouchCell(const Clocks& clocks, Cell* cell, bool write, const Stamp& now,
                           Stamp* other, bool* other_writes) const {
  bool ordered = true;
  for (const Stamp* earlier : {&cell->atomic, &cell->write}) {
    if (clocks.Ordered(*earlier, now.thread, of_block_) || (now.atomic && earlier->atomic))
      continue;
    *other = *earlier;
    *other_writes = true;
    ordered = false;
  }
  if (!write) {
    Stamp* reads = cell->reads;
    if (reads[0].epoch != 0 && reads[0].thread != now.thread) {
      const bool same_warp = reads[0].thread / kWarp == now.thread / kWarp;
      if (same_warp) {
        reads[1] = reads[0];
      } else {
        reads[2] = reads[0];
        if (reads[1].thread / kWarp != now.thread / kWarp) reads[1] = Stamp{};
      }
    }
    reads[0] = now;
    return ordered;
  }
  for (Stamp& read : cell->reads) {
    if (ordered && !clocks.Ordered(read, now.thread, of_block_)) {
      *other = read;
      *other_writes = false;
      ordered = false;
    }
    read = Stamp{};
  }
  if (!now.atomic) {
    cell->atomic = Stamp{};
  } else if (cell->write.atomic && cell->write.thread != now.thread) {
    cell->atomic = cell->write;
  }
  cell->write = now;
  return ordered;
}

RaceShadow::Page* RaceShadow::PageOf(uint64_t word) {
  const uint64_t index = word / kPageWords;
  if (index >= pages_.size()) pages_.resize(index + 1);
  if (pages_[index] == nullptr) pages_[index] = std::make_unique<Page>();
  return pages_[index].get();
}

bool RaceShadow::Touch(const Clocks& clocks, uint64_t offset, uint32_t bytes, bool write,
                       const Stamp& now, Stamp* other, bool* other_writes) {
  bool ordered = true;
  const uint64_t end = offset + bytes;
  for (uint64_t at = offset; at < end;) {
    const uint64_t word = at / 4;
    const uint64_t stop = std::min(end, word * 4 + 4);
    Page* page = PageOf(word);
    Cell* cell = &page->cells[word % kPageWords];
    uint32_t& split = page->split[word % kPageWords];
    if (split == 0 && stop - at < 4) {
      split_.push_back({{*cell, *cell, *cell, *cell}});
      split = static_cast<uint32_t>(split_.size());
    }
    if (split == 0) {
      ordered &= TouchCell(clocks, cell, write, now, other, other_writes);
    } else {
      for (uint64_t b = at; b < stop; ++b) {
        ordered &=
            TouchCell(clocks, &split_[split - 1].bytes[b % 4], write, now, other, other_writes);
      }
    }
    at = stop;
  }
  return ordered;
}

void RaceShadow::Clear() {
  pages_.clear();
  split_.clear();
}

}  // namespace emu
}  // namespace mk
