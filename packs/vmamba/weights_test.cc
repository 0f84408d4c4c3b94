#include "packs/vmamba/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "kernels/testing/generator.h"
#include "packs/vmamba/testing/fixture.h"

namespace mk::vmamba {
namespace {

constexpr uint64_t kSeed = 5;

// Loads a file that `edit` has spoilt; the code, and the host's message.
std::pair<mk_status, std::string> LoadEdited(void (*edit)(std::vector<FileTensor>&)) {
  ModelHost host(PlainParameters(), WriteWeights(PlainParameters(), kSeed, edit));
  const auto model = VMamba::Create(host.services());
  EXPECT_FALSE(model.ok());
  return {model.status().code(), host.test_host().error()};
}

::testing::AssertionResult Names(const std::string& message, const std::string& what) {
  if (message.find(what) != message.npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << message << "' does not name " << what;
}

TEST(Weights, RefusesAMissingTensorByName) {
  const auto [code, message] =
      LoadEdited([](std::vector<FileTensor>& tensors) { tensors.erase(tensors.begin() + 20); });
  EXPECT_EQ(code, MK_INVALID_ARGUMENT);
  const Description d = *ParseDescription(ModelHost(PlainParameters(), "").services());
  EXPECT_TRUE(Names(message, WeightTable(d)[20].name));
}

TEST(Weights, RefusesASurplusTensorByName) {
  const auto [code, message] = LoadEdited([](std::vector<FileTensor>& tensors) {
    tensors.push_back({"classifier.head.scale", {7}, std::vector<float>(7)});
  });
  EXPECT_EQ(code, MK_INVALID_ARGUMENT);
  EXPECT_TRUE(Names(message, "classifier.head.scale"));
}

TEST(Weights, RefusesAMisshapenTensorByName) {
  const auto [code, message] = LoadEdited([](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors) {
      if (tensor.name != "classifier.head.weight") continue;
      tensor.shape = {tensor.shape[1], tensor.shape[0]};
    }
  });
  EXPECT_EQ(code, MK_INVALID_ARGUMENT);
  EXPECT_TRUE(Names(message, "classifier.head.weight"));
}

TEST(Weights, RefusesNanByName) {
  const auto [code, message] = LoadEdited(
      [](std::vector<FileTensor>& tensors) { tensors.back().values.back() = std::nanf(""); });
  EXPECT_EQ(code, MK_INVALID_ARGUMENT);
  EXPECT_TRUE(Names(message, "classifier.head.bias"));
}

TEST(Weights, ReportsAnAbsentFile) {
  ModelHost host(PlainParameters(), "");
  EXPECT_EQ(VMamba::Create(host.services()).status().code(), MK_NOT_FOUND);
}

TEST(Weights, FoldsAreWhatTheyClaim) {
  OpenModel open(PlainParameters(), WriteWeights(PlainParameters(), kSeed));
  const Description& d = open.model().description();
  const ScanWeights& scan = open.model().weights().stages[2].blocks[1].scan;
  const std::string op = "layers.2.blocks.1.op.";
  const int64_t inner = d.Inner(2);
  const int64_t rank = d.Rank(2);
  const auto a_logs = testing::GenerateByRule(op + "A_logs", {4 * inner, 1}, kSeed);
  const auto ds = testing::GenerateByRule(op + "Ds", {4 * inner}, kSeed);
  const auto dt = testing::GenerateByRule(op + "dt_projs_weight", {4, inner, rank}, kSeed);
  for (int64_t k = 0; k < 4; ++k) {
    for (int64_t c = 0; c < inner; ++c) {
      EXPECT_FLOAT_EQ(scan.a[k * inner + c], -std::exp(a_logs[k * inner + c]));
      for (int64_t r = 0; r < rank; ++r) {
        EXPECT_EQ(scan.dt_weight[(k * rank + r) * inner + c], dt[(k * inner + c) * rank + r]);
      }
    }
  }
  for (int64_t c = 0; c < inner; ++c) {
    EXPECT_FLOAT_EQ(scan.d[c], ds[c] + ds[inner + c] + ds[2 * inner + c] + ds[3 * inner + c]);
  }
  const auto conv = testing::GenerateByRule("layers.0.downsample.1.weight", {16, 8, 3, 3}, kSeed);
  const float* weight = open.model().weights().stages[0].downsample.weight;
  EXPECT_EQ(weight[((1 * 3 + 2) * 8 + 5) * 16 + 11], conv[((11 * 8 + 5) * 3 + 1) * 3 + 2]);
}

TEST(Weights, AreOneAllocationThatTheHostMayRefuse) {
  OpenModel open(PlainParameters(), WriteWeights(PlainParameters(), kSeed));
  EXPECT_EQ(open.host().test_host().allocations(), 1u);
}

}  // namespace
}  // namespace mk::vmamba
