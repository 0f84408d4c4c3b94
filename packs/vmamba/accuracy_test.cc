// vmamba-pico on all 10,000 test images of Fashion-MNIST, as Debian's package dataset-fashion-mnist
// installs them, against PyTorch's logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/testing/compare.h"
#include "kernels/testing/golden.h"
#include "packs/vmamba/testing/fashion_mnist.h"
#include "packs/vmamba/testing/fixture.h"

namespace mk::vmamba {
namespace {

constexpr int64_t kImages = kTestImages;
constexpr int64_t kSide = kTestImageSide;
constexpr int64_t kClasses = 10;
constexpr int64_t kMaxDifferingPredictions = 5;

int64_t ArgMax(const float* logits) { return std::max_element(logits, logits + kClasses) - logits; }

TEST(Accuracy, EqualsPyTorchOnAllTestImages) {
  const FashionMnist set = ReadFashionMnist();
  const std::vector<uint8_t>& images = set.images;
  const std::vector<uint8_t>& labels = set.labels;
  ASSERT_FALSE(images.empty() || labels.empty());
  const auto golden =
      testing::GoldenFile::Read(std::string(kGoldenFolder) + "pico_test_logits.safetensors");
  const std::vector<float>& want = golden.At("logits").values;

  OpenModel open = OpenModel::Pico();
  std::vector<float> got;
  const auto start = std::chrono::steady_clock::now();
  testing::TestRun run;
  for (int64_t i = 0; i < kImages; ++i) {
    run.ClearInputs();
    run.AddInput("image", MK_DTYPE_UINT8, {kSide, kSide, 1}, images.data() + i * kSide * kSide,
                 kSide * kSide);
    const Status status = open.Run(run);
    ASSERT_TRUE(status.ok()) << status.message();
    const std::vector<float> logits = Logits(run);
    got.insert(got.end(), logits.begin(), logits.end());
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  int64_t right = 0;
  int64_t right_in_pytorch = 0;
  int64_t differing = 0;
  for (int64_t i = 0; i < kImages; ++i) {
    const int64_t mine = ArgMax(got.data() + i * kClasses);
    const int64_t theirs = ArgMax(want.data() + i * kClasses);
    right += mine == labels[static_cast<size_t>(i)] ? 1 : 0;
    right_in_pytorch += theirs == labels[static_cast<size_t>(i)] ? 1 : 0;
    differing += mine != theirs ? 1 : 0;
  }
  const ::testing::AssertionResult near =
      testing::IsNearRelL2(got, want, 1e-5, {kImages, kClasses});
  EXPECT_TRUE(near);
  EXPECT_LE(differing, kMaxDifferingPredictions);
  EXPECT_LE(std::abs(right - right_in_pytorch), kMaxDifferingPredictions);
  std::printf("accuracy %.2f %% (PyTorch %.2f %%), %ld predictions differ, logits %s, %.1f s\n",
              100.0 * static_cast<double>(right) / kImages,
              100.0 * static_cast<double>(right_in_pytorch) / kImages, static_cast<long>(differing),
              near.message(), seconds.count());
}

}  // namespace
}  // namespace mk::vmamba
