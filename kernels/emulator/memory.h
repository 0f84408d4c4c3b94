// The device memory that kernels see: buffers with exact bounds, and which of their bytes were ever
// written.
#ifndef MERGEKERNEL_KERNELS_EMULATOR_MEMORY_H_
#define MERGEKERNEL_KERNELS_EMULATOR_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device/emulated.h"
#include "kernels/emulator/race.h"

namespace mk {
namespace emu {

struct Buffer {
  std::string name;
  char* host = nullptr;
  uint64_t bytes = 0;
  bool read_only = false;
  std::vector<uint8_t> written;   // per byte; empty: all of it counts as written
  std::unique_ptr<char[]> owned;  // of Allocate
  RaceShadow shadow;
  // Per sector, of the launch that has this number: bit 0 loaded, bit 1 stored.
  std::vector<uint8_t> sectors;
  uint64_t sectors_launch = 0;
};

// Device addresses are tagged (see kernels/device/emulated.h): the host cannot follow them by
// accident. Not thread-safe; must not change during a launch.
class DeviceMemory {
 public:
  // `bytes` (> 0) of new memory, filled with 0xff (NaN in every floating-point type) and not yet
  // written, 256-byte aligned. The name appears in reports.
  void* Allocate(uint64_t bytes, const std::string& name);

  // Lets kernels see the host's memory [host, host + bytes), which stays the caller's and must
  // outlive it here. It counts as written unless `uninitialised`. REQUIRES that it overlaps no
  // buffer. Returns the device address, which is the same for the same host address: an allocator
  // may adopt each piece of a chunk as it hands it out.
  void* Adopt(void* host, uint64_t bytes, const std::string& name, bool read_only = false,
              bool uninitialised = false);

  // Ends a buffer. REQUIRES `device` is what Allocate or Adopt returned.
  void Free(void* device);

  // REQUIRES `device` is what Allocate or Adopt returned. Reset: filled with 0xff and not yet
  // written, as after Allocate. Freeze: kernels may not store into it any more.
  void Reset(void* device);
  void Freeze(void* device);

  // REQUIRES [device, device + bytes) lies in one buffer.
  void CopyIn(void* device, const void* host, uint64_t bytes);
  void CopyOut(void* host, const void* device, uint64_t bytes);

  // All of them, by address: for who carries them elsewhere and back. Until the next change.
  std::vector<Buffer*> Buffers();

  // The buffer that holds `address`, or null. `Nearest` names what is close to an address that
  // nobody holds.
  Buffer* Find(uint64_t host_address);
  std::string Nearest(uint64_t host_address) const;

  uint64_t bytes() const { return bytes_; }

  static void* HostAddress(const void* device);
  static void* DeviceAddress(const void* host);

 private:
  std::map<uint64_t, Buffer> buffers_;  // by host address
  Buffer* last_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace emu
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_EMULATOR_MEMORY_H_
