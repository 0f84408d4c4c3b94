#include "core/device/images.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mk {
namespace {

std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

// Why `image` is not for this device; empty when it is.
std::string WhyNot(const mk_kernel_image& image, const DeviceFacts& facts) {
  if (image.data == nullptr || image.size_bytes == 0) return "it is empty";
  const int sm = static_cast<int>(std::min<mk_u32>(image.sm, 1'000'000));
  const int driver = static_cast<int>(std::min<mk_u32>(image.least_driver, 1'000'000));
  const bool emulated = facts.kind == "emulated";
  const bool planning = facts.kind == "planning";  // runs nothing, so it takes what there is
  switch (image.kind) {
    case MK_IMAGE_EMULATED:
      return emulated || planning ? "" : absl::StrCat("the device is ", facts.kind);
    case MK_IMAGE_CUBIN:
      if (!emulated && sm != facts.sm) return absl::StrCat("the device is sm_", facts.sm);
      break;
    case MK_IMAGE_PTX:
      if (!emulated && sm > facts.sm) return absl::StrCat("the device is sm_", facts.sm);
      break;
    default:
      return "its kind is unknown to this host";
  }
  if (emulated) return "the device is emulated";
  if (driver > facts.driver_version) {
    return absl::StrCat("the driver is ", VersionText(facts.driver_version));
  }
  return "";
}

}  // namespace

std::string ImageText(const mk_kernel_image& image) {
  const std::string driver =
      image.least_driver == 0
          ? ""
          : absl::StrCat(" (driver ", VersionText(static_cast<int>(image.least_driver)),
                         " or newer)");
  switch (image.kind) {
    case MK_IMAGE_CUBIN:
      return absl::StrCat("cubin sm_", image.sm, driver);
    case MK_IMAGE_PTX:
      return absl::StrCat("PTX compute_", image.sm, driver);
    case MK_IMAGE_EMULATED:
      return "emulated module";
    default:
      return absl::StrCat("image of kind ", image.kind);
  }
}

ImageOrder OrderImages(absl::Span<const mk_kernel_image> images, const DeviceFacts& facts) {
  ImageOrder order;
  for (size_t i = 0; i < images.size(); ++i) {
    const std::string why = WhyNot(images[i], facts);
    if (why.empty()) {
      order.candidates.push_back(i);
    } else {
      order.refused.push_back(absl::StrCat(ImageText(images[i]), ": ", why));
    }
  }
  const auto rank = [&images](size_t i) {
    const mk_kernel_image& image = images[i];
    return std::make_tuple(image.kind == MK_IMAGE_CUBIN ? 1 : 0, image.least_driver, image.sm);
  };
  std::stable_sort(order.candidates.begin(), order.candidates.end(),
                   [&rank](size_t a, size_t b) { return rank(a) > rank(b); });
  return order;
}

absl::StatusOr<LoadedImages> LoadImages(Device& device, const std::string& name,
                                        absl::Span<const mk_kernel_image> images) {
  const ImageOrder order = OrderImages(images, device.facts());
  LoadedImages loaded;
  loaded.notes = order.refused;
  for (const size_t i : order.candidates) {
    absl::StatusOr<std::unique_ptr<Module>> module = device.LoadModule(images[i]);
    if (module.ok()) {
      loaded.module = *std::move(module);
      loaded.image = i;
      return loaded;
    }
    const absl::Status& status = module.status();
    const std::string note = absl::StrCat(ImageText(images[i]), ": ", status.message());
    if (status.code() != absl::StatusCode::kInvalidArgument) {
      return absl::Status(status.code(), absl::StrCat("module '", name, "': ", note));
    }
    loaded.notes.push_back(note);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("module '", name, "': none of its ", images.size(), " images runs here",
                   loaded.notes.empty() ? "" : ": ", absl::StrJoin(loaded.notes, "; ")));
}

}  // namespace mk
