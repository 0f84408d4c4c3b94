#include "kernels/conv/patch_embed_f16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/conv/patch_embed_f16_kernels_emulated.h"
#include "kernels/conv/patch_embed_f16_kernels_images.h"
#include "kernels/conv/patch_embed_f16_shapes.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/op_context.h"

namespace mk {
namespace {

using device::half;
using testing::Generate;
using testing::ToFloats;
using testing::ToHalves;

class Case {
 public:
  explicit Case(const PatchEmbedF16Shape& s)
      : shape_(s),
        patches_(s.height / s.patch * (s.width / s.patch)),
        kernels_(*PatchEmbedF16Kernels::Load(context_.host(),
                                             context_.Module(mk_emulated_patch_embed_f16_kernels,
                                                             mk_images_patch_embed_f16_kernels))),
        x_(ToHalves(Generate("x", 1, s.height * s.width * s.in_channels, -1, 1))),
        weight_(ToHalves(Generate("w", 1, K() * s.out_channels, -1, 1))),
        positions_(ToHalves(Generate("p", 1, patches_ * s.out_channels, -1, 1))),
        bias_(Generate("b", 1, s.out_channels, -1, 1)),
        x_device_(&context_.memory(), "x", x_),
        weight_device_(&context_.memory(), "weight", weight_),
        positions_device_(&context_.memory(), "positions", positions_),
        bias_device_(&context_.memory(), "bias", bias_),
        y_device_(&context_.memory(), "y", positions_.size()) {
    x_device_.Freeze();
    weight_device_.Freeze();
    positions_device_.Freeze();
    bias_device_.Freeze();
  }

  PatchEmbedF16Params Params() const {
    PatchEmbedF16Params p = Sizes();
    p.x = x_device_.device();
    p.weight = weight_device_.device();
    p.epilogue.bias = bias_device_.device();
    p.epilogue.residual = positions_device_.device();
    p.epilogue.y = y_device_.device();
    return p;
  }

  emu::LaunchFunction Launch() {
    return context_.LaunchFunction([this] {
      y_device_.Reset();
      return PatchEmbedF16(*context_, kernels_, Params());
    });
  }
  emu::OutputFunction Outputs() { return testing::BytesOf(y_device_); }

  std::vector<float> Twin() const {
    std::vector<half> y(positions_.size());
    PatchEmbedF16Params p = Sizes();
    p.x = x_.data();
    p.weight = weight_.data();
    p.epilogue.bias = bias_.data();
    p.epilogue.residual = positions_.data();
    p.epilogue.y = y.data();
    PatchEmbedF16Cpu(p);
    return ToFloats(y);
  }

  ::testing::AssertionResult IsRight() const {
    const std::vector<float> want = Twin();
    const double terms = static_cast<double>(K()) + 2;
    return testing::IsNear(
        ToFloats(y_device_.Host()), std::vector<double>(want.begin(), want.end()),
        terms * std::sqrt(terms) * 0x1p-24 + 2e-6, 0x1p-10, {patches_, shape_.out_channels});
  }

  // The formula with its own index arithmetic, in double.
  std::vector<double> Formula() const {
    const std::vector<float> x = ToFloats(x_), w = ToFloats(weight_), r = ToFloats(positions_);
    std::vector<double> y;
    for (int64_t i = 0; i < shape_.height / shape_.patch; ++i) {
      for (int64_t j = 0; j < shape_.width / shape_.patch; ++j) {
        for (int64_t o = 0; o < shape_.out_channels; ++o) {
          y.push_back(At(x, w, i, j, o) + bias_[static_cast<size_t>(o)] + r[y.size()]);
        }
      }
    }
    return y;
  }

  testing::OpContext& context() { return context_; }
  const PatchEmbedF16Kernels& kernels() const { return kernels_; }

 private:
  double At(const std::vector<float>& x, const std::vector<float>& w, int64_t i, int64_t j,
            int64_t o) const {
    const int64_t side = shape_.patch, ci = shape_.in_channels;
    double sum = 0;
    for (int64_t u = 0; u < side; ++u) {
      for (int64_t v = 0; v < side; ++v) {
        for (int64_t c = 0; c < ci; ++c) {
          const int64_t at = ((i * side + u) * shape_.width + j * side + v) * ci + c;
          sum += static_cast<double>(x[static_cast<size_t>(at)]) *
                 w[static_cast<size_t>(((o * side + u) * side + v) * ci + c)];
        }
      }
    }
    return sum;
  }
  int64_t K() const { return shape_.patch * shape_.patch * shape_.in_channels; }
  PatchEmbedF16Params Sizes() const {
    PatchEmbedF16Params p = {};
    p.height = shape_.height, p.width = shape_.width, p.patch = shape_.patch;
    p.in_channels = shape_.in_channels, p.out_channels = shape_.out_channels;
    return p;
  }

  const PatchEmbedF16Shape shape_;
  const int64_t patches_;
  testing::OpContext context_;
  PatchEmbedF16Kernels kernels_;
  std::vector<half> x_, weight_, positions_;
  std::vector<float> bias_;
  emu::DeviceArray<half> x_device_, weight_device_, positions_device_;
  emu::DeviceArray<float> bias_device_;
  emu::DeviceArray<half> y_device_;
};

TEST(PatchEmbedF16Twin, EqualsTheFormula) {
  for (const PatchEmbedF16Shape& shape : kPatchEmbedF16Shapes) {
    const Case c(shape);
    EXPECT_TRUE(testing::IsNear(c.Twin(), c.Formula(), 1e-7, 0x1p-11)) << shape.name;
  }
}

TEST(PatchEmbedF16, EqualsTheTwinUnderEverySchedule) {
  for (const PatchEmbedF16Shape& shape : kPatchEmbedF16Shapes) {
    Case c(shape);
    const emu::SweepResult sweep = emu::Sweep(c.Launch(), c.Outputs());
    ASSERT_TRUE(sweep.ok) << shape.name << ": " << sweep.text;
    EXPECT_TRUE(c.IsRight()) << shape.name;
    EXPECT_EQ(c.context().launches()[0].kernel, shape.patch * shape.in_channels % 8 == 0
                                                    ? "mk_patch_embed_f16_64x64"
                                                    : "mk_patch_embed_f16_any");
  }
}

TEST(PatchEmbedF16, NeedsEveryBarrierAndWait) {
  MK_ON_EMULATOR_ALONE();
  // Five stages' worth of k: one is filled again, and the last lies where the sums go.
  Case c({"mutants", 8, 8, 10, 72, 4});
  const std::vector<emu::Mutant> mutants = emu::MutateSyncs(c.Launch(), c.Outputs());
  EXPECT_EQ(mutants.size(), 4u);
  EXPECT_EQ(testing::Survivors(mutants), std::vector<std::string>());
}

TEST(PatchEmbedF16, ReadsEachPixelOncePerTileOfChannels) {
  MK_ON_EMULATOR_ALONE();
  Case c({"traffic", 128, 128, 3, 128, 16});
  const emu::Report report = c.Launch()({});
  ASSERT_TRUE(report.ok()) << report.Text();
  EXPECT_EQ(report.counts.async_copies * 16, 2u * (128 * 128 * 3 * 2 + 768 * 128));
  EXPECT_EQ(report.counts.bank_conflicts(), 0u) << report.counts.Text();
  EXPECT_EQ(report.counts.mma_flops, c.context().launches()[0].cost.tensor_flops);
}

TEST(PatchEmbedF16, RefusesEachBrokenPrecondition) {
  Case c({"refused", 8, 8, 2, 3, 4});
  const auto message = [&](auto change) {
    PatchEmbedF16Params p = c.Params();
    change(p);
    const Status status = PatchEmbedF16(*c.context(), c.kernels(), p);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = PatchEmbedF16Params;
  RowStats stats;
  float sums;
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "PatchEmbedF16: x is null");
  EXPECT_EQ(message([](P& p) { p.weight = nullptr; }), "PatchEmbedF16: weight is null");
  EXPECT_EQ(message([](P& p) { p.height = 0; }), "PatchEmbedF16: height 0 not in 1..16777216");
  EXPECT_EQ(message([](P& p) { p.width = 1 << 25; }),
            "PatchEmbedF16: width 33554432 not in 1..16777216");
  EXPECT_EQ(message([](P& p) { p.in_channels = 65; }),
            "PatchEmbedF16: in_channels 65 not in 1..64");
  EXPECT_EQ(message([](P& p) { p.out_channels = 0; }),
            "PatchEmbedF16: out_channels 0 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.patch = 65; }), "PatchEmbedF16: patch 65 not in 1..64");
  EXPECT_EQ(message([](P& p) { p.height = 9; }),
            "PatchEmbedF16: height 9 is not a multiple of patch 4");
  EXPECT_EQ(message([](P& p) { p.width = 10; }),
            "PatchEmbedF16: width 10 is not a multiple of patch 4");
  EXPECT_EQ(message([](P& p) { p.height = p.width = 1 << 24; }),
            "PatchEmbedF16: x of 281474976710656 x 2 elements > 1099511627776");
  EXPECT_EQ(message([](P& p) { p.height = 1 << 24, p.width = 1 << 12, p.patch = 1; }),
            "PatchEmbedF16: patches 68719476736 not in 1..1073741824");
  EXPECT_EQ(message([](P& p) { p.epilogue.y = nullptr; }),
            "PatchEmbedF16: neither of y and y_fp32 given");
  EXPECT_EQ(message([](P& p) { p.epilogue.y = const_cast<half*>(p.x); }), "PatchEmbedF16: y is x");
  EXPECT_EQ(message([&](P& p) {
              p.epilogue.norm_stats = &stats, p.epilogue.norm_sums = &sums;
              p.epilogue.norm_columns = p.epilogue.norm_groups = 1;
            }),
            "PatchEmbedF16: a norm before patches is not folded");
}

TEST(PatchEmbedF16, CostCountsOperandsOnce) {
  Case c({"cost", 4, 8, 2, 3, 4});
  const LaunchCost cost = PatchEmbedF16Cost(c.Params());
  EXPECT_EQ(cost.tensor_flops, 2u * 2 * 3 * 32);
  EXPECT_EQ(cost.flops, (2u + 1) * 2 * 3);
  EXPECT_EQ(cost.bytes, 2u * (4 * 8 * 2 + 32 * 3 + 2 * 3 + 2 * 3) + 4 * 3);
}

}  // namespace
}  // namespace mk
