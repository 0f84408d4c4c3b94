#include "kernels/emulator/scheduler.h"

#include <utility>

namespace mk {
namespace emu {
namespace {

constexpr uint64_t kMaxPermuted = uint64_t{1} << 20;

uint64_t ReplayKey(uint64_t block, uint32_t thread) {
  return block * Scheduler::kMaxThreads + thread;
}

uint32_t LowestBit(uint32_t bits) { return static_cast<uint32_t>(__builtin_ctz(bits)); }
uint32_t HighestBit(uint32_t bits) { return 31u - static_cast<uint32_t>(__builtin_clz(bits)); }

// The n-th set bit. REQUIRES more than n bits are set.
uint32_t NthBit(uint32_t bits, uint32_t n) {
  for (; n > 0; --n) bits &= bits - 1;
  return LowestBit(bits);
}

}  // namespace

const char* ScheduleName(Schedule schedule) {
  switch (schedule) {
    case Schedule::kForward:
      return "forward";
    case Schedule::kReverse:
      return "reverse";
    case Schedule::kShuffled:
      return "shuffled";
    case Schedule::kWarpSkew:
      return "warp skew";
  }
  return "unknown";
}

uint64_t Random::Next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

Scheduler::Scheduler(const Options& options)
    : options_(options),
      random_(options.seed),
      preempts_(options.preempt_one_in > 0 || options.replay != nullptr || options.record) {
  if (options_.replay != nullptr) {
    options_.schedule = Schedule::kForward;
    for (const Switch& s : *options_.replay) replay_[ReplayKey(s.block, s.thread)].push_back(s);
  }
}

std::vector<uint64_t> Scheduler::BlockOrder(uint64_t blocks) {
  std::vector<uint64_t> order(blocks);
  for (uint64_t i = 0; i < blocks; ++i) {
    order[i] = options_.schedule == Schedule::kReverse ? blocks - 1 - i : i;
  }
  const bool shuffle =
      options_.schedule == Schedule::kShuffled || options_.schedule == Schedule::kWarpSkew;
  if (shuffle && blocks <= kMaxPermuted) {
    for (uint64_t i = blocks; i > 1; --i)
      std::swap(order[i - 1], order[random_.Below(static_cast<uint32_t>(i))]);
  }
  return order;
}

uint32_t Scheduler::Begin(uint64_t block, uint32_t threads) {
  block_ = block;
  ready_warps_ = 0;
  for (uint32_t& bits : ready_) bits = 0;
  for (uint32_t t = 0; t < threads; ++t) SetReady(t);
  steps_.assign(threads, 0);
  // The first step of thread 0 is the first point of decision: another may go before it.
  const uint32_t replayed = options_.replay != nullptr ? Replayed(0) : kNone;
  ruled_ = replayed != kNone;
  const uint32_t first = ruled_ ? replayed : First(threads);
  if (options_.record && first != 0) recorded_.push_back({block_, 0, 0, first});
  return first;
}

uint32_t Scheduler::First(uint32_t threads) {
  switch (options_.schedule) {
    case Schedule::kForward:
      return 0;
    case Schedule::kReverse:
      return threads - 1;
    case Schedule::kShuffled:
    case Schedule::kWarpSkew:
      return Choose(RandomWarp() * 32);
  }
  return 0;
}

void Scheduler::SetReady(uint32_t thread) {
  ready_[thread / 32] |= 1u << (thread % 32);
  ready_warps_ |= 1u << (thread / 32);
}

void Scheduler::SetWaiting(uint32_t thread) {
  uint32_t& bits = ready_[thread / 32];
  bits &= ~(1u << (thread % 32));
  if (bits == 0) ready_warps_ &= ~(1u << (thread / 32));
}

uint32_t Scheduler::Next(uint32_t current) {
  if (ready_warps_ == 0) return kNone;
  ++steps_[current];
  uint32_t to = options_.replay != nullptr ? Replayed(current) : kNone;
  ruled_ = to != kNone;
  if (to == kNone) to = Choose(current);
  if (options_.record && to != InOrder(current))
    recorded_.push_back({block_, current, steps_[current], to});
  return to;
}

uint32_t Scheduler::Preempt(uint32_t current) {
  ++steps_[current];
  uint32_t to = kNone;
  if (options_.replay != nullptr) {
    to = Replayed(current);
    ruled_ = to != kNone && to != current;
  } else if (options_.preempt_one_in > 0 && random_.Below(options_.preempt_one_in) == 0) {
    to = Choose(current);
  }
  if (to == current) to = kNone;
  if (options_.record && to != kNone) recorded_.push_back({block_, current, steps_[current], to});
  return to;
}

uint32_t Scheduler::Other(uint32_t current) const {
  if (ready_warps_ == 0) return kNone;
  const uint32_t to = Ascending(current);
  return to == current ? kNone : to;
}

uint32_t Scheduler::Choose(uint32_t current) {
  switch (options_.schedule) {
    case Schedule::kForward:
      return InOrder(current);
    case Schedule::kReverse: {
      const uint32_t own = ready_[current / 32];
      if (own == 0) return Descending(current);
      const uint32_t below = own & ((1u << (current % 32)) - 1u);
      return current / 32 * 32 + HighestBit(below != 0 ? below : own);
    }
    case Schedule::kShuffled: {
      const uint32_t warp = RandomWarp();
      const uint32_t bits = ready_[warp];
      return warp * 32 +
             NthBit(bits, random_.Below(static_cast<uint32_t>(__builtin_popcount(bits))));
    }
    case Schedule::kWarpSkew: {
      const uint32_t warp = ready_[current / 32] != 0 ? current / 32 : RandomWarp();
      const uint32_t bits = ready_[warp];
      return warp * 32 +
             NthBit(bits, random_.Below(static_cast<uint32_t>(__builtin_popcount(bits))));
    }
  }
  return kNone;
}

uint32_t Scheduler::InOrder(uint32_t current) const {
  const uint32_t own = ready_[current / 32];
  if (own == 0) return Ascending(current);
  const uint32_t above = own & ~((2u << (current % 32)) - 1u);
  return current / 32 * 32 + LowestBit(above != 0 ? above : own);
}

// REQUIRES a ready thread, as do the next two and the one above.
uint32_t Scheduler::Ascending(uint32_t current) const {
  const uint32_t above = ready_[current / 32] & ~((2u << (current % 32)) - 1u);
  if (above != 0) return current / 32 * 32 + LowestBit(above);
  const uint32_t warps = ready_warps_ & ~((2u << (current / 32)) - 1u);
  const uint32_t warp = LowestBit(warps != 0 ? warps : ready_warps_);
  return warp * 32 + LowestBit(ready_[warp]);
}

uint32_t Scheduler::Descending(uint32_t current) const {
  const uint32_t warps = ready_warps_ & ((1u << (current / 32)) - 1u);
  const uint32_t warp = HighestBit(warps != 0 ? warps : ready_warps_);
  return warp * 32 + HighestBit(ready_[warp]);
}

uint32_t Scheduler::RandomWarp() {
  return NthBit(ready_warps_,
                random_.Below(static_cast<uint32_t>(__builtin_popcount(ready_warps_))));
}

uint32_t Scheduler::Replayed(uint32_t current) {
  const auto rules = replay_.find(ReplayKey(block_, current));
  if (rules == replay_.end()) return kNone;
  for (const Switch& rule : rules->second) {
    if (rule.step == steps_[current] && rule.to < steps_.size() && IsReady(rule.to)) return rule.to;
  }
  return kNone;
}

}  // namespace emu
}  // namespace mk
