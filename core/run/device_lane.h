// What one lane holds of a device with memory of its own: its stream, and the graphs of its runs.
#ifndef MERGEKERNEL_CORE_RUN_DEVICE_LANE_H_
#define MERGEKERNEL_CORE_RUN_DEVICE_LANE_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "core/abi/mk_pack.h"
#include "core/base/status_macros.h"
#include "core/device/device.h"
#include "core/run/run_graphs.h"

namespace mk {

// How many graphs a lane keeps. One per resolution and bucket of objects is what models here need.
inline constexpr size_t kMostGraphs = 8;

// One thread at a time. Ends before the modules and the scratch that its graphs name.
class DeviceLane {
 public:
  // Null on a device whose memory the host can address: there the pack works on the request's own
  // bytes. `capture` false: every run by its launches.
  static absl::StatusOr<std::unique_ptr<DeviceLane>> Create(Device& device, bool capture) {
    if (device.facts().host_addressable) return std::unique_ptr<DeviceLane>();
    MK_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device.NewStream());
    return std::unique_ptr<DeviceLane>(
        new DeviceLane(device, std::move(stream), capture ? kMostGraphs : 0));
  }

  Device& device() { return device_; }
  Stream& stream() { return *stream_; }
  RunGraphs& graphs() { return graphs_; }

 private:
  DeviceLane(Device& device, std::unique_ptr<Stream> stream, size_t most_graphs)
      : device_(device), graphs_(most_graphs), stream_(std::move(stream)) {}

  Device& device_;
  RunGraphs graphs_;
  // Destroyed first: it waits for what is under way.
  const std::unique_ptr<Stream> stream_;
};

// Whether the pack lets its runs be captured: what its extension "mk.capture/1" says.
inline bool AllowsCapture(const mk_pack& pack) {
  if (pack.extension == nullptr) return true;
  const auto* table =
      static_cast<const mk_capture_extension*>(pack.extension(MK_EXTENSION_CAPTURE));
  return table == nullptr || table->struct_size < sizeof(mk_capture_extension) ||
         table->capture != MK_CAPTURE_NEVER;
}

}  // namespace mk

#endif  // MERGEKERNEL_CORE_RUN_DEVICE_LANE_H_
