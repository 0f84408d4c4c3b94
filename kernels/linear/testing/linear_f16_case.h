// Operands of LinearF16 on the emulator beside the twin's on the host, for its tests.
#ifndef MERGEKERNEL_KERNELS_LINEAR_TESTING_LINEAR_F16_CASE_H_
#define MERGEKERNEL_KERNELS_LINEAR_TESTING_LINEAR_F16_CASE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device/convert.h"
#include "kernels/linear/linear_f16.h"
#include "kernels/linear/linear_f16_kernels_emulated.h"
#include "kernels/linear/linear_f16_kernels_images.h"
#include "kernels/linear/linear_f16_shapes.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/op_context.h"

namespace mk::testing {

// What a case has beside x and W.
struct LinearF16Options {
  bool bias = true, residual = false, in_place = false, fp32 = false, y_stats = false;
  Activation activation = Activation::kNone;
  float scale = 1.0f;
  int64_t x_offset = 0;  // elements that x begins past an aligned address,
  int64_t y_offset = 0;  // and y and the residual
};

class LinearF16Case {
 public:
  using half = device::half;

  LinearF16Case(const LinearF16Shape& shape, const LinearF16Options& options = {})
      : shape_(shape),
        options_(options),
        kernels_(*LinearF16Kernels::Load(
            context_.host(),
            context_.Module(mk_emulated_linear_f16_kernels, mk_images_linear_f16_kernels))),
        x_(ToHalves(Values("x", options.x_offset + shape.m * shape.k))),
        weight_(ToHalves(Values("w", shape.n * shape.k))),
        bias_(Values("b", shape.n)),
        residual_(ToHalves(Values("r", options.y_offset + shape.m * shape.n))),
        x_device_(&context_.memory(), "x", x_),
        weight_device_(&context_.memory(), "weight", weight_),
        bias_device_(&context_.memory(), "bias", bias_),
        residual_device_(&context_.memory(), "residual", residual_),
        y_device_(&context_.memory(), "y", residual_.size()),
        y_fp32_device_(&context_.memory(), "y_fp32", residual_.size()),
        stats_device_(&context_.memory(), "y_stats", StatsCount()) {
    x_device_.Freeze();
    weight_device_.Freeze();
    bias_device_.Freeze();
    residual_device_.Freeze();
  }

  LinearF16Params Params() const {
    LinearF16Params p = Sizes();
    p.x = x_device_.device() + options_.x_offset;
    p.weight = weight_device_.device();
    EpilogueF16& e = p.epilogue;
    if (options_.bias) e.bias = bias_device_.device();
    if (options_.residual) e.residual = residual_device_.device() + options_.y_offset;
    if (options_.fp32) e.y_fp32 = y_fp32_device_.device() + options_.y_offset;
    if (!options_.fp32) e.y = y_device_.device() + options_.y_offset;
    if (options_.in_place) e.residual = e.y;
    if (options_.y_stats) e.y_stats = stats_device_.device();
    return p;
  }

  // The op, as Sweep wants it. `tile`: kTileCountF16 leaves the choice to the op.
  emu::LaunchFunction Launch(TileIndexF16 tile = kTileCountF16) {
    return context_.LaunchFunction([this, tile] {
      y_device_.Reset();
      y_fp32_device_.Reset();
      stats_device_.Reset();
      if (options_.in_place) y_device_.Set(residual_);
      return tile == kTileCountF16 ? LinearF16(*context_, kernels_, Params())
                                   : LinearF16WithTile(*context_, kernels_, Params(), tile);
    });
  }
  emu::OutputFunction Outputs() {
    return [this] {
      return BytesOf(y_device_)() + BytesOf(y_fp32_device_)() + BytesOf(stats_device_)();
    };
  }

  std::vector<float> Got() const {
    return FromOffset(options_.fp32 ? y_fp32_device_.Host() : ToFloats(y_device_.Host()));
  }
  std::vector<RowStats> GotStats() const { return stats_device_.Host(); }

  // The twin's.
  std::vector<float> Want(std::vector<RowStats>* stats = nullptr) const {
    std::vector<half> y = residual_;
    std::vector<float> y_fp32(y.size());
    std::vector<RowStats> row_stats(StatsCount());
    LinearF16Params p = Sizes();
    p.x = x_.data() + options_.x_offset;
    p.weight = weight_.data();
    EpilogueF16& e = p.epilogue;
    if (options_.bias) e.bias = bias_.data();
    if (options_.residual) e.residual = residual_.data() + options_.y_offset;
    if (options_.fp32) e.y_fp32 = y_fp32.data() + options_.y_offset;
    if (!options_.fp32) e.y = y.data() + options_.y_offset;
    if (options_.in_place) e.residual = e.y;
    if (options_.y_stats) e.y_stats = row_stats.data();
    LinearF16Cpu(p);
    if (stats != nullptr) *stats = row_stats;
    return FromOffset(options_.fp32 ? y_fp32 : ToFloats(y));
  }

  // |operands| <= 1: a sum of k products in fp32 is off by at most k^2 / 2 half-ulps of 1, and much
  // less in practice; activations have a slope below 1.13. On top the rounding to fp16, which may
  // go to the other side.
  ::testing::AssertionResult IsRight() const {
    const std::vector<float> got = Got(), want = Want();
    const double k = static_cast<double>(shape_.k) + 2;
    const double absolute = 1.2 * std::fabs(options_.scale) * k * std::sqrt(k) * 0x1p-24 + 2e-6;
    for (size_t i = 0; i < got.size(); ++i) {
      const double bound = absolute + (options_.fp32 ? 0x1p-22 : 0x1p-10) * std::fabs(want[i]);
      if (!(std::fabs(got[i] - want[i]) <= bound)) {
        return ::testing::AssertionFailure()
               << shape_.name << ": y[" << i / static_cast<size_t>(shape_.n) << ", "
               << i % static_cast<size_t>(shape_.n) << "] is " << got[i] << ", not " << want[i]
               << " within " << bound;
      }
    }
    return ::testing::AssertionSuccess();
  }

  OpContext& context() { return context_; }
  const LinearF16Kernels& kernels() const { return kernels_; }
  std::vector<half>& x() { return x_; }
  void UploadX() { x_device_.Set(x_); }
  void UploadWeight() { weight_device_.Set(weight_); }
  std::vector<half>& weight() { return weight_; }

 private:
  std::vector<float> Values(const char* name, int64_t count) const {
    return Generate(std::string(shape_.name) + "/" + name, 1, count, -1, 1);
  }
  std::vector<float> FromOffset(std::vector<float> values) const {
    values.erase(values.begin(), values.begin() + options_.y_offset);
    return values;
  }
  LinearF16Params Sizes() const {
    LinearF16Params p = {};
    p.m = shape_.m, p.n = shape_.n, p.k = shape_.k;
    p.epilogue.activation = options_.activation;
    p.epilogue.scale = options_.scale;
    return p;
  }
  size_t StatsCount() const {
    return static_cast<size_t>(shape_.m * CeilDiv(shape_.n, int64_t{kStatsGroup}));
  }

  const LinearF16Shape shape_;
  const LinearF16Options options_;
  OpContext context_;
  LinearF16Kernels kernels_;
  std::vector<half> x_, weight_;
  std::vector<float> bias_;
  std::vector<half> residual_;
  emu::DeviceArray<half> x_device_, weight_device_;
  emu::DeviceArray<float> bias_device_;
  emu::DeviceArray<half> residual_device_, y_device_;
  emu::DeviceArray<float> y_fp32_device_;
  emu::DeviceArray<RowStats> stats_device_;
};

}  // namespace mk::testing

#endif  // MERGEKERNEL_KERNELS_LINEAR_TESTING_LINEAR_F16_CASE_H_
