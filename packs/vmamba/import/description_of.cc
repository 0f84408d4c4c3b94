// The pack's own judgement of a description, asked outside of a daemon; and what to declare for it.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "core/abi/mk_pack.h"
#include "core/sdk/context.h"
#include "packs/vmamba/import/layout.h"
#include "packs/vmamba/weights.h"

namespace mk::vmamba {
namespace {

using Parameters = std::map<std::string, std::string>;

// A host of which only the parameters can be used: ParseDescription asks for nothing else.
class ParameterHost {
 public:
  explicit ParameterHost(const Parameters& parameters) : parameters_(parameters) {
    log_ = {sizeof log_, 0, this, [](void*, mk_i32, const char*, mk_u64) {}};
    files_ = {sizeof files_, 0, this,
              [](void*, const char*, const void**, mk_u64*) -> mk_status { return MK_NOT_FOUND; },
              [](void* self, const char* key) {
                const auto& all = static_cast<ParameterHost*>(self)->parameters_;
                const auto found = all.find(key);
                return found == all.end() ? nullptr : found->second.c_str();
              }};
    weights_ = {
        sizeof weights_, 0, this,
        [](void*, mk_u64, void**) -> mk_status { return MK_UNIMPLEMENTED; },
        [](void*, const char*, mk_weight*, mk_u64) -> mk_status { return MK_UNIMPLEMENTED; }};
    parallel_ = {sizeof parallel_, 0, this,
                 [](void*, mk_i64, mk_i64, void (*)(void*, mk_i64, mk_i64), void*) {},
                 [](void*) -> mk_i64 { return 1; }};
    blas_ = {sizeof blas_, 0, this,
             [](void*, const mk_sgemm_args*) -> mk_status { return MK_UNIMPLEMENTED; }};
    table_ = {sizeof table_, MK_ABI_MINOR, this, &Service, [](void*, const char*, mk_u64) {},
              "planning"};
  }
  const mk_host* table() const { return &table_; }

 private:
  static const void* Service(void* self, const char* id) {
    const auto* host = static_cast<ParameterHost*>(self);
    const std::string name = id;
    if (name == MK_SERVICE_LOG) return &host->log_;
    if (name == MK_SERVICE_FILES) return &host->files_;
    if (name == MK_SERVICE_WEIGHTS) return &host->weights_;
    if (name == MK_SERVICE_PARALLEL) return &host->parallel_;
    if (name == MK_SERVICE_BLAS) return &host->blas_;
    return nullptr;
  }

  const Parameters& parameters_;
  mk_log_service log_;
  mk_files_service files_;
  mk_weights_service weights_;
  mk_parallel_service parallel_;
  mk_blas_service blas_;
  mk_host table_;
};

}  // namespace

Result<Description> DescriptionOf(const Parameters& parameters) {
  const ParameterHost host(parameters);
  MK_TRY_ASSIGN(const Host services, Host::Open(host.table()));
  return ParseDescription(services);
}

// Weights: each tensor on its own 64 bytes, and a sixteenth for layouts that pad.
//
// Scratch, in floats, T = (height / 4) (width / 4) tokens in stage 0, a quarter in each next:
//   input 16 T c; stem 2 T E beside its result T E; the maps between stages, T_s C_s / 2 each;
//   in stage s the larger of SS2D, T_s (C + 2 di + 4 (R + 2 N)), and MLP, T_s (C + hidden);
//   a quarter on top, 1 MiB for each thread's panels, and the decoded image with its resize.
DeclaredMemory DeclareMemory(const Description& d, int64_t height, int64_t width) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  DeclaredMemory memory;
  for (const WeightSpec& spec : WeightTable(d)) {
    uint64_t count = 1;
    for (const int64_t dim : spec.shape) count *= static_cast<uint64_t>(dim);
    memory.weights_bytes += (count * sizeof(float) + 63) / 64 * 64;
  }
  memory.weights_bytes += memory.weights_bytes / 16 + 4096;

  const double tokens =
      static_cast<double>((height + 3) / 4) * static_cast<double>((width + 3) / 4);
  double held = tokens * static_cast<double>(16 * d.in_chans + d.embed_dim);
  double step = 2 * tokens * static_cast<double>(d.embed_dim);
  double stage_tokens = tokens;
  for (int64_t s = 0; s < d.stages(); ++s, stage_tokens /= 4) {
    const auto channels = static_cast<double>(d.Channels(s));
    const double ss2d = channels + 2 * static_cast<double>(d.Inner(s)) +
                        4 * static_cast<double>(d.Rank(s) + 2 * d.d_state);
    const double mlp = channels + static_cast<double>(d.Hidden(s));
    step = std::max(step, stage_tokens * std::max(ss2d, mlp));
    held += stage_tokens * channels / 2;
  }
  const double network = 1.25 * sizeof(float) * (held + step);
  const auto image = static_cast<uint64_t>(d.preprocessing.max_encoded_pixels) * 3;
  memory.scratch_bytes = static_cast<uint64_t>(network) + image +
                         static_cast<uint64_t>(kDeclaredThreads) * kMiB + 2 * kMiB;
  memory.scratch_bytes = (memory.scratch_bytes + kMiB - 1) / kMiB * kMiB;
  return memory;
}

}  // namespace mk::vmamba
