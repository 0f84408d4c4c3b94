#include "packs/vmamba/preprocess.h"

#include <algorithm>
#include <string>

#include "kernels/image/resize_normalize.h"

namespace mk::vmamba {
namespace {

Status CheckSide(const char* name, int64_t side) {
  if (side >= 1 && side <= kMaxImageSide) return Ok();
  return InvalidArgument(std::string("vmamba: image ") + name + " " + std::to_string(side) +
                         " not in 1.." + std::to_string(kMaxImageSide));
}

Status CheckImage(const ImageSize& image) {
  MK_TRY(CheckSide("height", image.height));
  MK_TRY(CheckSide("width", image.width));
  if (image.height * image.width > kMaxImagePixels) {
    return InvalidArgument("vmamba: image of " + std::to_string(image.height) + " x " +
                           std::to_string(image.width) + " pixels > " +
                           std::to_string(kMaxImagePixels));
  }
  if (image.channels != 1 && image.channels != 3) {
    return InvalidArgument("vmamba: image channels " + std::to_string(image.channels) +
                           " is neither 1 nor 3 (the shape is height, width, channels)");
  }
  return Ok();
}

Status CheckMultiple(const char* name, int64_t side, int64_t multiple) {
  if (side % multiple == 0) return Ok();
  return InvalidArgument(std::string("vmamba: input ") + name + " " + std::to_string(side) +
                         " is no multiple of " + std::to_string(multiple));
}

}  // namespace

Result<PreparePlan> PlanPreparation(const Description& description, const ImageSize& image) {
  MK_TRY(CheckImage(image));
  const Preprocessing& p = description.preprocessing;
  PreparePlan plan;
  plan.image = image;
  const int64_t shorter = std::min(image.height, image.width);
  const int64_t resize = p.resize != 0 ? p.resize : shorter;
  plan.resized_height = image.height * resize / shorter;
  plan.resized_width = image.width * resize / shorter;
  plan.crop_height = p.crop != 0 ? p.crop : plan.resized_height;
  plan.crop_width = p.crop != 0 ? p.crop : plan.resized_width;
  if (std::min(plan.resized_height, plan.resized_width) < p.crop) {
    return InvalidArgument("vmamba: image of " + std::to_string(image.height) + " x " +
                           std::to_string(image.width) + " is smaller than the crop " +
                           std::to_string(p.crop));
  }
  plan.crop_top = (plan.resized_height - plan.crop_height) / 2;
  plan.crop_left = (plan.resized_width - plan.crop_width) / 2;
  plan.out_height = plan.crop_height + 2 * p.pad;
  plan.out_width = plan.crop_width + 2 * p.pad;
  MK_TRY(CheckMultiple("height", plan.out_height, description.SideMultiple()));
  MK_TRY(CheckMultiple("width", plan.out_width, description.SideMultiple()));
  if (plan.out_height * plan.out_width > p.max_input_pixels) {
    return InvalidArgument("vmamba: input of " + std::to_string(plan.out_height) + " x " +
                           std::to_string(plan.out_width) +
                           " pixels passes preprocess.max_input_pixels " +
                           std::to_string(p.max_input_pixels));
  }
  return plan;
}

Status Prepare(Context& context, const Preprocessing& preprocessing, const PreparePlan& plan,
               const uint8_t* pixels, float* input) {
  ResizeNormalizeParams params = {};
  params.image = pixels;
  params.y = input;
  SetResize(preprocessing, plan, params);
  return ResizeNormalize(context, params);
}

}  // namespace mk::vmamba
