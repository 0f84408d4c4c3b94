// SHA-256 beside the copy: digests the buffers that one thread fills on a thread of its own.
#ifndef MERGEKERNEL_SERVER_IMPORT_HASH_THREAD_H_
#define MERGEKERNEL_SERVER_IMPORT_HASH_THREAD_H_

#include <cstddef>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/weights/sha256.h"

namespace mk {

// Used by one thread. Holds `kBuffers` buffers of kBufferBytes, and nothing that grows.
class HashThread {
 public:
  static constexpr size_t kBufferBytes = 4 << 20;
  static constexpr size_t kBuffers = 4;

  HashThread();
  ~HashThread();  // waits for what was submitted
  HashThread(const HashThread&) = delete;
  HashThread& operator=(const HashThread&) = delete;

  // A buffer to fill; blocks until one is free. The caller's until Submit.
  char* Acquire();
  // The first `size` bytes of the buffer acquired last are the next of the digest. They may still
  // be read (and not written) until the next Acquire.
  void Submit(size_t size);
  std::string HexDigest();  // waits; once, at the end

 private:
  struct Piece {
    size_t buffer = 0;
    size_t size = 0;
  };
  void Run();
  void Stop();

  std::vector<std::vector<char>> buffers_;
  size_t next_ = 0;  // the buffer acquired last is the one before
  Mutex mutex_;
  CondVar changed_;
  std::deque<Piece> pieces_ MK_GUARDED_BY(mutex_);  // submitted; the front one is being read
  bool ended_ MK_GUARDED_BY(mutex_) = false;
  Sha256 hash_;  // the thread's until it is joined
  std::thread thread_;
};

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_IMPORT_HASH_THREAD_H_
