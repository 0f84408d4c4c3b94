#include "core/device/cuda/chunk_pool.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace mk {
namespace {

uint64_t Rounded(uint64_t size_bytes) {
  return (size_bytes + kDeviceAlign - 1) / kDeviceAlign * kDeviceAlign;
}

// The lowest place for `size` bytes in the chunk, or nothing.
bool Carve(ChunkPool::Chunk& chunk, uint64_t size, uint64_t* offset) {
  for (auto hole = chunk.free.begin(); hole != chunk.free.end(); ++hole) {
    if (hole->second < size) continue;
    *offset = hole->first;
    const uint64_t left = hole->second - size;
    chunk.free.erase(hole);
    if (left != 0) chunk.free.emplace(*offset + size, left);
    return true;
  }
  return false;
}

void Return(ChunkPool::Chunk& chunk, uint64_t offset, uint64_t size) {
  auto hole = chunk.free.emplace(offset, size).first;
  const auto after = std::next(hole);
  if (after != chunk.free.end() && hole->first + hole->second == after->first) {
    hole->second += after->second;
    chunk.free.erase(after);
  }
  if (hole == chunk.free.begin()) return;
  const auto before = std::prev(hole);
  if (before->first + before->second == hole->first) {
    before->second += hole->second;
    chunk.free.erase(hole);
  }
}

}  // namespace

ChunkPool::~ChunkPool() {
  MutexLock lock(mutex_);
  if (chunks_.empty()) return;
  std::fprintf(stderr, "ChunkPool: ends with %zu chunks in use\n", chunks_.size());
  std::abort();
}

absl::StatusOr<ChunkPool::Piece> ChunkPool::Take(uint64_t size_bytes) {
  MutexLock lock(mutex_);
  // Judged by hand before the sums below, which cannot overflow then.
  if (size_bytes > kMostChunkBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "device memory: ", size_bytes, " bytes asked; one buffer takes at most ", kMostChunkBytes));
  }
  const uint64_t rounded = Rounded(std::max<uint64_t>(size_bytes, 1));
  uint64_t offset = 0;
  for (Chunk& chunk : chunks_) {
    if (Carve(chunk, rounded, &offset)) return Piece{&chunk, chunk.address + offset, size_bytes};
  }
  MK_ASSIGN_OR_RETURN(Chunk * chunk, NewChunk(rounded));
  Carve(*chunk, rounded, &offset);
  return Piece{chunk, chunk->address + offset, size_bytes};
}

absl::StatusOr<ChunkPool::Chunk*> ChunkPool::NewChunk(uint64_t rounded) {
  const uint64_t left = budget_bytes_ - std::min(budget_bytes_, taken_bytes_);
  if (rounded > left) {
    return absl::ResourceExhaustedError(absl::StrCat("device memory: ", rounded,
                                                     " bytes asked with ", taken_bytes_, " of ",
                                                     budget_bytes_, " in use"));
  }
  const uint64_t available = available_();
  if (available != 0 && rounded > available) {
    return absl::ResourceExhaustedError(
        absl::StrCat("device memory: ", rounded, " bytes asked, the system has ", available));
  }
  uint64_t size = rounded;
  if (rounded < kSharedChunkBytes / 2) {
    size = std::min(kSharedChunkBytes, left / kDeviceAlign * kDeviceAlign);
    if (available != 0 && size > available) size = rounded;
    size = std::max(size, rounded);
  }
  Chunk chunk;
  chunk.size_bytes = size;
  const absl::Status status =
      MK_CUDA(context_, MemAlloc, &chunk.address, static_cast<size_t>(size));
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("device memory: ", size, " bytes asked with ", taken_bytes_,
                                     " of ", budget_bytes_, " in use: ", status.message()));
  }
  taken_bytes_ += size;
  chunk.free.emplace(0, size);
  chunks_.push_back(std::move(chunk));
  chunks_.back().self = std::prev(chunks_.end());
  return &chunks_.back();
}

void ChunkPool::GiveBack(const Piece& piece) {
  MutexLock lock(mutex_);
  Chunk& chunk = *piece.chunk;
  Return(chunk, piece.address - chunk.address, Rounded(std::max<uint64_t>(piece.size_bytes, 1)));
  if (chunk.free.size() != 1 || chunk.free.begin()->second != chunk.size_bytes) return;
  // Under the lock, so that nobody is told of room that the driver has not yet got back.
  MK_CUDA_RELEASE(context_, MemFree, chunk.address);
  taken_bytes_ -= chunk.size_bytes;
  chunks_.erase(chunk.self);
}

uint64_t ChunkPool::taken_bytes() const {
  MutexLock lock(mutex_);
  return taken_bytes_;
}

}  // namespace mk
