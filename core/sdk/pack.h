// The seam of a pack: turns a C++ class into the ABI's one symbol. A pack.cc is this and nothing
// else:
//
//   class Echo {
//    public:
//     static mk::Status Describe(const mk::Host&, mk::SignatureBuilder&);
//     static mk::Result<std::unique_ptr<Echo>> Create(const mk::Host&);
//     mk::Status Run(mk::Context&);
//   };
//   MK_PACK(Echo, "echo", 1);
//
// A class whose runs decide by more than shapes and parameters says so, and is never replayed as a
// graph:  static constexpr bool kNeverCapture = true;
//
// An exception that escapes any of the three becomes MK_INTERNAL (std::bad_alloc:
// MK_RESOURCE_EXHAUSTED) with its text.
#ifndef MERGEKERNEL_CORE_SDK_PACK_H_
#define MERGEKERNEL_CORE_SDK_PACK_H_

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/abi/mk_pack.h"
#include "core/sdk/context.h"
#include "core/sdk/status.h"

namespace mk {

// Collects a signature in `Describe`; the first failure is kept and returned by the seam.
class SignatureBuilder {
 public:
  explicit SignatureBuilder(const mk_signature* sink) : sink_(sink) {}

  // -1 in `shape`: decided by each request. An optional input may be left out.
  void Input(const char* name, mk_dtype dtype, const std::vector<int64_t>& shape,
             bool optional = false) {
    Add(sink_->add_input, name, dtype, shape, optional ? MK_TENSOR_OPTIONAL : 0);
  }
  void Output(const char* name, mk_dtype dtype, const std::vector<int64_t>& shape) {
    Add(sink_->add_output, name, dtype, shape, 0);
  }
  mk_status status() const { return status_; }

 private:
  using AddFunction = mk_status (*)(void*, const mk_tensor_spec*);
  void Add(AddFunction add, const char* name, mk_dtype dtype, const std::vector<int64_t>& shape,
           uint32_t flags) {
    const mk_tensor_spec spec = {sizeof(mk_tensor_spec),
                                 name,
                                 dtype,
                                 flags,
                                 static_cast<uint32_t>(shape.size()),
                                 shape.data()};
    const mk_status s = add(sink_->self, &spec);
    if (status_ == MK_OK) status_ = s;
  }

  const mk_signature* const sink_;
  mk_status status_ = MK_OK;
};

// Runs `body` (returning mk::Status) and turns exceptions into a Status: nothing is thrown across
// the ABI.
template <typename Body>
Status Guard(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("out of host memory");
  } catch (const std::exception& e) {
    return Internal(std::string("exception in pack: ") + e.what());
  } catch (...) {
    return Internal("exception of unknown type in pack");
  }
}

// Whether the pack says `static constexpr bool kNeverCapture = true`: see mk_capture_extension.
template <typename Pack, typename = void>
struct NeverCaptured : std::false_type {};
template <typename Pack>
struct NeverCaptured<Pack, std::enable_if_t<Pack::kNeverCapture>> : std::true_type {};

// The functions of the ABI over a pack class; see the top of this file.
template <typename Pack>
class Seam {
 public:
  static mk_status Describe(const mk_host* host, const mk_signature* signature) {
    const Status status = Guard([&]() -> Status {
      MK_TRY_ASSIGN(const Host services, Host::Open(host));
      SignatureBuilder builder(signature);
      MK_TRY(Pack::Describe(services, builder));
      return builder.status() == MK_OK ? Ok() : Status(builder.status(), "");
    });
    return Report(*host, status);
  }

  static mk_status Create(const mk_host* host, mk_model** model) {
    const Status status = Guard([&]() -> Status {
      MK_TRY_ASSIGN(Host services, Host::Open(host));
      auto holder = std::make_unique<Holder>(Holder{services, nullptr});
      MK_TRY_ASSIGN(holder->pack, Pack::Create(holder->host));
      *model = reinterpret_cast<mk_model*>(holder.release());
      return Ok();
    });
    return Report(*host, status);
  }

  static mk_status Run(mk_model* model, const mk_run* run) {
    auto* holder = reinterpret_cast<Holder*>(model);
    const Status status = Guard([&]() -> Status {
      Context context(holder->host, *run);
      return holder->pack->Run(context);
    });
    return Report(*run, status);
  }

  static void Destroy(mk_model* model) { delete reinterpret_cast<Holder*>(model); }

  static const void* Extension(const char* id) {
    static constexpr mk_capture_extension kNever = {sizeof(mk_capture_extension), MK_CAPTURE_NEVER};
    if constexpr (NeverCaptured<Pack>::value) {
      if (std::string_view(id) == MK_EXTENSION_CAPTURE) return &kNever;
    }
    static_cast<void>(id);
    return nullptr;
  }

 private:
  struct Holder {
    Host host;
    std::unique_ptr<Pack> pack;
  };

  template <typename Table>
  static mk_status Report(const Table& table, const Status& status) {
    if (!status.ok() && !status.message().empty()) {
      table.set_error(table.self, status.message().data(), status.message().size());
    }
    return status.code();
  }
};

}  // namespace mk

#define MK_PACK_BUILD_TEXT "g++ " __VERSION__
// The one exported symbol. `code_name` and `version` must equal the manifest's `code`, and `minor`
// its `abi_minor`: the least minor version of the ABI that the pack can do with. MK_PACK is for
// packs that any host of 1.x can load; one that needs device code says 1.
#define MK_PACK_MINOR(Class, code_name, version, minor)                          \
  extern "C" __attribute__((visibility("default"))) const mk_pack mk_pack_entry; \
  const mk_pack mk_pack_entry = {MK_PACK_MAGIC,                                  \
                                 MK_ABI_MAJOR,                                   \
                                 minor,                                          \
                                 sizeof(mk_pack),                                \
                                 0,                                              \
                                 code_name,                                      \
                                 version,                                        \
                                 MK_PACK_BUILD_TEXT,                             \
                                 &::mk::Seam<Class>::Describe,                   \
                                 &::mk::Seam<Class>::Create,                     \
                                 &::mk::Seam<Class>::Run,                        \
                                 &::mk::Seam<Class>::Destroy,                    \
                                 &::mk::Seam<Class>::Extension}
#define MK_PACK(Class, code_name, version) MK_PACK_MINOR(Class, code_name, version, 0)

#endif  // MERGEKERNEL_CORE_SDK_PACK_H_
