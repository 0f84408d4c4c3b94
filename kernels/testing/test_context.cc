#include "kernels/testing/test_context.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/types/span.h"
#include "core/weights/weight_stream.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define MK_SCRATCH_GAP_BYTES 64  // a poisoned line behind each block
#else
#define MK_SCRATCH_GAP_BYTES 0
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace mk::testing {
namespace {

constexpr uint64_t kAlignment = 64;

uint64_t RoundUp(uint64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

template <typename T>
T* As(void* self) {
  return static_cast<T*>(self);
}

}  // namespace

// ---- TestHost

void TestHost::Free::operator()(void* p) const { std::free(p); }

TestHost::TestHost(TestHostOptions options)
    : options_(std::move(options)),
      services_([&] {
        HostServicesOptions services;
        services.threads = options_.threads;
        return services;
      }()),
      host_{sizeof(mk_host), MK_ABI_MINOR, this, &Service, &SetError, options_.device},
      log_{sizeof(mk_log_service), 0, this, &WriteLog},
      files_{sizeof(mk_files_service), 0, this, &ReadFile, &Parameter},
      weights_service_{MK_WEIGHTS_SERVICE_SIZE_1_0, 0, this, &Allocate, &Load, nullptr} {}

const void* TestHost::Service(void* self, const char* id) {
  auto* host = As<TestHost>(self);
  const std::string_view name = id;
  if (name == MK_SERVICE_LOG) return &host->log_;
  if (name == MK_SERVICE_FILES) return &host->files_;
  if (name == MK_SERVICE_WEIGHTS) return &host->weights_service_;
  return host->services_.Find(id);
}

void TestHost::SetError(void* self, const char* message, mk_u64 size) {
  As<TestHost>(self)->error_.assign(message, size);
}

void TestHost::WriteLog(void*, mk_i32 level, const char* message, mk_u64 size) {
  std::fprintf(stderr, "[pack log %d] %.*s\n", level, static_cast<int>(size), message);
}

mk_status TestHost::ReadFile(void* self, const char* name, const void** data, mk_u64* size_bytes) {
  const auto& files = As<TestHost>(self)->options_.small_files;
  const auto file = files.find(name);
  if (file == files.end()) return MK_NOT_FOUND;
  *data = file->second.data();
  *size_bytes = file->second.size();
  return MK_OK;
}

const char* TestHost::Parameter(void* self, const char* key) {
  const auto& parameters = As<TestHost>(self)->options_.parameters;
  const auto parameter = parameters.find(key);
  return parameter == parameters.end() ? nullptr : parameter->second.c_str();
}

mk_status TestHost::Allocate(void* self, mk_u64 size_bytes, void** data) {
  auto* host = As<TestHost>(self);
  if (size_bytes > host->options_.weights_limit_bytes - host->weights_bytes_) {
    host->error_ = "weights of " + std::to_string(size_bytes) + " bytes pass the declared " +
                   std::to_string(host->options_.weights_limit_bytes);
    return MK_RESOURCE_EXHAUSTED;
  }
  void* block = std::aligned_alloc(kAlignment, std::max(kAlignment, RoundUp(size_bytes)));
  if (block == nullptr) return MK_RESOURCE_EXHAUSTED;
  std::memset(block, 0, size_bytes);
  host->weights_.emplace_back(block);
  host->weights_bytes_ += size_bytes;
  *data = block;
  return MK_OK;
}

mk_status TestHost::Load(void* self, const char* file, mk_weight* weights, mk_u64 count) {
  auto* host = As<TestHost>(self);
  const auto entry = host->options_.weights_files.find(file);
  const int fd = entry == host->options_.weights_files.end()
                     ? -1
                     : open(entry->second.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    host->error_ = std::string("no weights file ") + file;
    return MK_NOT_FOUND;
  }
  WeightStreamOptions stream;
  stream.file_name = file;
  const absl::Status status = StreamWeights(fd, stream, absl::MakeSpan(weights, count));
  close(fd);
  host->error_ = std::string(status.message());
  return static_cast<mk_status>(status.code());
}

// ---- TestRun

TestRun::TestRun()
    : scratch_(static_cast<uint8_t*>(std::aligned_alloc(kAlignment, kScratchCapacityBytes))) {
  if (scratch_ == nullptr) std::abort();
  ASAN_POISON_MEMORY_REGION(scratch_, kScratchCapacityBytes);
}

TestRun::~TestRun() {
  ASAN_UNPOISON_MEMORY_REGION(scratch_, kScratchCapacityBytes);
  std::free(scratch_);
}

void TestRun::AddInput(const std::string& name, mk_dtype dtype, std::vector<int64_t> shape,
                       const void* data, uint64_t size_bytes) {
  inputs_.push_back(
      std::make_unique<Input>(Input{name, dtype, std::move(shape), "", data, size_bytes}));
}

void TestRun::AddBytesInput(const std::string& name, const std::string& content) {
  const auto length = static_cast<uint32_t>(content.size());
  std::string packed(reinterpret_cast<const char*>(&length), sizeof(length));
  packed += content;
  auto input =
      std::make_unique<Input>(Input{name, MK_DTYPE_BYTES, {1}, std::move(packed), nullptr, 0});
  input->data = input->packed.data();
  input->size_bytes = input->packed.size();
  inputs_.push_back(std::move(input));
}

void TestRun::ClearInputs() { inputs_.clear(); }

const mk_run* TestRun::table() {
  tensors_.clear();
  for (const auto& input : inputs_) {
    tensors_.push_back({input->name.c_str(), input->dtype, static_cast<mk_u32>(input->shape.size()),
                        input->shape.data(), input->data, input->size_bytes});
  }
  run_ = {};
  run_.struct_size = MK_RUN_SIZE_1_0;  // it launches nothing
  run_.input_count = static_cast<mk_u32>(tensors_.size());
  run_.self = this;
  run_.inputs = tensors_.data();
  run_.set_error = &SetError;
  run_.output = &MakeOutput;
  run_.scratch = &Scratch;
  run_.scratch_mark = &ScratchMark;
  run_.scratch_release = &ScratchRelease;
  run_.cancelled = [](void* self) -> mk_i32 { return As<TestRun>(self)->cancelled_ ? 1 : 0; };
  run_.parameter_int64 = [](void*, const char*, mk_i64*) -> mk_i32 { return 0; };
  run_.parameter_double = [](void*, const char*, double*) -> mk_i32 { return 0; };
  run_.parameter_bool = [](void*, const char*, mk_i32*) -> mk_i32 { return 0; };
  run_.parameter_string = [](void*, const char*, const char**, mk_u64*) -> mk_i32 { return 0; };
  run_.now_ns = [](void*) -> mk_u64 {
    return static_cast<mk_u64>(std::chrono::steady_clock::now().time_since_epoch().count());
  };
  return &run_;
}

void TestRun::SetError(void* self, const char* message, mk_u64 size) {
  As<TestRun>(self)->error_.assign(message, size);
}

mk_status TestRun::MakeOutput(void* self, const char* name, mk_dtype dtype, mk_u32 rank,
                              const mk_i64* shape, mk_u64 size_bytes, void** data) {
  Output& output = As<TestRun>(self)->outputs_[name];
  output.dtype = dtype;
  output.shape.assign(shape, shape + rank);
  output.bytes.resize(size_bytes);
  *data = output.bytes.data();
  return MK_OK;
}

mk_status TestRun::Scratch(void* self, mk_u64 size_bytes, void** data) {
  auto* run = As<TestRun>(self);
  const uint64_t size = RoundUp(size_bytes) + MK_SCRATCH_GAP_BYTES;
  if (size_bytes > run->scratch_limit_bytes_ || size > run->scratch_limit_bytes_ ||
      run->used_bytes_ > run->scratch_limit_bytes_ - size) {
    run->error_ = "scratch: asked " + std::to_string(size_bytes) + ", in use " +
                  std::to_string(run->used_bytes_) + ", limit " +
                  std::to_string(run->scratch_limit_bytes_);
    return MK_RESOURCE_EXHAUSTED;
  }
  uint8_t* block = run->scratch_ + run->used_bytes_;
  ASAN_UNPOISON_MEMORY_REGION(block, size_bytes);
  run->used_bytes_ += size;
  run->peak_bytes_ = std::max(run->peak_bytes_, run->used_bytes_);
  *data = block;
  return MK_OK;
}

mk_u64 TestRun::ScratchMark(void* self) { return As<TestRun>(self)->used_bytes_; }

void TestRun::ScratchRelease(void* self, mk_u64 mark) {
  auto* run = As<TestRun>(self);
  if (mark > run->used_bytes_) return;
  ASAN_POISON_MEMORY_REGION(run->scratch_ + mark, run->used_bytes_ - mark);
  run->used_bytes_ = mark;
}

// ---- TestContext

namespace {

Host OpenOrDie(const mk_host* table) {
  Result<Host> host = Host::Open(table);
  return *host;  // aborts with the message when there is none
}

TestHostOptions OptionsFor(int threads, const char* device) {
  TestHostOptions options;
  options.threads = threads;
  options.device = device;
  return options;
}

}  // namespace

TestContext::TestContext(int threads, const char* device)
    : host_(OptionsFor(threads, device)),
      services_(OpenOrDie(host_.table())),
      context_(std::make_unique<Context>(services_, *run_.table())) {}

}  // namespace mk::testing
