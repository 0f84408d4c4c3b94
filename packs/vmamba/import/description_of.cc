// The pack's own judgement of a description, asked outside of a daemon.
#include <cstdint>
#include <map>
#include <string>

#include "core/abi/mk_pack.h"
#include "core/sdk/context.h"
#include "packs/vmamba/import/layout.h"
#include "packs/vmamba/memory.h"

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
        sizeof weights_,
        0,
        this,
        [](void*, mk_u64, void**) -> mk_status { return MK_UNIMPLEMENTED; },
        [](void*, const char*, mk_weight*, mk_u64) -> mk_status { return MK_UNIMPLEMENTED; },
        nullptr};
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

DeclaredMemory DeclareMemory(const Description& description) {
  return {static_cast<uint64_t>(WeightsBytes(description)),
          static_cast<uint64_t>(ScratchBytes(description)),
          static_cast<uint64_t>(DeviceScratchBytes(description))};
}

}  // namespace mk::vmamba
