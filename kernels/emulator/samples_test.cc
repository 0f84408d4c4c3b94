// The three sample kernels: right under every schedule and both kinds of copies, on ragged shapes;
// every one of their barriers and waits is needed; and they move what their head comments say.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device/convert.h"
#include "kernels/emulator/emulator.h"
#include "kernels/emulator/sample_gemm_emulated.h"
#include "kernels/emulator/sample_layer_norm_emulated.h"
#include "kernels/emulator/sample_reduce_emulated.h"
#include "kernels/emulator/samples/samples_params.h"
#include "kernels/emulator/scheduler.h"
#include "kernels/emulator/sweep.h"

namespace mk {
namespace emu {
namespace {

using device::half;

std::vector<float> Values(uint64_t seed, uint64_t count) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(random.Below(2001)) / 1000.0f - 1.0f;
  return values;
}

std::vector<half> Halves(const std::vector<float>& values) {
  std::vector<half> halves;
  for (const float v : values) halves.push_back({device::FloatToHalfBits(v)});
  return halves;
}

template <class T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// A launch that can be repeated: fresh outputs each time.
class LayerNormCase {
 public:
  LayerNormCase(int rows, int channels)
      : rows_(rows),
        channels_(channels),
        x_(Values(1, uint64_t(rows) * channels)),
        weight_(Values(2, channels)),
        bias_(Values(3, channels)),
        x_device_(&emulator_.memory(), "x", x_),
        weight_device_(&emulator_.memory(), "weight", weight_),
        bias_device_(&emulator_.memory(), "bias", bias_) {}

  Report Run(const Options& options) {
    y_ = std::make_unique<DeviceArray<float>>(&emulator_.memory(), "y", x_.size());
    const samples::LayerNormParams params = {x_device_.device(),
                                             weight_device_.device(),
                                             bias_device_.device(),
                                             y_->device(),
                                             rows_,
                                             channels_,
                                             1e-5f};
    return emulator_.Run(mk_emulated_sample_layer_norm, "mk_sample_layer_norm",
                         {{uint32_t(rows_ + 7) / 8}, {256}}, params, options);
  }
  std::string Outputs() { return Bytes(y_->Host()); }

  double WorstError() {
    const std::vector<float> y = y_->Host();
    double worst = 0;
    for (int r = 0; r < rows_; ++r) {
      const float* row = &x_[size_t(r) * channels_];
      double mean = 0, variance = 0;
      for (int c = 0; c < channels_; ++c) mean += row[c];
      mean /= channels_;
      for (int c = 0; c < channels_; ++c) variance += (row[c] - mean) * (row[c] - mean);
      const double scale = 1.0 / std::sqrt(variance / channels_ + 1e-5);
      for (int c = 0; c < channels_; ++c) {
        worst = std::max(worst, std::fabs(y[size_t(r) * channels_ + c] -
                                          ((row[c] - mean) * scale * weight_[c] + bias_[c])));
      }
    }
    return worst;
  }

 private:
  Emulator emulator_;
  int rows_, channels_;
  std::vector<float> x_, weight_, bias_;
  DeviceArray<float> x_device_, weight_device_, bias_device_;
  std::unique_ptr<DeviceArray<float>> y_;
};

class GemmCase {
 public:
  GemmCase(int m, int n, int k)
      : m_(m),
        n_(n),
        k_(k),
        a_(Halves(Values(1, uint64_t(m) * k))),
        b_(Halves(Values(2, uint64_t(k) * n))),
        a_device_(&emulator_.memory(), "a", a_),
        b_device_(&emulator_.memory(), "b", b_) {}

  Report Run(const Options& options) {
    c_ = std::make_unique<DeviceArray<half>>(&emulator_.memory(), "c", uint64_t(m_) * n_);
    const samples::GemmParams params = {
        a_device_.device(), b_device_.device(), c_->device(), m_, n_, k_};
    const LaunchShape shape = {{uint32_t(n_ + 63) / 64, uint32_t(m_ + 63) / 64}, {128}, 16 * 1024};
    return emulator_.Run(mk_emulated_sample_gemm, "mk_sample_gemm", shape, params, options);
  }
  std::string Outputs() { return Bytes(c_->Host()); }

  // In units of what fp32 accumulation of k products of size up to 1, and the rounding to fp16, may
  // lose.
  double WorstError() {
    const std::vector<half> c = c_->Host();
    double worst = 0;
    for (int i = 0; i < m_; ++i) {
      for (int j = 0; j < n_; ++j) {
        double sum = 0, size = 0;
        for (int l = 0; l < k_; ++l) {
          const double product = double(device::HalfBitsToFloat(a_[size_t(i) * k_ + l].bits)) *
                                 device::HalfBitsToFloat(b_[size_t(l) * n_ + j].bits);
          sum += product;
          size += std::fabs(product);
        }
        const double error = std::fabs(device::HalfBitsToFloat(c[size_t(i) * n_ + j].bits) - sum);
        worst = std::max(worst, error / (std::fabs(sum) * 0x1p-11 + size * k_ * 0x1p-24 + 0x1p-25));
      }
    }
    return worst;
  }

 private:
  Emulator emulator_;
  int m_, n_, k_;
  std::vector<half> a_, b_;
  DeviceArray<half> a_device_, b_device_;
  std::unique_ptr<DeviceArray<half>> c_;
};

class ReduceCase {
 public:
  ReduceCase(int count, uint32_t blocks)
      : count_(count),
        blocks_(blocks),
        x_(Values(1, count)),
        x_device_(&emulator_.memory(), "x", x_),
        partials_(&emulator_.memory(), "partials", blocks),
        finished_(&emulator_.memory(), "finished", std::vector<mk_u32>{0}),
        sum_(&emulator_.memory(), "sum", 1) {}

  Report Run(const Options& options) {
    finished_.Set({0});
    const samples::ReduceParams params = {x_device_.device(), partials_.device(),
                                          finished_.device(), sum_.device(), count_};
    return emulator_.Run(mk_emulated_sample_reduce, "mk_sample_reduce", {{blocks_}, {256}}, params,
                         options);
  }
  std::string Outputs() { return Bytes(sum_.Host()); }

  double Error() {
    double sum = 0;
    for (const float v : x_) sum += v;
    return std::fabs(sum_.Host()[0] - sum);
  }

 private:
  Emulator emulator_;
  int count_;
  uint32_t blocks_;
  std::vector<float> x_;
  DeviceArray<float> x_device_, partials_;
  DeviceArray<mk_u32> finished_;
  DeviceArray<float> sum_;
};

template <class Case>
SweepResult SweepCase(Case* c) {
  return Sweep([c](const Options& options) { return c->Run(options); },
               [c] { return c->Outputs(); });
}

TEST(LayerNormSample, IsRightUnderEverySchedule) {
  const int shapes[][2] = {{1, 1}, {3, 31}, {8, 32}, {9, 33}, {17, 100}, {5, 1024}};
  for (const auto& [rows, channels] : shapes) {
    LayerNormCase c(rows, channels);
    const SweepResult sweep = SweepCase(&c);
    ASSERT_TRUE(sweep.ok) << rows << " x " << channels << ": " << sweep.text;
    EXPECT_LT(c.WorstError(), 4e-6) << rows << " x " << channels;
  }
}

TEST(LayerNormSample, MovesWhatItSays) {
  LayerNormCase c(16, 256);
  const Report report = c.Run({});
  ASSERT_TRUE(report.ok()) << report.Text();
  EXPECT_EQ(report.counts.global_bytes(), 4u * (2 * 16 * 256) + 8u * 256 * 16);
  EXPECT_EQ(report.counts.footprint_bytes(), 4u * (2 * 16 * 256) + 8u * 256);  // weights once
  EXPECT_EQ(report.counts.wasted_sectors(), 0u);
  EXPECT_EQ(report.counts.shuffles, 16u * 10);
  EXPECT_EQ(report.counts.barriers, 0u);
  EXPECT_EQ(report.counts.shared_loads.requests, 0u);
}

TEST(GemmSample, IsRightUnderEverySchedule) {
  const int shapes[][3] = {{1, 8, 8}, {16, 8, 16}, {64, 64, 32}, {65, 72, 40}, {100, 136, 104}};
  for (const auto& [m, n, k] : shapes) {
    GemmCase c(m, n, k);
    const SweepResult sweep = SweepCase(&c);
    ASSERT_TRUE(sweep.ok) << m << " x " << n << " x " << k << ": " << sweep.text;
    EXPECT_LE(c.WorstError(), 1.0) << m << " x " << n << " x " << k;
  }
}

TEST(GemmSample, MovesWhatItSaysWithoutBankConflicts) {
  GemmCase c(128, 192, 96);
  const Report report = c.Run({});
  ASSERT_TRUE(report.ok()) << report.Text();
  EXPECT_EQ(report.counts.global_bytes(), 2u * (128 * 96 * 3 + 96 * 192 * 2 + 128 * 192));
  EXPECT_EQ(report.counts.bank_conflicts(), 0u);
  EXPECT_EQ(report.counts.mma_flops, 2u * 128 * 192 * 96);
  EXPECT_EQ(report.counts.async_copies * 16, 2u * (128 * 96 * 3 + 96 * 192 * 2));
  EXPECT_EQ(report.counts.barriers, 6u * (3 * 2));  // 6 blocks, 3 tiles along k
}

TEST(ReduceSample, IsRightUnderEverySchedule) {
  const std::pair<int, uint32_t> shapes[] = {{1, 1}, {255, 1}, {1000, 3}, {5000, 7}};
  for (const auto& [count, blocks] : shapes) {
    ReduceCase c(count, blocks);
    const SweepResult sweep = SweepCase(&c);
    ASSERT_TRUE(sweep.ok) << count << " in " << blocks << ": " << sweep.text;
    EXPECT_LT(c.Error(), 1e-3);
  }
}

template <class Case>
void ExpectEverySyncIsNeeded(Case* c, size_t syncs) {
  const std::vector<Mutant> mutants = MutateSyncs(
      [c](const Options& options) { return c->Run(options); }, [c] { return c->Outputs(); });
  EXPECT_EQ(mutants.size(), syncs);
  for (const Mutant& m : mutants) {
    EXPECT_TRUE(m.caught) << "without " << m.sync.name << " at " << SiteText(m.sync.site)
                          << " all is well";
  }
}

TEST(GemmSample, NeedsEveryBarrierAndWait) {
  GemmCase c(64, 64, 96);
  ExpectEverySyncIsNeeded(&c, 3);
}

TEST(ReduceSample, NeedsEveryBarrier) {
  ReduceCase c(1000, 3);
  ExpectEverySyncIsNeeded(&c, 2);
}

}  // namespace
}  // namespace emu
}  // namespace mk
