#include "kernels/emulator/memory.h"

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

namespace mk {
namespace emu {
namespace {

constexpr uint64_t kAlignment = 256;
constexpr int kPoison = 0xff;

uint64_t Number(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace

void* DeviceMemory::HostAddress(const void* device) {
  return reinterpret_cast<void*>(Number(device) & ~kTagMask);
}
void* DeviceMemory::DeviceAddress(const void* host) {
  return reinterpret_cast<void*>(Number(host) | kGlobalTag);
}

void* DeviceMemory::Allocate(uint64_t bytes, const std::string& name) {
  auto owned = std::make_unique<char[]>(bytes + kAlignment);
  char* host = owned.get() + (kAlignment - Number(owned.get()) % kAlignment) % kAlignment;
  std::memset(host, kPoison, bytes);
  void* device = Adopt(host, bytes, name, false, true);
  buffers_[Number(host)].owned = std::move(owned);
  return device;
}

void* DeviceMemory::Adopt(void* host, uint64_t bytes, const std::string& name, bool read_only,
                          bool uninitialised) {
  Buffer& buffer = buffers_[Number(host)];
  buffer.name = name;
  buffer.host = static_cast<char*>(host);
  buffer.bytes = bytes;
  buffer.read_only = read_only;
  buffer.written.assign(uninitialised ? bytes : 0, 0);
  buffer.shadow.Clear();
  bytes_ += bytes;
  return DeviceAddress(host);
}

void DeviceMemory::Free(void* device) {
  const auto it = buffers_.find(Number(HostAddress(device)));
  if (it == buffers_.end()) std::abort();  // freed twice, or never handed out
  bytes_ -= it->second.bytes;
  last_ = nullptr;
  buffers_.erase(it);
}

void DeviceMemory::Reset(void* device) {
  Buffer& buffer = buffers_.at(Number(HostAddress(device)));
  std::memset(buffer.host, kPoison, buffer.bytes);
  buffer.written.assign(buffer.bytes, 0);
  buffer.shadow.Clear();
}

void DeviceMemory::Freeze(void* device) {
  buffers_.at(Number(HostAddress(device))).read_only = true;
}

void DeviceMemory::CopyIn(void* device, const void* host, uint64_t bytes) {
  if (bytes == 0) return;
  char* to = static_cast<char*>(HostAddress(device));
  Buffer* buffer = Find(Number(to));
  if (buffer == nullptr || bytes > buffer->bytes - static_cast<uint64_t>(to - buffer->host))
    std::abort();
  std::memcpy(to, host, bytes);
  if (!buffer->written.empty())
    std::memset(&buffer->written[static_cast<size_t>(to - buffer->host)], 1, bytes);
}

void DeviceMemory::CopyOut(void* host, const void* device, uint64_t bytes) {
  if (bytes == 0) return;
  const char* from = static_cast<const char*>(HostAddress(device));
  const Buffer* buffer = Find(Number(from));
  if (buffer == nullptr || bytes > buffer->bytes - static_cast<uint64_t>(from - buffer->host))
    std::abort();
  std::memcpy(host, from, bytes);
}

std::vector<Buffer*> DeviceMemory::Buffers() {
  std::vector<Buffer*> buffers;
  for (auto& [address, buffer] : buffers_) buffers.push_back(&buffer);
  return buffers;
}

Buffer* DeviceMemory::Find(uint64_t address) {
  if (last_ != nullptr && address - Number(last_->host) < last_->bytes) return last_;
  auto after = buffers_.upper_bound(address);
  if (after == buffers_.begin()) return nullptr;
  Buffer* buffer = &(--after)->second;
  if (address - Number(buffer->host) >= buffer->bytes) return nullptr;
  return last_ = buffer;
}

std::string DeviceMemory::Nearest(uint64_t address) const {
  const auto after = buffers_.upper_bound(address);
  std::string text = "no buffer is near";
  uint64_t best = uint64_t{1} << 20;
  if (after != buffers_.begin()) {
    const Buffer& b = std::prev(after)->second;
    const uint64_t past = address - (Number(b.host) + b.bytes);
    if (past < best) {
      best = past;
      text = std::to_string(past) + " bytes past the end of " + b.name + " of " +
             std::to_string(b.bytes) + " bytes";
    }
  }
  if (after != buffers_.end() && after->first - address < best) {
    text = std::to_string(after->first - address) + " bytes before " + after->second.name;
  }
  return text;
}

}  // namespace emu
}  // namespace mk
