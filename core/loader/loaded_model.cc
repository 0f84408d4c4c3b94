#include "core/loader/loaded_model.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/dtype.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/loader/manifest.h"
#include "core/loader/model_device.h"
#include "core/weights/weight_stream.h"

namespace mk {
namespace {

constexpr size_t kMaxMessage = 4096;

std::string Text(const TensorSpec& spec) {
  return absl::StrCat("'", spec.name, "' ", std::string(DtypeName(spec.dtype)), "[",
                      absl::StrJoin(spec.shape, ","), "]", spec.optional ? " optional" : "");
}

absl::Status CompareSpecs(const char* what, const std::vector<TensorSpec>& pack,
                          const std::vector<TensorSpec>& manifest) {
  for (size_t i = 0; i < std::max(pack.size(), manifest.size()); ++i) {
    if (i < pack.size() && i < manifest.size() && pack[i] == manifest[i]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("signature: ", what, " ", i, " is ",
                     i < pack.size() ? Text(pack[i]) : "not there", " in the pack and ",
                     i < manifest.size() ? Text(manifest[i]) : "not there", " in the manifest"));
  }
  return absl::OkStatus();
}

// What `describe` fills.
struct SignatureSink {
  Signature signature;
  absl::Status status;

  static mk_status Add(std::vector<TensorSpec>& specs, const mk_tensor_spec& spec) {
    if (spec.rank > MK_MAX_RANK || spec.name == nullptr || specs.size() >= 256) {
      return MK_INVALID_ARGUMENT;
    }
    specs.push_back({spec.name,
                     spec.dtype,
                     {spec.shape, spec.shape + spec.rank},
                     (spec.flags & MK_TENSOR_OPTIONAL) != 0});
    return MK_OK;
  }
  mk_signature Table() {
    mk_signature table = {};
    table.struct_size = sizeof table;
    table.self = this;
    table.add_input = [](void* self, const mk_tensor_spec* spec) {
      return Add(static_cast<SignatureSink*>(self)->signature.inputs, *spec);
    };
    table.add_output = [](void* self, const mk_tensor_spec* spec) {
      return Add(static_cast<SignatureSink*>(self)->signature.outputs, *spec);
    };
    return table;
  }
};

}  // namespace

// The `mk_host` of one model, with the services that know the pack: log, files, weights.
class LoadedModel::Host {
 public:
  Host(const SealedPack& sealed, MemoryAccount& memory, Device& device,
       const HostServices& services, LogFunction log)
      : sealed_(sealed),
        services_(services),
        log_(std::move(log)),
        device_(device, memory,
                [this](int level, const std::string& message) { Log(level, message); }) {
    log_table_ = {sizeof log_table_, 0, this,
                  [](void* self, mk_i32 level, const char* text, mk_u64 size) {
                    Of(self).Log(level, std::string_view(text, size));
                  }};
    files_table_ = {sizeof files_table_, 0, this,
                    [](void* self, const char* name, const void** data, mk_u64* size) {
                      return Of(self).ReadFile(name, data, size);
                    },
                    [](void* self, const char* key) { return Of(self).Parameter(key); }};
    weights_table_ = {
        sizeof weights_table_,
        0,
        this,
        [](void* self, mk_u64 size, void** data) { return Of(self).Allocate(size, data); },
        [](void* self, const char* file, mk_weight* weights, mk_u64 count) {
          return Of(self).LoadWeights(file, weights, count);
        },
        [](void* self, void* to, const void* from, mk_u64 size) {
          return Of(self).Upload(to, from, size);
        }};
    kernels_table_ = {
        sizeof kernels_table_, 0, this,
        [](void* self, const char* name, const mk_kernel_image* images, mk_u64 count,
           mk_module** module) { return Of(self).LoadModule(name, images, count, module); },
        [](void* self, mk_module* module, const char* name, mk_kernel** kernel) {
          return Of(self).FindKernel(module, name, kernel);
        }};
    const DeviceFacts& facts = device.facts();
    facts_table_ = {sizeof facts_table_,
                    static_cast<mk_u32>(facts.sm),
                    static_cast<mk_u32>(facts.compute_units),
                    0,
                    facts.l2_bytes,
                    facts.shared_bytes_per_block};
    table_ = {sizeof table_,
              MK_ABI_MINOR,
              this,
              [](void* self, const char* id) { return Of(self).Service(id); },
              [](void* self, const char* text, mk_u64 size) {
                Of(self).error_.assign(text, std::min<size_t>(size, kMaxMessage));
              },
              device.facts().kind.c_str()};
  }

  // Gives back what the model has on the device. REQUIRES that it is destroyed.
  void ReleaseDevice() { device_.Release(); }

  const mk_host* table() const { return &table_; }

  // The verdict of a call into the pack, with the message it (or a service of ours) left.
  absl::Status Result(const char* call, mk_status code) {
    const std::string message = Printable(std::exchange(error_, ""), 1000);
    if (code == MK_OK) return absl::OkStatus();
    const bool known = code > 0 && code <= MK_DATA_LOSS;
    return absl::Status(
        known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kInternal,
        absl::StrCat("pack '", sealed_.manifest.code().name(), "': ", call,
                     " failed: ", message.empty() ? absl::StrCat("code ", code) : message));
  }

 private:
  static Host& Of(void* self) { return *static_cast<Host*>(self); }

  const void* Service(const char* id) const {
    const std::string_view name = id;
    if (name == MK_SERVICE_LOG) return &log_table_;
    if (name == MK_SERVICE_FILES) return &files_table_;
    if (name == MK_SERVICE_WEIGHTS) return &weights_table_;
    if (name == MK_SERVICE_KERNELS) return device_.has_kernels() ? &kernels_table_ : nullptr;
    if (name == MK_SERVICE_DEVICE) return device_.has_kernels() ? &facts_table_ : nullptr;
    return services_.Find(id);
  }

  void Log(int level, std::string_view text) {
    if (log_) {
      log_(std::clamp(level, 0, 3),
           absl::StrCat("pack ", sealed_.manifest.name(), ": ", Printable(text, kMaxMessage)));
    }
  }

  mk_status Fail(const absl::Status& status) {
    error_ = std::string(status.message());
    return static_cast<mk_status>(status.code());
  }

  mk_status ReadFile(const char* name, const void** data, mk_u64* size) {
    const auto found = sealed_.small.find(name);
    if (found == sealed_.small.end()) {
      return Fail(absl::NotFoundError(absl::StrCat("file '", Printable(name, 80),
                                                   "' is not among the manifest's small files")));
    }
    *data = found->second->bytes().data();
    *size = found->second->bytes().size();
    return MK_OK;
  }

  const char* Parameter(const char* key) const {
    const auto found = sealed_.manifest.parameters().find(key);
    return found == sealed_.manifest.parameters().end() ? nullptr : found->second.c_str();
  }

  mk_status Allocate(mk_u64 size, void** data) {
    const auto memory = device_.Allocate(size);
    if (!memory.ok()) return Fail(memory.status());
    *data = *memory;
    return MK_OK;
  }

  mk_status Upload(void* to, const void* from, mk_u64 size) {
    absl::Status status = device_.Upload(to, from, size);
    if (status.ok()) status = device_.Wait();
    return status.ok() ? MK_OK : Fail(status);
  }

  mk_status LoadModule(const char* name, const mk_kernel_image* images, mk_u64 count,
                       mk_module** module) {
    const auto loaded = device_.LoadModule(name, absl::MakeConstSpan(images, count));
    if (!loaded.ok()) return Fail(loaded.status());
    *module = reinterpret_cast<mk_module*>(*loaded);
    return MK_OK;
  }

  mk_status FindKernel(mk_module* module, const char* name, mk_kernel** kernel) {
    const auto found = device_.FindKernel(reinterpret_cast<Module*>(module), name);
    if (!found.ok()) return Fail(found.status());
    *kernel = reinterpret_cast<mk_kernel*>(*found);
    return MK_OK;
  }

  mk_status LoadWeights(const char* file, mk_weight* weights, mk_u64 count) {
    const auto found = sealed_.weights.find(file);
    if (found == sealed_.weights.end()) {
      return Fail(absl::NotFoundError(
          absl::StrCat("weights '", Printable(file, 80), "' are not in the manifest")));
    }
    std::string digest;
    for (const auto& entry : sealed_.manifest.files()) {
      if (entry.name() == file) digest = entry.sha256();
    }
    WeightStreamOptions options = {file, digest, nullptr};
    if (device_.remote()) {
      options.place = [this](void* to, const void* from, uint64_t size) {
        return device_.Upload(to, from, size);
      };
    }
    absl::Status status =
        StreamWeights(found->second.get(), options, absl::MakeSpan(weights, count));
    const absl::Status placed = device_.Wait();
    if (status.ok()) status = placed;
    return status.ok() ? MK_OK : Fail(status);
  }

  const SealedPack& sealed_;
  const HostServices& services_;
  const LogFunction log_;
  mk_host table_;
  mk_log_service log_table_;
  mk_files_service files_table_;
  mk_weights_service weights_table_;
  mk_kernels_service kernels_table_;
  mk_device_service facts_table_;
  ModelDevice device_;
  std::string error_;
};

LoadedModel::LoadedModel(std::shared_ptr<const SealedPack> sealed, Device& device)
    : sealed_(std::move(sealed)),
      signature_(SignatureOf(sealed_->manifest)),
      memory_({sealed_->manifest.memory().weights_bytes(),
               ScratchBytesOn(sealed_->manifest, device.facts().kind) *
                   static_cast<uint64_t>(LanesOf(sealed_->manifest)),
               sealed_->manifest.memory().state_bytes()}) {}

LoadedModel::~LoadedModel() {
  bool retired = false;
  Unload(&retired).IgnoreError();
}

absl::Status LoadedModel::Describe() {
  SignatureSink sink;
  const mk_signature table = sink.Table();
  MK_RETURN_IF_ERROR(host_->Result("describe", pack().describe(host_->table(), &table)));
  MK_RETURN_IF_ERROR(CompareSpecs("input", sink.signature.inputs, signature_.inputs));
  return CompareSpecs("output", sink.signature.outputs, signature_.outputs);
}

absl::StatusOr<std::unique_ptr<LoadedModel>> LoadedModel::Create(
    std::shared_ptr<const SealedPack> sealed, Device& device, const HostServices& services,
    LogFunction log) {
  const auto& devices = sealed->manifest.devices();
  // Where the same device code goes, though no GPU runs it.
  const std::string& kind = device.facts().kind;
  const std::string named = kind == "emulated" || kind == "planning" ? "cuda" : kind;
  if (std::find(devices.begin(), devices.end(), named) == devices.end()) {
    return absl::InvalidArgumentError(absl::StrCat("manifest: devices do not name '", named,
                                                   "', but only ", absl::StrJoin(devices, ", ")));
  }
  auto loaded = std::unique_ptr<LoadedModel>(new LoadedModel(std::move(sealed), device));
  MK_ASSIGN_OR_RETURN(loaded->library_, PackLibrary::Load(*loaded->sealed_));
  loaded->host_ =
      std::make_unique<Host>(*loaded->sealed_, loaded->memory_, device, services, std::move(log));
  MK_RETURN_IF_ERROR(loaded->Describe());
  const mk_status code = loaded->pack().create(loaded->host_->table(), &loaded->model_);
  MK_RETURN_IF_ERROR(loaded->host_->Result("create", code));
  if (loaded->model_ == nullptr) {
    return absl::InternalError(absl::StrCat("pack '", loaded->sealed_->manifest.code().name(),
                                            "': create succeeded without a model"));
  }
  return loaded;
}

absl::Status LoadedModel::Unload(bool* retired) {
  if (library_ == nullptr) return absl::OkStatus();
  if (model_ != nullptr) pack().destroy(model_);
  model_ = nullptr;
  if (host_ != nullptr) host_->ReleaseDevice();
  *retired = !library_->Close();
  host_.reset();
  library_.reset();
  if (memory_.live_total() != 0) {
    return absl::InternalError(
        absl::StrCat(memory_.live_total(), " bytes are still charged after the unload"));
  }
  if (*retired) return absl::InternalError("its mapping could not be proven gone: retired");
  return absl::OkStatus();
}

}  // namespace mk
