// Which of a pack's images runs on a device: tags decide the order, then the device itself.
#ifndef MERGEKERNEL_CORE_DEVICE_IMAGES_H_
#define MERGEKERNEL_CORE_DEVICE_IMAGES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/device/device.h"

namespace mk {

// "cubin sm_87 (driver 12.6 or newer)", for messages.
std::string ImageText(const mk_kernel_image& image);

struct ImageOrder {
  std::vector<size_t> candidates;    // indices, the best first
  std::vector<std::string> refused;  // of the others: image and reason
};

// Pure. A cubin fits exactly the SM it was made for (code of one SM is not promised to run on
// another, least of all between boards and desktops), PTX any GPU from its SM on; both need a
// driver that reads them. Emulated code fits the emulated device and, last, the planning one,
// which runs nothing. Machine code before text, then what needs the newest driver, then the
// highest SM, then the order given.
ImageOrder OrderImages(absl::Span<const mk_kernel_image> images, const DeviceFacts& facts);

struct LoadedImages {
  std::unique_ptr<Module> module;
  size_t image = 0;                // the index of the one taken
  std::vector<std::string> notes;  // why better ones were not: image and reason
};

// The first candidate that `device` takes. FAILED_PRECONDITION naming `name` and the reason per
// image when none is; another code at once when the device fails for a reason that no other image
// can mend (memory, a lost device). Blocks.
absl::StatusOr<LoadedImages> LoadImages(Device& device, const std::string& name,
                                        absl::Span<const mk_kernel_image> images);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_IMAGES_H_
