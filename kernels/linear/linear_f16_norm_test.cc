// LayerNorm folded into the product behind it, against the plain form: LN, then the product.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/linear/norm_fold.h"
#include "kernels/linear/row_stats_f16.h"
#include "kernels/linear/row_stats_f16_kernels_emulated.h"
#include "kernels/linear/row_stats_f16_kernels_images.h"
#include "kernels/linear/testing/linear_f16_case.h"

namespace mk {
namespace {

using device::half;
using testing::Generate;
using testing::ToFloats;
using testing::ToHalves;

constexpr double kEpsilon = 1e-5;

// Weights of a norm and of the linear layer behind it, folded; x with `offset` added to each row,
// more from row to row.
struct Folded {
  Folded(int64_t rows, int64_t outputs, int64_t inputs, float offset)
      : m(rows),
        n(outputs),
        k(inputs),
        weight(Generate("weight", 1, n * k, -1, 1)),
        gamma(Generate("gamma", 1, k, 0.5f, 1.5f)),
        beta(Generate("beta", 1, k, -1, 1)),
        bias(Generate("bias", 1, n, -1, 1)),
        weight16(weight.size()),
        sums(bias.size()),
        folded_bias(bias.size()) {
    std::vector<float> values = Generate("x", 1, m * k, -1, 1);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t c = 0; c < k; ++c) {
        values[static_cast<size_t>(i * k + c)] += offset * (1.0f + 0.1f * static_cast<float>(i));
      }
    }
    x = ToHalves(values);
    FoldNorm({weight.data(), bias.data(), gamma.data(), beta.data(), n, k},
             {weight16.data(), sums.data(), folded_bias.data()});
  }

  // LN(x) W^T + b in double, of x as stored, with W' as stored: what rounding W to fp16 costs is
  // not the fold's.
  std::vector<double> Plain() const {
    const std::vector<float> xs = ToFloats(x), ws = ToFloats(weight16);
    std::vector<double> y;
    for (int64_t i = 0; i < m; ++i) {
      const float* row = &xs[static_cast<size_t>(i * k)];
      double mean = 0, m2 = 0;
      for (int64_t c = 0; c < k; ++c) mean += row[c];
      mean /= static_cast<double>(k);
      for (int64_t c = 0; c < k; ++c) m2 += (row[c] - mean) * (row[c] - mean);
      const double rstd = 1 / std::sqrt(m2 / static_cast<double>(k) + kEpsilon);
      for (int64_t j = 0; j < n; ++j) {
        double sum = bias[static_cast<size_t>(j)];
        for (int64_t c = 0; c < k; ++c) {
          sum += (row[c] - mean) * rstd * ws[static_cast<size_t>(j * k + c)] +
                 static_cast<double>(beta[static_cast<size_t>(c)]) *
                     weight[static_cast<size_t>(j * k + c)];
        }
        y.push_back(sum);
      }
    }
    return y;
  }

  const int64_t m, n, k;
  const std::vector<float> weight, gamma, beta, bias;
  std::vector<half> x, weight16;
  std::vector<float> sums, folded_bias;
};

// The device's y in fp32, with statistics from RowStatsF16.
class FoldedOnDevice {
 public:
  explicit FoldedOnDevice(const Folded& f)
      : f_(f),
        linear_(*LinearF16Kernels::Load(
            context_.host(),
            context_.Module(mk_emulated_linear_f16_kernels, mk_images_linear_f16_kernels))),
        stats_kernels_(*RowStatsF16Kernels::Load(
            context_.host(),
            context_.Module(mk_emulated_row_stats_f16_kernels, mk_images_row_stats_f16_kernels))),
        x_(&context_.memory(), "x", f.x),
        weight_(&context_.memory(), "weight", f.weight16),
        sums_(&context_.memory(), "sums", f.sums),
        bias_(&context_.memory(), "bias", f.folded_bias),
        stats_(&context_.memory(), "stats", static_cast<uint64_t>(f.m)),
        y_(&context_.memory(), "y", static_cast<uint64_t>(f.m * f.n)) {}

  emu::LaunchFunction Launch() {
    return context_.LaunchFunction([this]() -> Status {
      stats_.Reset();
      y_.Reset();
      MK_TRY(RowStatsF16(*context_, stats_kernels_, {x_.device(), stats_.device(), f_.m, f_.k}));
      return LinearF16(*context_, linear_, Params());
    });
  }
  emu::OutputFunction Outputs() { return testing::BytesOf(y_); }
  std::vector<float> y() const { return y_.Host(); }
  std::vector<RowStats> stats() const { return stats_.Host(); }

 private:
  LinearF16Params Params() const {
    LinearF16Params p = {x_.device(), weight_.device(), f_.m, f_.n, f_.k, {}};
    p.epilogue.bias = bias_.device();
    p.epilogue.y_fp32 = y_.device();
    p.epilogue.norm_stats = stats_.device();
    p.epilogue.norm_sums = sums_.device();
    p.epilogue.norm_columns = f_.k;
    p.epilogue.norm_groups = 1;
    return p;
  }

  const Folded& f_;
  testing::OpContext context_;
  LinearF16Kernels linear_;
  RowStatsF16Kernels stats_kernels_;
  emu::DeviceArray<half> x_, weight_;
  emu::DeviceArray<float> sums_, bias_;
  emu::DeviceArray<RowStats> stats_;
  emu::DeviceArray<float> y_;
};

double RelL2(const std::vector<float>& got, const std::vector<double>& want) {
  double error = 0, size = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  return std::sqrt(error / size);
}

TEST(NormFold, EqualsThePlainFormUnderEverySchedule) {
  for (const auto& [m, n, k] : {std::tuple{1, 8, 8}, {37, 40, 96}, {9, 13, 12}, {5, 7, 301}}) {
    const Folded f(m, n, k, 0.0f);
    FoldedOnDevice device(f);
    const emu::SweepResult sweep = emu::Sweep(device.Launch(), device.Outputs());
    ASSERT_TRUE(sweep.ok) << sweep.text;
    EXPECT_LT(RelL2(device.y(), f.Plain()), 2e-6) << m << " x " << n << " x " << k;
  }
}

TEST(NormFold, StandsLargeMeans) {
  // Means of 10 and 300 times the deviation. The plain form would lose |mean| 2^-12 per element to
  // the rounding of x; the fold may lose |mean| sqrt(k) 2^-24 on top, here in fp32 output.
  for (const auto& [offset, bound] : {std::pair{6.0f, 2e-5}, {170.0f, 5e-4}}) {
    const Folded f(20, 48, 192, offset);
    FoldedOnDevice device(f);
    ASSERT_TRUE(device.Launch()({}).ok());
    EXPECT_LT(RelL2(device.y(), f.Plain()), bound) << offset;
  }
}

TEST(NormFold, AConstantRowGivesTheBias) {
  Folded f(3, 16, 64, 0.0f);
  for (half& v : f.x) v = ToHalves({100.0f})[0];
  FoldedOnDevice device(f);
  ASSERT_TRUE(device.Launch()({}).ok());
  // The variance is 0, so rstd is 1 / sqrt(epsilon) = 316, and what the sums leave is multiplied by
  // it: |mean| sum |W'| 2^-24 * 316.
  const std::vector<float> y = device.y();
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], f.folded_bias[i % 16], 0.07) << i;
}

TEST(RowStatsF16, EqualsTheTwinAndMovesWhatItSays) {
  for (const auto& [rows, channels] : {std::pair{1, 1}, {9, 31}, {17, 96}, {8, 768}, {3, 1025}}) {
    const Folded f(rows, 1, channels, 3.0f);
    FoldedOnDevice device(f);
    ASSERT_TRUE(device.Launch()({}).ok());
    std::vector<RowStats> want(static_cast<size_t>(rows));
    RowStatsF16Cpu({f.x.data(), want.data(), rows, channels});
    const std::vector<RowStats> got = device.stats();
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i].mean, want[i].mean, 1e-6 * std::fabs(want[i].mean));
      EXPECT_NEAR(got[i].m2, want[i].m2, 1e-5 * want[i].m2 + 1e-9);
    }
  }
}

TEST(RowStatsF16, MovesWhatItSays) {
  MK_ON_EMULATOR_ALONE();
  testing::OpContext context;
  const RowStatsF16Kernels kernels = *RowStatsF16Kernels::Load(
      context.host(),
      context.Module(mk_emulated_row_stats_f16_kernels, mk_images_row_stats_f16_kernels));
  emu::DeviceArray<half> x(&context.memory(), "x", ToHalves(Generate("x", 1, 16 * 256, -1, 1)));
  emu::DeviceArray<RowStats> stats(&context.memory(), "stats", 16);
  ASSERT_TRUE(RowStatsF16(*context, kernels, {x.device(), stats.device(), 16, 256}).ok());
  const emu::Report report = context.MergedReport();
  EXPECT_EQ(report.counts.global_bytes(), 2u * (2 * 16 * 256) + 8 * 16);
  EXPECT_EQ(report.counts.global_loads.units, report.counts.global_loads.ideal);
  EXPECT_EQ(report.counts.barriers, 0u);
}

TEST(RowStatsF16, RefusesEachBrokenPrecondition) {
  half x = {};
  RowStats stats;
  const auto message = [](const RowStatsF16Params& p) { return CheckRowStatsF16(p).message(); };
  EXPECT_EQ(message({nullptr, &stats, 1, 1}), "RowStatsF16: x is null");
  EXPECT_EQ(message({&x, nullptr, 1, 1}), "RowStatsF16: stats is null");
  EXPECT_EQ(message({&x, &stats, 0, 1}), "RowStatsF16: rows 0 not in 1..1073741824");
  EXPECT_EQ(message({&x, &stats, 1, 1 << 21}), "RowStatsF16: channels 2097152 not in 1..1048576");
  EXPECT_EQ(message({&x, &stats, 1 << 30, 1 << 20}),
            "RowStatsF16: x of 1073741824 x 1048576 elements > 1099511627776");
}

// One linear layer leaves statistics by groups of 32 columns, the next takes them.
TEST(NormFold, StatisticsFromTheProducersEpilogueGiveTheSame) {
  for (const int64_t width : {32, 96, 100}) {
    testing::LinearF16Options options;
    options.y_stats = true;
    testing::LinearF16Case producer({"producer", 37, width, 40}, options);
    ASSERT_TRUE(producer.Launch()({}).ok());
    std::vector<RowStats> want;
    producer.Want(&want);
    const std::vector<RowStats> got = producer.GotStats();
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i].mean, want[i].mean, 1e-3);
      EXPECT_NEAR(got[i].m2, want[i].m2, 2e-3 * want[i].m2);
    }

    // Both forms of statistics, of the values as stored, in one product.
    Folded f(37, 24, width, 0.0f);
    f.x = ToHalves(producer.Got());
    FoldedOnDevice whole(f);
    ASSERT_TRUE(whole.Launch()({}).ok());
    testing::OpContext& context = producer.context();
    emu::DeviceArray<half> x(&context.memory(), "x", f.x), w(&context.memory(), "w", f.weight16);
    emu::DeviceArray<float> sums(&context.memory(), "sums", f.sums),
        bias(&context.memory(), "bias", f.folded_bias), y(&context.memory(), "y", 37 * 24);
    emu::DeviceArray<RowStats> stats(&context.memory(), "stats", got);
    LinearF16Params p = {x.device(), w.device(), f.m, f.n, f.k, {}};
    p.epilogue.bias = bias.device();
    p.epilogue.y_fp32 = y.device();
    p.epilogue.norm_stats = stats.device();
    p.epilogue.norm_sums = sums.device();
    p.epilogue.norm_columns = width;
    p.epilogue.norm_groups = static_cast<mk_i32>(CeilDiv(width, int64_t{kStatsGroup}));
    ASSERT_TRUE(LinearF16(*context, producer.kernels(), p).ok()) << context.error();
    EXPECT_LT(RelL2(y.Host(), f.Plain()), 2e-6) << width;
    EXPECT_LT(RelL2(whole.y(), f.Plain()), 2e-6) << width;
  }
}

}  // namespace
}  // namespace mk
