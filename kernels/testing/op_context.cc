#include "kernels/testing/op_context.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "kernels/device/convert.h"

namespace mk::testing {
namespace {

OpContext* Self(void* self) { return static_cast<OpContext*>(self); }

// The one dimension of grids that CUDA lets grow past 2^16.
constexpr uint32_t kMaxGridYZ = 65535;

void AddCounts(const emu::Counts& from, emu::Counts* to) {
  to->global_loads.Add(from.global_loads);
  to->global_stores.Add(from.global_stores);
  to->shared_loads.Add(from.shared_loads);
  to->shared_stores.Add(from.shared_stores);
  to->footprint_loads += from.footprint_loads;
  to->footprint_stores += from.footprint_stores;
  to->global_atomics += from.global_atomics;
  to->shared_atomics += from.shared_atomics;
  to->async_copies += from.async_copies;
  to->barriers += from.barriers;
  to->warp_barriers += from.warp_barriers;
  to->shuffles += from.shuffles;
  to->matrix_loads += from.matrix_loads;
  to->mmas += from.mmas;
  to->mma_flops += from.mma_flops;
  to->switches += from.switches;
  for (const emu::SiteCounts& site : from.sites) {
    auto same = std::find_if(to->sites.begin(), to->sites.end(), [&](const emu::SiteCounts& other) {
      return emu::SameSite(other.site, site.site);
    });
    if (same == to->sites.end()) {
      to->sites.push_back(site);
    } else {
      same->global.Add(site.global);
      same->shared.Add(site.shared);
    }
  }
}

}  // namespace

OpContext::OpContext()
    : cpu_(TestHostOptions()),
      kernels_service_{sizeof(mk_kernels_service), 0, this, &LoadImage, &FindKernel},
      weights_service_{
          sizeof(mk_weights_service), 0, this, &AllocateWeights, &LoadWeights, &Upload},
      host_{sizeof(mk_host), MK_ABI_MINOR, this, &Service, &SetError, "emulated"},
      run_{} {
  run_.struct_size = sizeof(mk_run);
  run_.self = this;
  run_.set_error = &SetError;
  run_.scratch = &Scratch;
  run_.scratch_mark = &ScratchMark;
  run_.scratch_release = &ScratchRelease;
  run_.output = [](void* self, const char*, mk_dtype, mk_u32, const mk_i64*, mk_u64, void**) {
    return Self(self)->Fail(MK_UNIMPLEMENTED, "OpContext: an op has no named outputs");
  };
  run_.cancelled = [](void*) { return mk_i32{0}; };
  run_.parameter_int64 = [](void*, const char*, mk_i64*) { return mk_i32{0}; };
  run_.parameter_double = [](void*, const char*, double*) { return mk_i32{0}; };
  run_.parameter_bool = [](void*, const char*, mk_i32*) { return mk_i32{0}; };
  run_.parameter_string = [](void*, const char*, const char**, mk_u64*) { return mk_i32{0}; };
  run_.now_ns = [](void*) { return mk_u64{0}; };
  run_.launch = &Launch;
  run_.copy_to_host = &CopyToHost;
  run_.copy_to_device = &CopyToDevice;
  absl::StatusOr<std::unique_ptr<GpuMirror>> gpu = GpuMirror::FromEnvironment();
  if (!gpu.ok()) {
    // Nothing can be tested; and to go on without the GPU would be a lie.
    std::fprintf(stderr, "%s\n", std::string(gpu.status().message()).c_str());
    std::exit(1);
  }
  UseGpu(*std::move(gpu));
}

void OpContext::UseGpu(std::unique_ptr<GpuMirror> gpu) {
  gpu_ = std::move(gpu);
  host_.device = gpu_ == nullptr ? "emulated" : "cuda";
  services_ = std::make_unique<Host>(*Host::Open(&host_));
  context_ = std::make_unique<Context>(*services_, run_);
}

const DeviceModule& OpContext::Module(const emu::Module& module, const DeviceModule& images) {
  std::vector<DeviceImage>& all = images_.emplace_back();
  all.push_back({ImageKind::kEmulated, 0, 0, &module, sizeof(emu::Module)});
  all.insert(all.end(), images.images, images.images + images.image_count);
  modules_.push_back({module.name, nullptr, 0, all.data(), static_cast<uint32_t>(all.size())});
  return modules_.back();
}

const DeviceModule& OpContext::Module(const emu::Module& module) {
  return Module(module, {module.name, nullptr, 0, nullptr, 0});
}

emu::Report OpContext::MergedReport() const {
  emu::Report merged;
  for (const OpLaunch& launch : launches_) {
    const emu::Report& report = launch.report;
    merged.findings.insert(merged.findings.end(), report.findings.begin(), report.findings.end());
    AddCounts(report.counts, &merged.counts);
    merged.static_shared_bytes = std::max(merged.static_shared_bytes, report.static_shared_bytes);
    for (const emu::SyncSite& sync : report.sync_sites) {
      const auto known = [&](const emu::SyncSite& s) { return emu::SameSite(s.site, sync.site); };
      if (std::none_of(merged.sync_sites.begin(), merged.sync_sites.end(), known)) {
        merged.sync_sites.push_back(sync);
      }
    }
  }
  return merged;
}

emu::LaunchFunction OpContext::LaunchFunction(std::function<Status()> op) {
  return [this, op = std::move(op)](const emu::Options& options) {
    const emu::Options before = std::exchange(options_, options);
    ClearLaunches();
    const ScratchScope scope(*context_);
    const Status status = op();
    emu::Report report = MergedReport();
    if (!status.ok() && report.ok()) {
      emu::Finding finding;
      finding.kind = emu::FindingKind::kBadLaunch;
      finding.what = status.message().empty() ? error_ : status.message();
      report.findings.push_back(finding);
    }
    options_ = before;
    return report;
  };
}

uint64_t OpContext::scratch_used_bytes() const {
  uint64_t bytes = 0;
  for (const Piece& piece : scratch_) bytes += piece.bytes;
  return bytes;
}

mk_status OpContext::Fail(mk_status code, std::string message) {
  error_ = std::move(message);
  return code;
}

const void* OpContext::Service(void* self, const char* id) {
  const std::string_view name = id;
  if (name == MK_SERVICE_KERNELS) return &Self(self)->kernels_service_;
  if (name == MK_SERVICE_WEIGHTS) return &Self(self)->weights_service_;
  const mk_host* cpu = Self(self)->cpu_.table();
  return cpu->service(cpu->self, id);
}

void OpContext::SetError(void* self, const char* message, mk_u64 size) {
  Self(self)->error_.assign(message, size);
}

mk_status OpContext::LoadImage(void* self, const char* name, const mk_kernel_image* images,
                               mk_u64 count, mk_module** module) {
  if (Self(self)->on_gpu()) {
    absl::StatusOr<mk::Module*> loaded = Self(self)->gpu_->Load(name, {images, count});
    if (!loaded.ok()) {
      return Self(self)->Fail(MK_FAILED_PRECONDITION, std::string(loaded.status().message()));
    }
    *module = reinterpret_cast<mk_module*>(*loaded);
    return MK_OK;
  }
  for (mk_u64 i = 0; i < count; ++i) {
    if (images[i].kind != MK_IMAGE_EMULATED) continue;
    *module = static_cast<mk_module*>(const_cast<void*>(images[i].data));
    return MK_OK;
  }
  return Self(self)->Fail(MK_FAILED_PRECONDITION,
                          std::string(name) + ": no emulated image among those given");
}

mk_status OpContext::FindKernel(void* self, mk_module* module, const char* name,
                                mk_kernel** kernel) {
  if (Self(self)->on_gpu()) {
    absl::StatusOr<DeviceKernel*> found = reinterpret_cast<mk::Module*>(module)->Find(name);
    if (!found.ok()) {
      return Self(self)->Fail(MK_NOT_FOUND, std::string(found.status().message()));
    }
    Self(self)->kernels_.push_back({nullptr, name, *found});
    *kernel = reinterpret_cast<mk_kernel*>(&Self(self)->kernels_.back());
    return MK_OK;
  }
  const auto* code = reinterpret_cast<const emu::Module*>(module);
  for (mk_u32 i = 0; i < code->kernel_count; ++i) {
    if (std::string_view(code->kernels[i].name) != name) continue;
    Self(self)->kernels_.push_back({code, name, nullptr});
    *kernel = reinterpret_cast<mk_kernel*>(&Self(self)->kernels_.back());
    return MK_OK;
  }
  return Self(self)->Fail(MK_NOT_FOUND,
                          std::string("module ") + code->name + " has no kernel " + name);
}

mk_status OpContext::AllocateWeights(void* self, mk_u64 size_bytes, void** data) {
  emu::DeviceMemory& memory = Self(self)->memory();
  const uint64_t bytes = std::max<mk_u64>(1, size_bytes);
  *data = memory.Allocate(bytes, "weights");
  const std::vector<char> zeros(bytes);
  memory.CopyIn(*data, zeros.data(), bytes);
  return MK_OK;
}

mk_status OpContext::LoadWeights(void* self, const char*, mk_weight*, mk_u64) {
  return Self(self)->Fail(MK_UNIMPLEMENTED, "OpContext: no weights files");
}

mk_status OpContext::Upload(void* self, void* device, const void* host, mk_u64 size_bytes) {
  Self(self)->memory().CopyIn(device, host, size_bytes);
  return MK_OK;
}

mk_status OpContext::Scratch(void* self, mk_u64 size_bytes, void** data) {
  OpContext* c = Self(self);
  if (size_bytes > TestRun::kScratchCapacityBytes - c->scratch_used_bytes()) {
    return c->Fail(MK_RESOURCE_EXHAUSTED, "scratch: asked " + std::to_string(size_bytes));
  }
  const uint64_t bytes = std::max<mk_u64>(1, size_bytes);
  *data = c->memory().Allocate(bytes, "scratch " + std::to_string(c->scratch_.size()));
  c->scratch_.push_back({*data, bytes});
  c->scratch_peak_bytes_ = std::max(c->scratch_peak_bytes_, c->scratch_used_bytes());
  return MK_OK;
}

mk_u64 OpContext::ScratchMark(void* self) { return Self(self)->scratch_.size(); }

void OpContext::ScratchRelease(void* self, mk_u64 mark) {
  OpContext* c = Self(self);
  while (c->scratch_.size() > mark) {
    c->memory().Free(c->scratch_.back().device);
    c->scratch_.pop_back();
  }
}

mk_status OpContext::Launch(void* self, mk_kernel* kernel, const mk_launch* launch) {
  OpContext* c = Self(self);
  const auto* loaded = reinterpret_cast<const LoadedKernel*>(kernel);
  if (loaded == nullptr) return c->Fail(MK_INTERNAL, "launch of a kernel that was not loaded");
  const mk_u32* grid = launch->grid;
  const mk_u32* block = launch->block;
  OpLaunch done;
  done.kernel = loaded->name;
  done.grid = {grid[0], grid[1], grid[2]};
  done.block = {block[0], block[1], block[2]};
  done.shared_bytes = launch->shared_bytes;
  done.cost = {launch->bytes, launch->flops, launch->tensor_flops};
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[1] > kMaxGridYZ ||
      grid[2] > kMaxGridYZ) {
    return c->Fail(MK_INTERNAL, loaded->name + ": grid " + std::to_string(grid[0]) + " x " +
                                    std::to_string(grid[1]) + " x " + std::to_string(grid[2]));
  }
  done.report = c->on_gpu() ? c->LaunchOnGpu(*loaded, *launch) : c->Emulate(*loaded, *launch);
  c->launches_.push_back(std::move(done));
  const emu::Report& report = c->launches_.back().report;
  return report.ok() ? MK_OK : c->Fail(MK_INTERNAL, report.Text());
}

emu::Report OpContext::Emulate(const LoadedKernel& kernel, const mk_launch& launch) {
  emu::LaunchShape shape;
  shape.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  shape.block = {launch.block[0], launch.block[1], launch.block[2]};
  shape.dynamic_shared_bytes = launch.shared_bytes;
  return emulator_.Run(*kernel.module, kernel.name, shape, launch.params,
                       static_cast<uint32_t>(launch.params_size_bytes), options_);
}

emu::Report OpContext::LaunchOnGpu(const LoadedKernel& kernel, const mk_launch& launch) {
  const LaunchDims dims = {{launch.grid[0], launch.grid[1], launch.grid[2]},
                           {launch.block[0], launch.block[1], launch.block[2]},
                           launch.shared_bytes,
                           {launch.bytes, launch.flops, launch.tensor_flops}};
  const absl::Status status = gpu_->Launch(*kernel.on_gpu, dims, launch.params,
                                           launch.params_size_bytes, emulator_.memory());
  emu::Report report;
  if (!status.ok()) {
    emu::Finding finding;
    finding.kind = emu::FindingKind::kBadLaunch;
    finding.what = std::string(status.message());
    report.findings.push_back(std::move(finding));
  }
  return report;
}

mk_status OpContext::CopyToHost(void* self, void* host, const void* device, mk_u64 size_bytes) {
  Self(self)->memory().CopyOut(host, device, size_bytes);
  return MK_OK;
}

mk_status OpContext::CopyToDevice(void* self, void* device, const void* host, mk_u64 size_bytes) {
  Self(self)->memory().CopyIn(device, host, size_bytes);
  return MK_OK;
}

std::vector<device::half> ToHalves(const std::vector<float>& values) {
  std::vector<device::half> halves;
  halves.reserve(values.size());
  for (const float value : values) halves.push_back({device::FloatToHalfBits(value)});
  return halves;
}

std::vector<float> ToFloats(const std::vector<device::half>& values) {
  std::vector<float> floats;
  floats.reserve(values.size());
  for (const device::half value : values) floats.push_back(device::HalfBitsToFloat(value.bits));
  return floats;
}

std::vector<float> RoundedToHalf(const std::vector<float>& values) {
  return ToFloats(ToHalves(values));
}

bool TestsRunOnGpu() { return GpuMirror::Asked(); }

std::vector<std::string> Survivors(const std::vector<emu::Mutant>& mutants) {
  std::vector<std::string> names;
  for (const emu::Mutant& mutant : mutants) {
    const std::string name =
        std::string(mutant.sync.name) + " in " + emu::SiteText(mutant.sync.site);
    std::printf("mutant %s: %s\n", name.c_str(), mutant.caught ? mutant.how.c_str() : "SURVIVES");
    if (!mutant.caught) names.push_back(name);
  }
  return names;
}

}  // namespace mk::testing
