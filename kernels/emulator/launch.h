// The insides of one launch: its threads, warps and barriers, and the services that device code
// calls. Not for users.
#ifndef MERGEKERNEL_KERNELS_EMULATOR_LAUNCH_H_
#define MERGEKERNEL_KERNELS_EMULATOR_LAUNCH_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/device/emulated.h"
#include "kernels/emulator/emulator.h"
#include "kernels/emulator/fiber.h"
#include "kernels/emulator/race.h"
#include "kernels/emulator/scheduler.h"

namespace mk {
namespace emu {

struct AsyncCopy {
  void* to;          // host addresses
  const void* from;  // null: nothing is read
  uint32_t offset;   // of `to` in the shared window
  uint32_t bytes, source_bytes;
  uint64_t group;
  Site site;
  bool done;  // eager
  alignas(16) unsigned char staged[16];
};

// One CUDA thread: what its code sees comes first.
struct ThreadRun : Thread {
  Launch* launch = nullptr;
  Fiber fiber;
  bool exited = false;
  const Collective* part = nullptr;  // while it waits in a collective of its warp
  int32_t barrier = -1;              // while it waits at a barrier: its id
  Site barrier_site = {nullptr, 0};
  uint32_t barrier_result = 0;
  Site last_sync = {nullptr, 0};
  const char* last_sync_name = nullptr;
  Site now = {nullptr,
              0};  // where it last came to a point of decision; kept where switches are traced
  const void* last_address = nullptr;  // of its last access
  uint32_t same_loads = 0;             // loads of it on end
  uint32_t spin_turns = 0;             // how often others got a turn for that
  std::deque<AsyncCopy> copies;
  uint64_t group = 0;  // the open one
};

// `keys` stand for a meeting to a thread sanitizer: two in turn, as the first may already come to
// the next one while the last has not yet left this one.
struct WarpRun {
  uint32_t live = 0;     // lanes that exist and have not exited
  uint32_t waiting = 0;  // in a collective
  Collective like{};     // the part of the first that waits; while `uniform`, those of all
  bool uniform = true;
  uint32_t generation = 0;
  char keys[2] = {};
};

struct BarrierRun {
  std::vector<uint16_t> arrived;  // threads, also those that only arrive
  uint32_t expected = 0;          // 0: all that live
  uint32_t holds = 0;             // predicates
  Barrier kind = Barrier::kSync;
  Site site = {nullptr, 0};
  uint32_t generation = 0;
  char keys[2] = {};
};

struct SharedArray {
  const void* key;
  std::string name;
  uint32_t offset, bytes;
};

class Launch {
 public:
  explicit Launch(DeviceMemory* memory) : memory_(memory) {}
  ~Launch();
  Report Run(const Module& module, const std::string& name, const LaunchShape& shape,
             const void* params, uint32_t params_bytes, const Options& options);

 private:
  static constexpr uint32_t kBarriers = 16;
  static constexpr uint32_t kWindowBytes = 256 * 1024;
  static constexpr uint32_t kStaticBegin = 1024;  // below: like a null pointer
  static constexpr uint32_t kDynamicBegin = 64 * 1024;
  enum ByteState : uint8_t { kOutside = 0, kUnwritten = 1, kWritten = 2 };

  // launch.cc
  std::string Check(const Module& module, const LaunchShape& shape, uint32_t params_bytes) const;
  void RunBlock(uint64_t block);
  void BeginBlock(uint64_t block);
  void EndBlock();
  static void FiberEntry(void* thread);
  void Exit(ThreadRun* t);
  void Wait(ThreadRun* t, const Site& site);  // until it is made ready, or stop_
  void Note(const ThreadRun& from, uint32_t to, const char* why, const Site& at);
  void SwitchTo(ThreadRun* from, uint32_t to, bool for_good = false);
  [[noreturn]] void Abandon(ThreadRun* t);  // the launch ends here
  void ReportStuck();
  void AllocateShared(uint32_t offset, uint32_t bytes);

  // report.cc
  uint32_t SiteId(const Site& site);
  Party PartyOf(const ThreadRun& t, const char* does, const Site& site) const;
  Party PartyOf(const Stamp& stamp, const char* does) const;
  // Where the finding is fatal or there are enough of them, the launch stops: the caller returns
  // without going on, and the service it was called from abandons the block. So nothing that owns
  // memory is left on a fiber's stack.
  void Found(FindingKind kind, const std::string& place, const std::string& what,
             const std::vector<Party>& parties, bool fatal = false);
  void Found(ThreadRun* t, FindingKind kind, const char* does, const Site& site,
             const std::string& place, const std::string& what, bool fatal = false);
  std::string SharedPlace(uint32_t offset) const;
  static std::string GlobalPlace(const Buffer& buffer, uint64_t offset);
  // True where the synchronisation at `site` is to be passed over.
  bool Ignored(const Site& site, const char* name);
  void Passed(ThreadRun* t, const Site& site, const char* name);

  // access.cc
  void* Reach(ThreadRun* t, const void* address, uint32_t bytes, Access kind, const Site& site);
  void Footprint(Buffer* buffer, uint64_t host, uint32_t bytes, bool write);
  void* ReachGlobal(ThreadRun* t, uint64_t address, uint32_t bytes, Access kind, const Site& site);
  void* ReachShared(ThreadRun* t, uint64_t offset, uint32_t bytes, Access kind, const Site& site);
  void Race(ThreadRun* t, RaceShadow* shadow, uint64_t offset, uint32_t bytes, Access kind,
            const Site& site, const Buffer* buffer);
  void Breathe(ThreadRun* t, const Site& site);  // before each access: preemption
  void LetOthersStore(ThreadRun* t, const void* address, Access kind, const Site& site);
  void* Scratch();
  Buffer* FindBuffer(uint64_t host_address);
  void* StaticShared(ThreadRun* t, const void* key, const char* name, uint32_t bytes,
                     uint32_t align, const Site& site);
  void* DynamicShared(ThreadRun* t, const Site& site);

  // async_copy.cc
  bool CopyAsync(ThreadRun* t, void* shared, const void* global, uint32_t bytes,
                 uint32_t source_bytes, const Site& site, void** to_now, const void** from_now);
  void HandOut(void** to, const void** from);
  bool CopyWait(ThreadRun* t, uint32_t pending, const Site& site, void** to, const void** from,
                uint32_t* bytes);

  // collective.cc
  void Collect(ThreadRun* t, const Collective* part);
  void Judge(ThreadRun* t, const Collective* part);  // finds divergence
  bool TryComplete(WarpRun* warp, uint32_t first, uint32_t lanes);
  void Account(Op op, uint32_t first, uint32_t lanes);
  uint32_t ArriveAtBarrier(ThreadRun* t, Barrier kind, uint32_t id, uint32_t count,
                           uint32_t predicate, const Site& site);
  bool TryCompleteBarrier(uint32_t id);

  static const Services& Table();
  template <class Service>
  static auto Serve(Thread* t, Service service);

  DeviceMemory* memory_;
  StackPool stacks_;
  Options options_;
  std::unique_ptr<Scheduler> scheduler_;
  Clocks clocks_;
  Traffic traffic_;
  uint64_t launch_number_ = 0;  // Footprint's
  Report report_;
  std::string kernel_name_;
  const Kernel* kernel_ = nullptr;
  const void* params_ = nullptr;
  LaunchShape shape_;
  Running* running_ = nullptr;  // the module's
  Fiber main_;
  bool stop_ = false;
  char block_key_[2] = {};  // to a thread sanitizer: the block's begin, and its end

  uint64_t block_ = 0;
  uint32_t threads_count_ = 0, live_ = 0;
  std::vector<std::unique_ptr<ThreadRun>> threads_;
  std::vector<WarpRun> warps_;
  BarrierRun barriers_[kBarriers];

  struct Window {
    alignas(128) unsigned char bytes[kWindowBytes];
  };
  std::unique_ptr<Window> window_;        // the block's shared memory
  std::vector<uint8_t> window_state_;     // ByteState per byte
  std::vector<uint16_t> window_pending_;  // per word: 1 + the thread whose copy is under way
  RaceShadow window_shadow_{true};
  std::vector<SharedArray> shared_arrays_;
  uint32_t static_end_ = kStaticBegin;

  std::vector<Site> sites_;
  std::vector<std::pair<Site, uint32_t>> site_cache_;  // by a hash of the site
  Buffer* recent_[4] = {};
  uint32_t recent_next_ = 0;
  std::set<std::tuple<int, uint32_t, uint32_t>> seen_;  // findings already reported: kind and sites
  alignas(16) unsigned char scratch_[16];
  AsyncCopy waited_;  // what CopyWait last handed out
  std::vector<uint16_t> joined_;
};

// warp_ops.cc: what the lanes in `lanes` of one warp get; `parts` are theirs. Returns a message
// where a lane asks for what the instruction forbids (`*culprit`), else null.
const char* PerformWarpOp(const Collective* const* parts, uint32_t lanes, uint32_t* culprit);

const char* OpName(Op op);
bool IsMatrixOp(Op op);

}  // namespace emu
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_EMULATOR_LAUNCH_H_
