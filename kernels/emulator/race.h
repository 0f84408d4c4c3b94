// Who touched which memory since when, and whether barriers order it: a happens-before shadow.
//
// Every full barrier begins a new epoch; what lies in an earlier epoch of the block is ordered.
// Within an epoch only SyncWarp and named barriers order anything: `Clocks` keeps, for each thread,
// the last step of each other that it has seen. A missing barrier is found in any schedule, since
// it is not the order that happened which is judged.
#ifndef MERGEKERNEL_KERNELS_EMULATOR_RACE_H_
#define MERGEKERNEL_KERNELS_EMULATOR_RACE_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace mk {
namespace emu {

// One access, as remembered.
struct Stamp {
  uint32_t epoch = 0;  // 0: none
  uint32_t clock = 0;
  uint32_t site = 0;
  uint16_t thread = 0;
  uint16_t atomic = 0;
};

class Clocks {
 public:
  // A launch begins; epochs go on, so stamps of earlier launches are older than `first_epoch`.
  void BeginLaunch(uint64_t blocks);
  void BeginBlock(uint64_t block, uint32_t threads);

  void FullBarrier() { ++epoch_; }
  // Everything that `releasing` threads did before happens before all that `acquiring` ones do
  // next. Sorted, distinct.
  void Join(const std::vector<uint16_t>& releasing, const std::vector<uint16_t>& acquiring,
            bool one_warp);

  // Across blocks: a fence, then an atomic, publishes what the block did; an atomic on the same
  // word takes it over.
  void Fence() { fenced_ = true; }
  void Atomic(uint64_t address);

  bool Ordered(const Stamp& earlier, uint32_t thread, bool of_block) const;
  Stamp Now(uint32_t thread, uint32_t site, bool atomic) const {
    return {epoch_, clocks_[thread], site, static_cast<uint16_t>(thread),
            static_cast<uint16_t>(atomic ? 1 : 0)};
  }
  uint64_t BlockOf(const Stamp& stamp) const;  // REQUIRES a stamp of this launch

 private:
  uint32_t epoch_ = 1, first_epoch_ = 1, block_epoch_ = 1;
  uint32_t threads_ = 0;
  bool across_warps_ = false;     // a Join of this block crossed warps
  bool dirty_ = false;            // any Join in this block
  std::vector<uint32_t> clocks_;  // own step of each thread
  std::vector<uint32_t> seen_;    // [thread][of thread], one more than the last step seen; 0: none
  std::vector<uint32_t> merged_;
  std::vector<uint32_t> epochs_;  // first epoch of each block run so far, ascending
  std::vector<uint64_t> epoch_blocks_;
  uint64_t block_ = 0, blocks_ = 0;
  bool fenced_ = false;
  std::vector<bool> acquired_;  // blocks whose published work this block has taken over
  std::unordered_map<uint64_t, std::vector<bool>> published_;  // by address of the atomic
};

// The shadow of one stretch of memory, by words of four bytes; words of which single bytes are
// touched are split.
class RaceShadow {
 public:
  // `of_block`: it is a block's own memory, so what was before the block does not matter.
  explicit RaceShadow(bool of_block = false) : of_block_(of_block) {}

  // Records an access to [offset, offset + bytes) and returns false where it races with an earlier
  // one, which is then
  // `*other` (`*other_writes`: what it did). Reports one per call.
  bool Touch(const Clocks& clocks, uint64_t offset, uint32_t bytes, bool write, const Stamp& now,
             Stamp* other, bool* other_writes);
  void Clear();

 private:
  struct Cell {
    Stamp write;
    Stamp atomic;  // where `write` is an atomic: the latest of another thread, which does not race
                   // with it
    Stamp
        reads[3];  // the latest; the latest of another lane of its warp; the latest of another warp
  };
  static constexpr uint32_t kPageWords = 1024;
  struct Page {
    Cell cells[kPageWords];
    uint32_t split[kPageWords] = {};  // 1 + index into split_, or 0
  };
  struct SplitCell {
    Cell bytes[4];
  };

  bool TouchCell(const Clocks& clocks, Cell* cell, bool write, const Stamp& now, Stamp* other,
                 bool* other_writes) const;
  Page* PageOf(uint64_t word);

  bool of_block_;
  std::vector<std::unique_ptr<Page>> pages_;
  std::vector<SplitCell> split_;
};

}  // namespace emu
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_EMULATOR_RACE_H_
