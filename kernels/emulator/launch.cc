#include "kernels/emulator/launch.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace mk {
namespace emu {
namespace {

constexpr uint64_t kMaxBlocks = uint64_t{1} << 31;
constexpr uint32_t kMaxGridYz = 65535;
constexpr int kPoison = 0xff;
constexpr size_t kMaxTrace = 1000;
#if defined(__SANITIZE_ADDRESS__)
constexpr uint32_t kStackBytes = 256 * 1024;
#else
constexpr uint32_t kStackBytes = 128 * 1024;
#endif

uint64_t Volume(const Dim3& d) { return uint64_t{d.x} * d.y * d.z; }

std::string Text(const Dim3& d) {
  return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z);
}

const Kernel* FindKernel(const Module& module, const std::string& name) {
  for (uint32_t i = 0; i < module.kernel_count; ++i) {
    if (name == module.kernels[i].name) return &module.kernels[i];
  }
  return nullptr;
}

// Waits until no other OS thread runs this module's code.
void Occupy(Running* running) {
  while (__atomic_exchange_n(&running->busy, 1u, __ATOMIC_ACQUIRE) != 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace

Emulator::Emulator() : launch_(std::make_unique<Launch>(&memory_)) {}
Emulator::~Emulator() {
  BeginUnseen();
  launch_.reset();
  EndUnseen();
}

Report Emulator::Run(const Module& module, const std::string& kernel, const LaunchShape& shape,
                     const void* params, uint32_t params_bytes, const Options& options) {
  BeginUnseen();
  Report report = launch_->Run(module, kernel, shape, params, params_bytes, options);
  EndUnseen();
  return report;
}

bool Report::Has(FindingKind kind) const {
  for (const Finding& f : findings) {
    if (f.kind == kind) return true;
  }
  return false;
}

std::string Report::Text() const {
  if (findings.empty()) return "no findings\n";
  std::string text;
  for (const Finding& f : findings) text += f.Text();
  return text;
}

Launch::~Launch() {
  for (const std::unique_ptr<ThreadRun>& t : threads_) EndFiber(&t->fiber, false);
}

std::string Launch::Check(const Module& module, const LaunchShape& shape,
                          uint32_t params_bytes) const {
  if (module.struct_size < sizeof(Module) || module.services_bytes > sizeof(Services)) {
    return "module was compiled against another emulator";
  }
  if (kernel_ == nullptr) return "no kernel of that name in module " + std::string(module.name);
  if (kernel_->params_bytes != params_bytes) {
    return "params of " + std::to_string(params_bytes) + " bytes, the kernel takes " +
           std::to_string(kernel_->params_bytes);
  }
  const uint64_t threads = Volume(shape.block);
  if (threads == 0 || shape.block.x > 1024 || shape.block.y > 1024 || shape.block.z > 64 ||
      threads > Scheduler::kMaxThreads) {
    return "block " + Text(shape.block) + " not in 1..1024 threads";
  }
  if (shape.grid.y > kMaxGridYz || shape.grid.z > kMaxGridYz || shape.grid.x == 0 ||
      shape.grid.y == 0 || shape.grid.z == 0 || Volume(shape.grid) >= kMaxBlocks) {
    return "grid " + Text(shape.grid) + " is empty or beyond 2^31 blocks, or y or z > 65535";
  }
  if (shape.dynamic_shared_bytes > options_.shared_limit_bytes) {
    return "dynamic shared memory of " + std::to_string(shape.dynamic_shared_bytes) + " bytes > " +
           std::to_string(options_.shared_limit_bytes);
  }
  if (options_.shared_limit_bytes > kWindowBytes - kDynamicBegin)
    return "shared_limit_bytes beyond the emulator's window";
  return "";
}

Report Launch::Run(const Module& module, const std::string& name, const LaunchShape& shape,
                   const void* params, uint32_t params_bytes, const Options& options) {
  options_ = options;
  report_ = Report{};
  kernel_name_ = name;
  kernel_ = FindKernel(module, name);
  params_ = params;
  shape_ = shape;
  stop_ = false;
  seen_.clear();
  sites_.assign(1, Site{nullptr, 0});
  site_cache_.assign(256, {Site{nullptr, 0}, 0});
  for (Buffer*& b : recent_) b = nullptr;
  threads_count_ = static_cast<uint32_t>(Volume(shape.block));
  std::string refused = Check(module, shape, params_bytes);
  if (refused.empty() &&
      !stacks_.Reserve(threads_count_,
                       options.stack_bytes != 0 ? options.stack_bytes : kStackBytes)) {
    refused = "no memory for " + std::to_string(threads_count_) + " stacks";
  }
  if (!refused.empty()) {
    report_.findings.push_back({FindingKind::kBadLaunch, name, "", refused, {}});
    return std::move(report_);
  }

  running_ = module.running;
  Occupy(running_);
  scheduler_ = std::make_unique<Scheduler>(options);
  const uint64_t blocks = Volume(shape.grid);
  clocks_.BeginLaunch(blocks);
  traffic_.BeginLaunch();
  ++launch_number_;
  if (window_ == nullptr) {
    window_ = std::make_unique<Window>();
    window_state_.assign(kWindowBytes, kOutside);
    window_pending_.assign(kWindowBytes / 4, 0);
  }
  while (threads_.size() < threads_count_) threads_.push_back(std::make_unique<ThreadRun>());
  AdoptThread(&main_);
  for (const uint64_t block : scheduler_->BlockOrder(blocks)) {
    RunBlock(block);
    if (stop_) break;
  }
  running_->thread = nullptr;
  __atomic_store_n(&running_->busy, 0u, __ATOMIC_RELEASE);
  report_.counts = std::move(traffic_.counts);
  for (uint32_t i = 1; i < sites_.size() && i < traffic_.by_site_.size(); ++i) {
    SiteCounts& counts = traffic_.by_site_[i];
    counts.site = sites_[i];
    if (counts.global.requests + counts.shared.requests > 0) report_.counts.sites.push_back(counts);
  }
  report_.switches = scheduler_->recorded();
  return std::move(report_);
}

void Launch::RunBlock(uint64_t block) {
  BeginBlock(block);
  Release(&block_key_[0]);
  const uint32_t first = scheduler_->Begin(block, threads_count_);
  Note(*threads_[0], first, "before it begins", {nullptr, 0});
  running_->thread = threads_[first].get();
  SwitchFiber(&main_, &threads_[first]->fiber);
  Acquire(&block_key_[1]);
  EndBlock();
}

void Launch::BeginBlock(uint64_t block) {
  block_ = block;
  live_ = threads_count_;
  const uint32_t warps = (threads_count_ + 31) / 32;
  warps_.assign(warps, WarpRun{});
  for (BarrierRun& b : barriers_) b = BarrierRun{};
  clocks_.BeginBlock(block, threads_count_);
  if (options_.count) traffic_.BeginBlock(warps);
  shared_arrays_.clear();
  static_end_ = kStaticBegin;
  if (shape_.dynamic_shared_bytes > 0) AllocateShared(kDynamicBegin, shape_.dynamic_shared_bytes);
  const Dim3& grid = shape_.grid;
  const Dim3& size = shape_.block;
  for (uint32_t i = 0; i < threads_count_; ++i) {
    ThreadRun& t = *threads_[i];
    t.thread_index = {i % size.x, i / size.x % size.y, i / size.x / size.y};
    t.block_index = {static_cast<uint32_t>(block % grid.x),
                     static_cast<uint32_t>(block / grid.x % grid.y),
                     static_cast<uint32_t>(block / grid.x / grid.y)};
    t.block_size = size;
    t.grid_size = grid;
    t.linear = i;
    t.services = &Table();
    t.launch = this;
    t.exited = false;
    t.part = nullptr;
    t.barrier = -1;
    t.last_sync_name = nullptr;
    t.now = {nullptr, 0};
    t.last_address = nullptr;
    t.same_loads = t.spin_turns = 0;
    t.copies.clear();
    t.group = 0;
    warps_[i / 32].live |= 1u << (i % 32);
    StartFiber(&t.fiber, stacks_, i, &FiberEntry, &t);
  }
}

void Launch::EndBlock() {
  for (uint32_t i = 0; i < threads_count_ && stop_; ++i) EndFiber(&threads_[i]->fiber, true);
  if (options_.count) traffic_.EndBlock();
  uint32_t static_bytes = 0;
  for (const SharedArray& a : shared_arrays_) static_bytes += a.bytes;
  report_.static_shared_bytes = std::max(report_.static_shared_bytes, static_bytes);
  // What the block had of the window becomes nobody's again.
  const std::pair<uint32_t, uint32_t> used[] = {
      {kStaticBegin, static_end_}, {kDynamicBegin, kDynamicBegin + shape_.dynamic_shared_bytes}};
  for (const auto& [begin, end] : used) {
    std::fill(window_state_.begin() + begin, window_state_.begin() + end, kOutside);
    std::fill(window_pending_.begin() + begin / 4, window_pending_.begin() + (end + 3) / 4, 0);
  }
}

void Launch::AllocateShared(uint32_t offset, uint32_t bytes) {
  std::memset(window_->bytes + offset, kPoison, bytes);
  std::fill_n(window_state_.begin() + offset, bytes,
              options_.uninitialised ? kUnwritten : kWritten);
}

void Launch::FiberEntry(void* argument) {
  ThreadRun* t = static_cast<ThreadRun*>(argument);
  Launch* launch = t->launch;
  Acquire(&launch->block_key_[0]);
  launch->kernel_->run(launch->params_);
  Release(&launch->block_key_[1]);
  launch->Exit(t);
}

void Launch::Exit(ThreadRun* t) {
  BeginUnseen();
  t->exited = true;
  --live_;
  WarpRun* warp = &warps_[t->linear / 32];
  warp->live &= ~(1u << (t->linear % 32));
  scheduler_->SetWaiting(t->linear);
  // Others may have waited for this thread alone.
  for (uint32_t lane = 0; lane < 32 && warp->waiting != 0; ++lane) {
    if ((warp->waiting >> lane & 1u) == 0) continue;
    const uint32_t first = t->linear / 32 * 32;
    TryComplete(warp, first, threads_[first + lane]->part->mask & warp->live);
  }
  for (uint32_t id = 0; id < kBarriers; ++id) TryCompleteBarrier(id);
  const uint32_t next = stop_ ? Scheduler::kNone : scheduler_->Next(t->linear);
  if (next != Scheduler::kNone) {
    Note(*t, next, "at its end, after", t->now);
    SwitchTo(t, next, true);
  }
  if (live_ > 0 && !stop_) ReportStuck();
  Abandon(t);
}

void Launch::Wait(ThreadRun* t, const Site& site) {
  t->now = site;
  scheduler_->SetWaiting(t->linear);
  const uint32_t next = scheduler_->Next(t->linear);
  if (next == Scheduler::kNone) {
    ReportStuck();
    return;
  }
  Note(*t, next, "to wait at", site);
  SwitchTo(t, next);
}

void Launch::Note(const ThreadRun& from, uint32_t to, const char* why, const Site& at) {
  if (options_.replay == nullptr || !scheduler_->ruled() || report_.trace.size() >= kMaxTrace)
    return;
  report_.trace.push_back({block_, from.linear, to, why, at, threads_[to]->now});
}

void Launch::SwitchTo(ThreadRun* from, uint32_t to, bool for_good) {
  ThreadRun* next = threads_[to].get();
  if (next == from) return;
  ++traffic_.counts.switches;
  running_->thread = next;
  SwitchFiber(&from->fiber, &next->fiber, for_good);
}

void Launch::Abandon(ThreadRun* t) {
  SwitchFiber(&t->fiber, &main_, true);
  __builtin_trap();
}

void Launch::ReportStuck() {
  std::vector<Party> parties;
  bool in_collective = false;
  for (uint32_t i = 0; i < threads_count_ && parties.size() < 6; ++i) {
    const ThreadRun& other = *threads_[i];
    if (other.exited) continue;
    const bool collective = other.part != nullptr;
    const Site site = collective ? other.part->site : other.barrier_site;
    bool told = false;
    for (const Party& p : parties) told = told || SameSite(p.site, site);
    if (told) continue;
    in_collective = in_collective || collective;
    parties.push_back(PartyOf(other, collective ? OpName(other.part->op) : "a barrier", site));
    parties.back().does = collective ? "waits in a collective" : "waits at a barrier";
  }
  Found(in_collective && parties.size() > 1 ? FindingKind::kDivergence : FindingKind::kDeadlock, "",
        std::to_string(live_) + " of " + std::to_string(threads_count_) +
            " threads wait for others that will not come; one of each place:",
        parties, true);
}

}  // namespace emu
}  // namespace mk
