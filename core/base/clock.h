// Time as a dependency: whoever decides by time is handed a Clock, so that tests can hold it still.
#ifndef MERGEKERNEL_CORE_BASE_CLOCK_H_
#define MERGEKERNEL_CORE_BASE_CLOCK_H_

#include <atomic>
#include <cstdint>

namespace mk {

class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic nanoseconds. Any thread.
  virtual int64_t NowNs() const = 0;
  // Milliseconds since the Unix epoch, for what people and protocols read. Any thread.
  virtual int64_t UnixMillis() const = 0;
};

// The machine's clocks. Lives as long as the process.
const Clock& SystemClock();

// A clock that stands where it is put.
class FakeClock : public Clock {
 public:
  int64_t NowNs() const override { return now_ns_.load(); }
  int64_t UnixMillis() const override { return now_ns_.load() / 1'000'000; }
  void AdvanceNs(int64_t ns) { now_ns_.fetch_add(ns); }

 private:
  std::atomic<int64_t> now_ns_{1'000'000'000};
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_BASE_CLOCK_H_
