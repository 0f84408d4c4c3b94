// A host and a run as kernels and packs see them, for their tests and benches: the real threads,
// SGEMM and image decoding of core/device, weights streamed by core/weights, and a scratch arena
// that, under AddressSanitizer, poisons the gap behind each block.
#ifndef MERGEKERNEL_KERNELS_TESTING_TEST_CONTEXT_H_
#define MERGEKERNEL_KERNELS_TESTING_TEST_CONTEXT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/abi/mk_pack.h"
#include "core/device/host_services.h"
#include "core/sdk/context.h"

namespace mk::testing {

struct TestHostOptions {
  int threads = 1;
  const char* device = "cpu";
  std::map<std::string, std::string> parameters;     // of the manifest
  std::map<std::string, std::string> weights_files;  // name -> path
  std::map<std::string, std::string> small_files;    // name -> content
  uint64_t weights_limit_bytes = UINT64_MAX;         // as a manifest would declare it
};

// The services of one model. One thread at a time, like the tables it serves.
class TestHost {
 public:
  explicit TestHost(TestHostOptions options);
  TestHost(const TestHost&) = delete;
  TestHost& operator=(const TestHost&) = delete;

  const mk_host* table() const { return &host_; }
  uint64_t weights_bytes() const { return weights_bytes_; }
  uint64_t allocations() const { return weights_.size(); }
  // The last message of the host or the pack.
  const std::string& error() const { return error_; }

 private:
  struct Free {
    void operator()(void* p) const;
  };

  static const void* Service(void* self, const char* id);
  static void SetError(void* self, const char* message, mk_u64 size);
  static void WriteLog(void* self, mk_i32 level, const char* message, mk_u64 size);
  static mk_status ReadFile(void* self, const char* name, const void** data, mk_u64* size_bytes);
  static const char* Parameter(void* self, const char* key);
  static mk_status Allocate(void* self, mk_u64 size_bytes, void** data);
  static mk_status Load(void* self, const char* file, mk_weight* weights, mk_u64 count);

  const TestHostOptions options_;
  HostServices services_;
  std::vector<std::unique_ptr<void, Free>> weights_;
  uint64_t weights_bytes_ = 0;
  std::string error_;
  mk_host host_;
  mk_log_service log_;
  mk_files_service files_;
  mk_weights_service weights_service_;
};

// One request's run: inputs lent by the caller, outputs kept here, scratch that counts its peak.
class TestRun {
 public:
  static constexpr uint64_t kScratchCapacityBytes = uint64_t{256} << 20;

  struct Output {
    mk_dtype dtype;
    std::vector<int64_t> shape;
    std::vector<uint8_t> bytes;
  };

  TestRun();
  TestRun(const TestRun&) = delete;
  TestRun& operator=(const TestRun&) = delete;
  ~TestRun();

  // `data` stays the caller's and outlives the run.
  void AddInput(const std::string& name, mk_dtype dtype, std::vector<int64_t> shape,
                const void* data, uint64_t size_bytes);
  // A BYTES input of one element, packed here.
  void AddBytesInput(const std::string& name, const std::string& content);
  void ClearInputs();
  void set_cancelled(bool cancelled) { cancelled_ = cancelled; }
  void set_scratch_limit_bytes(uint64_t limit) { scratch_limit_bytes_ = limit; }

  const mk_run* table();
  const std::map<std::string, Output>& outputs() const { return outputs_; }
  uint64_t scratch_used_bytes() const { return used_bytes_; }
  uint64_t scratch_peak_bytes() const { return peak_bytes_; }
  const std::string& error() const { return error_; }

 private:
  struct Input {
    std::string name;
    mk_dtype dtype;
    std::vector<int64_t> shape;
    std::string packed;
    const void* data;
    uint64_t size_bytes;
  };

  static void SetError(void* self, const char* message, mk_u64 size);
  static mk_status MakeOutput(void* self, const char* name, mk_dtype dtype, mk_u32 rank,
                              const mk_i64* shape, mk_u64 size_bytes, void** data);
  static mk_status Scratch(void* self, mk_u64 size_bytes, void** data);
  static mk_u64 ScratchMark(void* self);
  static void ScratchRelease(void* self, mk_u64 mark);

  std::vector<std::unique_ptr<Input>> inputs_;
  std::vector<mk_tensor> tensors_;
  std::map<std::string, Output> outputs_;
  uint8_t* scratch_;
  uint64_t scratch_limit_bytes_ = kScratchCapacityBytes;
  uint64_t used_bytes_ = 0;
  uint64_t peak_bytes_ = 0;
  bool cancelled_ = false;
  std::string error_;
  mk_run run_;
};

// Host, run and Context in one, for tests of single ops.
class TestContext {
 public:
  explicit TestContext(int threads = 1, const char* device = "cpu");

  Context& operator*() { return *context_; }
  Context* operator->() { return context_.get(); }
  TestRun& run() { return run_; }

 private:
  TestHost host_;
  TestRun run_;
  Host services_;
  std::unique_ptr<Context> context_;
};

}  // namespace mk::testing

#endif  // MERGEKERNEL_KERNELS_TESTING_TEST_CONTEXT_H_
