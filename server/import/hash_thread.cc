#include "server/import/hash_thread.h"

#include <string_view>

namespace mk {

HashThread::HashThread() : buffers_(kBuffers) {
  for (std::vector<char>& buffer : buffers_) buffer.resize(kBufferBytes);
  thread_ = std::thread([this] { Run(); });
}

HashThread::~HashThread() { Stop(); }

char* HashThread::Acquire() {
  const MutexLock lock(mutex_);
  // Buffers are taken in a ring, so one fewer than there are may wait: the one acquired last is
  // still its filler's to read.
  while (pieces_.size() + 1 >= kBuffers) changed_.Wait(mutex_);
  char* buffer = buffers_[next_].data();
  next_ = (next_ + 1) % kBuffers;
  return buffer;
}

void HashThread::Submit(size_t size) {
  const MutexLock lock(mutex_);
  pieces_.push_back({(next_ + kBuffers - 1) % kBuffers, size});
  changed_.NotifyAll();
}

std::string HashThread::HexDigest() {
  Stop();
  return hash_.HexDigest();
}

void HashThread::Stop() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void HashThread::Run() {
  for (;;) {
    Piece piece;
    {
      const MutexLock lock(mutex_);
      while (pieces_.empty() && !ended_) changed_.Wait(mutex_);
      if (pieces_.empty()) return;
      piece = pieces_.front();
    }
    hash_.Update(std::string_view(buffers_[piece.buffer].data(), piece.size));
    const MutexLock lock(mutex_);
    pieces_.pop_front();
    changed_.NotifyAll();
  }
}

}  // namespace mk
