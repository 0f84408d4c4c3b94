#include "kernels/linear/feed_forward_f16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/linear/feed_forward_f16_kernels_emulated.h"
#include "kernels/linear/feed_forward_f16_kernels_images.h"
#include "kernels/linear/feed_forward_f16_shapes.h"
#include "kernels/linear/linear_f16_kernels_emulated.h"
#include "kernels/linear/linear_f16_kernels_images.h"
#include "kernels/linear/norm_fold.h"
#include "kernels/linear/row_stats_f16_kernels_emulated.h"
#include "kernels/linear/row_stats_f16_kernels_images.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/op_context.h"

namespace mk {
namespace {

using device::half;
using testing::Generate;
using testing::ToFloats;
using testing::ToHalves;
using Form = FeedForwardF16Form;

class Case {
 public:
  explicit Case(const FeedForwardF16Shape& s, float offset = 0)
      : shape_(s),
        linear_(*LinearF16Kernels::Load(
            context_.host(),
            context_.Module(mk_emulated_linear_f16_kernels, mk_images_linear_f16_kernels))),
        row_stats_(*RowStatsF16Kernels::Load(
            context_.host(),
            context_.Module(mk_emulated_row_stats_f16_kernels, mk_images_row_stats_f16_kernels))),
        kernels_(*FeedForwardF16Kernels::Load(context_.host(),
                                              context_.Module(mk_emulated_feed_forward_f16_kernels,
                                                              mk_images_feed_forward_f16_kernels),
                                              linear_, row_stats_)),
        weight1_(Uniform("w1", s.hidden * s.channels, s.channels)),
        gamma_(Generate("gamma", 1, s.channels, 0.5f, 1.5f)),
        beta_(Generate("beta", 1, s.channels, -1, 1)),
        bias1_(Generate("b1", 1, s.hidden, -1, 1)),
        bias2_(Generate("b2", 1, s.channels, -1, 1)),
        weight2_(ToHalves(Uniform("w2", s.hidden * s.channels, s.hidden))),
        folded_(weight1_.size()),
        sums_(bias1_.size()),
        folded_bias_(bias1_.size()),
        x_(ToHalves(Generate("x", 1, s.rows * s.channels, offset - 1, offset + 1))),
        folded_device_(&context_.memory(), "weight1", Fold()),
        sums_device_(&context_.memory(), "sums1", sums_),
        bias1_device_(&context_.memory(), "bias1", folded_bias_),
        weight2_device_(&context_.memory(), "weight2", weight2_),
        bias2_device_(&context_.memory(), "bias2", bias2_),
        x_device_(&context_.memory(), "x", x_),
        stats_device_(&context_.memory(), "x_stats", StatsCount()) {
    folded_device_.Freeze();
    sums_device_.Freeze();
    bias1_device_.Freeze();
    weight2_device_.Freeze();
    bias2_device_.Freeze();
  }

  FeedForwardF16Params Params() const {
    return {folded_device_.device(),
            sums_device_.device(),
            bias1_device_.device(),
            weight2_device_.device(),
            bias2_device_.device(),
            x_device_.device(),
            stats_device_.device(),
            shape_.rows,
            shape_.channels,
            shape_.hidden,
            1e-5f,
            Activation::kGelu};
  }

  emu::LaunchFunction Launch(Form form) {
    return context_.LaunchFunction([this, form] {
      x_device_.Set(x_);
      stats_device_.Reset();
      return FeedForwardF16As(*context_, kernels_, Params(), form);
    });
  }
  emu::OutputFunction Outputs() {
    return [this] { return testing::BytesOf(x_device_)() + testing::BytesOf(stats_device_)(); };
  }
  std::vector<float> Got() const { return ToFloats(x_device_.Host()); }

  std::vector<float> Twin(std::vector<RowStats>* stats = nullptr) const {
    std::vector<half> x = x_;
    std::vector<RowStats> row_stats(StatsCount());
    FeedForwardF16Params p = Params();
    p.weight1 = folded_.data(), p.sums1 = sums_.data(), p.bias1 = folded_bias_.data();
    p.weight2 = weight2_.data(), p.bias2 = bias2_.data();
    p.x = x.data(), p.x_stats = row_stats.data();
    FeedForwardF16Cpu(p);
    if (stats != nullptr) *stats = row_stats;
    return ToFloats(x);
  }

  // The block as a paper has it, in double, with the weights before they are folded.
  std::vector<double> Formula() const {
    const std::vector<float> x = ToFloats(x_), w2 = ToFloats(weight2_);
    const auto c = static_cast<size_t>(shape_.channels), h = static_cast<size_t>(shape_.hidden);
    std::vector<double> y(x.begin(), x.end());
    for (size_t i = 0; i < static_cast<size_t>(shape_.rows); ++i) {
      double mean = 0, m2 = 0;
      for (size_t p = 0; p < c; ++p) mean += x[i * c + p] / static_cast<double>(c);
      for (size_t p = 0; p < c; ++p) m2 += (x[i * c + p] - mean) * (x[i * c + p] - mean);
      const double rstd = 1 / std::sqrt(m2 / static_cast<double>(c) + 1e-5);
      for (size_t j = 0; j < h; ++j) {
        double v = bias1_[j];
        for (size_t p = 0; p < c; ++p) {
          v += weight1_[j * c + p] * ((x[i * c + p] - mean) * rstd * gamma_[p] + beta_[p]);
        }
        v = 0.5 * v * std::erfc(-v * std::sqrt(0.5));
        for (size_t p = 0; p < c; ++p) y[i * c + p] += v * w2[p * h + j];
      }
      for (size_t p = 0; p < c; ++p) y[i * c + p] += bias2_[p];
    }
    return y;
  }

  testing::OpContext& context() { return context_; }
  const FeedForwardF16Kernels& kernels() const { return kernels_; }
  std::vector<half>& x() { return x_; }
  std::vector<RowStats> GotStats() const { return stats_device_.Host(); }

 private:
  static std::vector<float> Uniform(const char* name, int64_t count, int64_t fan_in) {
    const float a = std::sqrt(3.0f / static_cast<float>(fan_in));
    return Generate(name, 1, count, -a, a);
  }
  std::vector<half> Fold() {
    FoldNorm({weight1_.data(), bias1_.data(), gamma_.data(), beta_.data(), shape_.hidden,
              shape_.channels},
             {folded_.data(), sums_.data(), folded_bias_.data()});
    return folded_;
  }
  size_t StatsCount() const {
    return static_cast<size_t>(shape_.rows * CeilDiv(shape_.channels, int64_t{kStatsGroup}));
  }

  const FeedForwardF16Shape shape_;
  testing::OpContext context_;
  LinearF16Kernels linear_;
  RowStatsF16Kernels row_stats_;
  FeedForwardF16Kernels kernels_;
  std::vector<float> weight1_, gamma_, beta_, bias1_, bias2_;
  std::vector<half> weight2_, folded_;
  std::vector<float> sums_, folded_bias_;
  std::vector<half> x_;
  emu::DeviceArray<half> folded_device_;
  emu::DeviceArray<float> sums_device_, bias1_device_;
  emu::DeviceArray<half> weight2_device_;
  emu::DeviceArray<float> bias2_device_;
  emu::DeviceArray<half> x_device_;
  emu::DeviceArray<RowStats> stats_device_;
};

// Values are around 1. Rounded to fp16 are the weights (the formula's first layer is not), the
// normalised row, the hidden layer and the result, each by at most 2^-11 of itself: the first three
// average out over channels and hidden units.
::testing::AssertionResult IsRight(const Case& c) {
  const std::vector<float> twin = c.Twin();
  const auto against_twin =
      testing::IsNear(c.Got(), std::vector<double>(twin.begin(), twin.end()), 3e-3, 0x1p-10);
  if (!against_twin) return against_twin;
  return testing::IsNearRelL2(c.Got(), c.Formula(), 1e-3);
}

void ExpectRightUnderEverySchedule(const FeedForwardF16Shape& shape, Form form) {
  Case c(shape);
  const emu::SweepResult sweep = emu::Sweep(c.Launch(form), c.Outputs());
  ASSERT_TRUE(sweep.ok) << shape.name << ": " << sweep.text;
  EXPECT_TRUE(IsRight(c)) << shape.name;
  std::vector<RowStats> want;
  c.Twin(&want);
  const std::vector<RowStats> got = c.GotStats();
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i].mean, want[i].mean, 2e-3) << shape.name;
    EXPECT_NEAR(got[i].m2, want[i].m2, 0.02 * want[i].m2 + 1e-3) << shape.name;
  }
}

TEST(FeedForwardF16, EveryFormIsRightUnderEverySchedule) {
  for (const FeedForwardF16Shape& shape : kFeedForwardF16Shapes96) {
    for (const Form form : {Form::kFused96, Form::kFused192, Form::kSeparate}) {
      ExpectRightUnderEverySchedule(shape, form);
    }
  }
  for (const FeedForwardF16Shape& shape : kFeedForwardF16Shapes192) {
    ExpectRightUnderEverySchedule(shape, Form::kFused192);
  }
  for (const FeedForwardF16Shape& shape : kFeedForwardF16AnyShapes) {
    ExpectRightUnderEverySchedule(shape, Form::kSeparate);
  }
}

TEST(FeedForwardF16, NeedsEveryBarrierAndWait) {
  MK_ON_EMULATOR_ALONE();
  for (const Form form : {Form::kFused96, Form::kFused192}) {
    Case c({"mutants", 70, 96, 160});
    const std::vector<emu::Mutant> mutants = emu::MutateSyncs(c.Launch(form), c.Outputs());
    EXPECT_EQ(mutants.size(), 5u);
    EXPECT_EQ(testing::Survivors(mutants), std::vector<std::string>());
  }
}

TEST(FeedForwardF16, MovesXOnceAndWeightsPerBlock) {
  MK_ON_EMULATOR_ALONE();
  for (const auto& [form, rows, channels] :
       {std::tuple{Form::kFused96, 256, 96}, {Form::kFused192, 128, 192}}) {
    Case c({"traffic", rows, channels, 128});
    const emu::Report report = c.Launch(form)({});
    ASSERT_TRUE(report.ok()) << report.Text();
    const auto x = static_cast<uint64_t>(2 * rows * channels);
    const auto weights = static_cast<uint64_t>(2 * 2 * 128 * channels);
    EXPECT_EQ(report.counts.async_copies * 16, x + 2 * weights);
    EXPECT_EQ(report.counts.bank_conflicts(), 0u) << report.counts.Text();
    EXPECT_EQ(report.counts.mma_flops, c.context().launches()[0].cost.tensor_flops);
    const auto stats = static_cast<uint64_t>(rows * channels / kStatsGroup) * 8;
    EXPECT_EQ(report.counts.global_stores.bytes, x + stats);
    // As kernels/linear/BUILD tells the static gates.
    EXPECT_EQ(c.context().launches()[0].shared_bytes, form == Form::kFused96 ? 61440u : 73728u);
    EXPECT_EQ(c.context().scratch_peak_bytes(), 0u);
  }
}

TEST(FeedForwardF16, StandsLargeMeans) {
  // x is 64 +- 1, so its own rounding is 2^-6 wide; what is compared sees the same x.
  for (const Form form : {Form::kFused96, Form::kSeparate}) {
    Case c({"means", 20, 96, 64}, 64.0f);
    ASSERT_TRUE(c.Launch(form)({}).ok());
    EXPECT_TRUE(testing::IsNearRelL2(c.Got(), c.Formula(), 3e-4));
  }
}

TEST(FeedForwardF16, AConstantRowIsFiniteHoweverLarge) {
  // Its variance is 0, so rstd is 316, and mean rstd passes what fp16 holds.
  for (const Form form : {Form::kFused96, Form::kFused192}) {
    Case c({"constant", 3, 40, 48});
    for (half& v : c.x()) v = ToHalves({2000.0f})[0];
    ASSERT_TRUE(c.Launch(form)({}).ok());
    EXPECT_TRUE(testing::IsNearRelL2(c.Got(), c.Formula(), 1e-3));
  }
}

TEST(FeedForwardF16, CarriesNanToItsRowOnly) {
  for (const Form form : {Form::kFused96, Form::kFused192, Form::kSeparate}) {
    Case c({"nan", 40, 40, 48});
    c.x()[17 * 40 + 3].bits = 0x7e00;
    ASSERT_TRUE(c.Launch(form)({}).ok());
    const std::vector<float> y = c.Got();
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 40 == 17) << i;
  }
}

TEST(FeedForwardF16, TakesTheFormThatFits) {
  Case c({"form", 1, 8, 8});
  const auto form = [&](int64_t rows, int64_t channels, int64_t hidden, mk_i32 sms) {
    FeedForwardF16Params p = c.Params();
    p.rows = rows, p.channels = channels, p.hidden = hidden;
    return ChooseFeedForwardF16(p, sms);
  };
  EXPECT_EQ(form(3136, 96, 384, 16), Form::kFused96);
  EXPECT_EQ(form(784, 192, 768, 16), Form::kSeparate);  // 13 blocks
  EXPECT_EQ(form(784, 192, 768, 8), Form::kFused192);
  EXPECT_EQ(form(4096, 192, 768, 16), Form::kFused192);
  EXPECT_EQ(form(1 << 20, 384, 1536, 16), Form::kSeparate);
  EXPECT_EQ(form(1 << 20, 12, 48, 16), Form::kSeparate);
  EXPECT_EQ(form(1 << 20, 96, 380, 16), Form::kSeparate);
  FeedForwardF16Params p = c.Params();
  p.rows = 1 << 20;
  p.x += 1;
  EXPECT_EQ(ChooseFeedForwardF16(p, 16), Form::kSeparate);
}

TEST(FeedForwardF16, TakesTheScratchThatItSays) {
  Case c({"scratch", 64, 12, 48});
  ASSERT_TRUE(FeedForwardF16(*c.context(), c.kernels(), c.Params()).ok());
  EXPECT_EQ(c.context().scratch_used_bytes(), 0u);
  EXPECT_EQ(int64_t(c.context().scratch_peak_bytes()),
            FeedForwardF16ScratchBytes(c.Params(), Form::kSeparate));
  EXPECT_EQ(c.context().launches().size(), 3u);
}

TEST(FeedForwardF16Twin, EqualsTheFormula) {
  for (const FeedForwardF16Shape& shape : kFeedForwardF16Shapes96) {
    const Case c(shape);
    EXPECT_TRUE(testing::IsNearRelL2(c.Twin(), c.Formula(), 1e-3)) << shape.name;
  }
}

TEST(FeedForwardF16, RefusesEachBrokenPrecondition) {
  Case c({"refused", 2, 4, 8});
  const auto message = [&](auto change) {
    FeedForwardF16Params p = c.Params();
    change(p);
    const Status status = FeedForwardF16(*c.context(), c.kernels(), p);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = FeedForwardF16Params;
  EXPECT_EQ(message([](P& p) { p.weight1 = nullptr; }), "FeedForwardF16: weight1 is null");
  EXPECT_EQ(message([](P& p) { p.sums1 = nullptr; }), "FeedForwardF16: sums1 is null");
  EXPECT_EQ(message([](P& p) { p.bias1 = nullptr; }), "FeedForwardF16: bias1 is null");
  EXPECT_EQ(message([](P& p) { p.weight2 = nullptr; }), "FeedForwardF16: weight2 is null");
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "FeedForwardF16: x is null");
  EXPECT_EQ(message([](P& p) { p.rows = 0; }), "FeedForwardF16: rows 0 not in 1..1073741824");
  EXPECT_EQ(message([](P& p) { p.channels = -1; }),
            "FeedForwardF16: channels -1 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.hidden = 1 << 21; }),
            "FeedForwardF16: hidden 2097152 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.rows = 1 << 30, p.hidden = 1 << 20; }),
            "FeedForwardF16: the hidden layer of 1073741824 x 1048576 elements > 1099511627776");
  EXPECT_EQ(message([](P& p) { p.activation = static_cast<Activation>(5); }),
            "FeedForwardF16: activation 5 is unknown");
  EXPECT_EQ(message([](P& p) { p.epsilon = -1; }),
            "FeedForwardF16: epsilon -1.000000 is not positive");
  EXPECT_EQ(FeedForwardF16As(*c.context(), c.kernels(), c.Params(), Form::kFused96).message(),
            "FeedForwardF16: 4 channels and 8 hidden do not go into the kernel for 96");
  EXPECT_TRUE(c.context().launches().empty());
}

TEST(FeedForwardF16, CostCountsOperandsOnce) {
  Case c({"cost", 2, 8, 16});
  const LaunchCost cost = FeedForwardF16Cost(c.Params());
  EXPECT_EQ(cost.tensor_flops, 4u * 2 * 8 * 16);
  EXPECT_EQ(cost.flops, 8u * 2 * 8 + (2 + 5) * 2 * 16);
  EXPECT_EQ(cost.bytes, 4u * 2 * 8 + 2 * (2 * 8 * 16) + 4 * 16 + 4 * 8 + 8 * 2);
}

}  // namespace
}  // namespace mk
