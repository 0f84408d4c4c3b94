// One load of one version of a pack: its sealed bytes, mapped library, created model, memory
// account and lanes. A reload of the same version is another generation.
#ifndef MERGEKERNEL_CORE_LOADER_GENERATION_H_
#define MERGEKERNEL_CORE_LOADER_GENERATION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/abi/mk_pack.h"
#include "core/device/device.h"
#include "core/device/memory_account.h"
#include "core/loader/executor.h"
#include "core/run/request.h"
#include "proto/mergekernel/v1/pack.pb.h"

namespace mk {

// What serves. All const accessors: any thread, as long as a handle is held.
class Generation {
 public:
  virtual ~Generation() = default;
  virtual const std::string& name() const = 0;
  virtual int64_t version() const = 0;
  virtual uint64_t id() const = 0;  // counts up over the life of the daemon
  virtual const mergekernel::v1::Manifest& manifest() const = 0;
  virtual const std::string& digest()
      const = 0;  // SHA-256 of the manifest, so of all it lists; hex
  virtual const Signature& signature() const = 0;
  virtual const std::string& labels() const = 0;  // the labels file's text, "" without one
  virtual const mk_pack& pack() const = 0;
  virtual mk_model* model() const = 0;
  virtual Device& device() const = 0;
  virtual MemoryAccount& memory() const = 0;
  virtual int lanes() const = 0;  // >= 1
  virtual int64_t loaded_unix_ms() const = 0;
  virtual double load_seconds() const = 0;
  virtual Executor& executor() const = 0;
};

// A counted handle: while one is held, the generation is not unloaded. Copyable. The last release
// of a generation that is no longer published lets the registry's reaper unload it, on its own
// thread: releasing never blocks and never unloads on a lane's thread.
using GenerationHandle = std::shared_ptr<const Generation>;

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_GENERATION_H_
