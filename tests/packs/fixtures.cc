// The fixture packs, good and bad; each target of this folder's BUILD is one of them, chosen by
// MK_FIXTURE_<NAME>.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/sdk/pack.h"

#ifndef MK_FIXTURE_VERSION
#define MK_FIXTURE_VERSION 1
#endif

#if defined(MK_FIXTURE_UNDEFINED)
extern "C" int mk_not_there();
#endif

namespace mk {
namespace {

#if defined(MK_FIXTURE_SUM2)
// INPUT0 + INPUT1.
struct Fixture {
  static Status Describe(const Host&, SignatureBuilder& s) {
    s.Input("INPUT0", MK_DTYPE_INT32, {4});
    s.Input("INPUT1", MK_DTYPE_INT32, {4});
    s.Output("OUTPUT0", MK_DTYPE_INT32, {4});
    return Ok();
  }
  static Result<std::unique_ptr<Fixture>> Create(const Host&) {
    return std::make_unique<Fixture>();
  }
  Status Run(Context& context) {
    int32_t a[4], b[4];
    std::memcpy(a, context.Input("INPUT0")->data, sizeof a);
    std::memcpy(b, context.Input("INPUT1")->data, sizeof b);
    MK_TRY_ASSIGN(void* out, context.Output("OUTPUT0", MK_DTYPE_INT32, {4}, sizeof a));
    for (int i = 0; i < 4; ++i) a[i] += b[i];
    std::memcpy(out, a, sizeof a);
    return Ok();
  }
};
#elif defined(MK_FIXTURE_HITS)
// A detector that finds nothing: [0, 4].
struct Fixture {
  static Status Describe(const Host&, SignatureBuilder& s) {
    s.Input("INPUT0", MK_DTYPE_FP32, {-1});
    s.Output("HITS", MK_DTYPE_FP32, {-1, 4});
    return Ok();
  }
  static Result<std::unique_ptr<Fixture>> Create(const Host&) {
    return std::make_unique<Fixture>();
  }
  Status Run(Context& context) { return context.Output("HITS", MK_DTYPE_FP32, {0, 4}, 0).status(); }
};
#elif defined(MK_FIXTURE_AFFINE)
// y = w[0] * x + w[1], with weights from model.safetensors.
struct Fixture {
  static Status Describe(const Host&, SignatureBuilder& s) {
    s.Input("X", MK_DTYPE_FP32, {-1});
    s.Output("Y", MK_DTYPE_FP32, {-1});
    return Ok();
  }
  static Result<std::unique_ptr<Fixture>> Create(const Host& host) {
    auto fixture = std::make_unique<Fixture>();
    MK_TRY_ASSIGN(void* memory, host.AllocateWeights(2 * sizeof(float)));
    fixture->w = static_cast<float*>(memory);
    const int64_t shape[] = {2};
    std::vector<mk_weight> weights = {{"w", MK_DTYPE_FP32, 1, shape, memory, 0, 0}};
    MK_TRY(host.LoadWeights("model.safetensors", weights));
    return fixture;
  }
  Status Run(Context& context) {
    const mk_tensor* x = context.Input("X");
    MK_TRY_ASSIGN(void* out, context.Output("Y", MK_DTYPE_FP32, {x->shape[0]}, x->size_bytes));
    for (int64_t i = 0; i < x->shape[0]; ++i) {
      static_cast<float*>(out)[i] = w[0] * static_cast<const float*>(x->data)[i] + w[1];
    }
    return Ok();
  }
  const float* w = nullptr;
};
#else
// Answers with the version of its code; breaks in `create` as told.
struct Fixture {
  static Status Describe(const Host&, SignatureBuilder& s) {
    s.Input("INPUT0", MK_DTYPE_UINT8, {-1});
    s.Output("VERSION", MK_DTYPE_INT64, {1});
    return Ok();
  }
  static Result<std::unique_ptr<Fixture>> Create(const Host&) {
#if defined(MK_FIXTURE_CREATE_FAILS)
    return FailedPrecondition("fixture: no such luck");
#elif defined(MK_FIXTURE_CREATE_THROWS)
    throw std::runtime_error("thrown in create");
#elif defined(MK_FIXTURE_CREATE_ABORTS)
    std::abort();
#elif defined(MK_FIXTURE_CREATE_SEGFAULTS)
    std::raise(SIGSEGV);
#elif defined(MK_FIXTURE_CREATE_HANGS)
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
#elif defined(MK_FIXTURE_CREATE_SLOW)
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
#endif
    return std::make_unique<Fixture>();
  }
  Status Run(Context& context) {
    MK_TRY_ASSIGN(void* out, context.Output("VERSION", MK_DTYPE_INT64, {1}, 8));
    const int64_t version = MK_FIXTURE_VERSION;
    std::memcpy(out, &version, 8);
#if defined(MK_FIXTURE_THREAD_LOCAL)
    static thread_local std::string touched;
    touched += "x";
#endif
#if defined(MK_FIXTURE_UNDEFINED)
    if (mk_not_there() != 0) return Internal("unreachable");
#endif
    return Ok();
  }
};
#if defined(MK_FIXTURE_CONSTRUCTOR)
struct AtStart {
  AtStart() { value = std::getenv("PATH"); }
  const char* value;
};
__attribute__((used)) AtStart at_start;
#endif
#endif

}  // namespace
}  // namespace mk

#if defined(MK_FIXTURE_EXTRA_EXPORT)
extern "C" __attribute__((visibility("default"))) int mk_pack_extra() { return 1; }
#endif
#if defined(MK_FIXTURE_UNIQUE)
template <typename T>
struct __attribute__((visibility("default"))) Shared {
  static int count;
};
template <typename T>
int Shared<T>::count = 0;
extern "C" __attribute__((used)) int mk_count() { return ++Shared<int>::count; }
#endif

#if !defined(MK_FIXTURE_NO_ENTRY)
MK_PACK(mk::Fixture, "fixture", MK_FIXTURE_VERSION);
#endif
