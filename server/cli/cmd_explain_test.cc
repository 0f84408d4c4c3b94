// The mk program explaining packs: what it prints, and how it ends.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "core/weights/testing/write_safetensors.h"
#include "server/cli/common.h"
#include "server/cli/explain_report.h"
#include "tests/packs/pack_builder.h"

namespace mk::cli {
namespace {

struct Ended {
  int code = -1;
  std::string out, err;
};

class MkExplain : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "/mkexplainXXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    PackSpec spec = AffineOnDeviceSpec(WriteSafetensors({{"w", "F32", {2}, FloatBytes({2, 1})}}));
    spec.manifest.mutable_golden()->set_file("golden.safetensors");
    spec.small["golden.safetensors"] =
        WriteSafetensors({{"case0.input.X", "F32", {1}, FloatBytes({3})},
                          {"case0.output.Y", "F32", {1}, FloatBytes({7})}});
    repository_.Install("affine", 3, spec);
  }
  static std::string Read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  // `arguments` holds no character that a shell would mind.
  Ended Run(const std::string& arguments, const std::string& before = "") const {
    const int status =
        std::system((before + "server/cli/mk explain --probe-path core/loader/mergekernel-probe " +
                     arguments + " >" + folder_ + "/out 2>" + folder_ + "/err")
                        .c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, Read(folder_ + "/out"),
            Read(folder_ + "/err")};
  }
  std::string pack() const { return repository_.root() + "/affine"; }
  TestRepository repository_;
  std::string folder_;
};

TEST_F(MkExplain, TellsLaunchesAndSaysThatTheyArePredicted) {
  const Ended ended = Run(pack() + " --input X=100000");
  ASSERT_EQ(ended.code, kOk) << ended.err;
  for (const char* part : {"affine 3 on Jetson AGX Orin 64GB: predicted, not measured",
                           "input X FP32[100000]", "mk_affine", "391", "781.2 KiB", "memory",
                           "1 launches", "memory 152.8 GB/s (reported)", "ApxInf", "assumed"}) {
    EXPECT_NE(ended.out.find(part), std::string::npos) << part << "\n" << ended.out;
  }
}

TEST_F(MkExplain, SeveralBoardsAreATable) {
  const Ended ended = Run(pack() + "/3/ --board all");
  ASSERT_EQ(ended.code, kOk) << ended.err;
  for (const char* part : {"agx-orin-64gb", "orin-nano-4gb-super", "thor-t4000", "Predicted"}) {
    EXPECT_NE(ended.out.find(part), std::string::npos) << part << "\n" << ended.out;
  }
}

TEST_F(MkExplain, JsonAndPageHoldTheSame) {
  const std::string page = folder_ + "/plan.html";
  const Ended ended =
      Run(pack() + " --input X=38200 --launch-us 0 --json --html " + page + " --board h200");
  ASSERT_EQ(ended.code, kOk) << ended.err;
  const auto rows = nlohmann::json::parse(ended.out);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["source"], "predicted");
  EXPECT_EQ(rows[0]["launches"][0]["kernel"], "mk_affine");
  EXPECT_EQ(rows[0]["launches"][0]["bytes"], 38200 * 8);
  EXPECT_NEAR(rows[0]["predicted_us"].get<double>(), 38200 * 8 / 4.8e6, 1e-9);
  const std::string html = Read(page);
  EXPECT_NE(html.find("<rect class=\"memory\""), std::string::npos);
  EXPECT_NE(html.find("predicted"), std::string::npos);
  EXPECT_EQ(html.find("<script"), std::string::npos);
}

TEST_F(MkExplain, RefusalsNameWhatIsWrong) {
  const auto says = [](const Ended& ended, int code, const char* part) {
    EXPECT_EQ(ended.code, code) << ended.err;
    EXPECT_NE(ended.err.find(part), std::string::npos) << ended.err;
  };
  says(Run(""), kUsage, "which pack?");
  says(Run(pack() + " --board xavier"), kUsage, "is none of agx-orin-64gb");
  says(Run(pack() + " --input X"), kRefused, "must read NAME=DIM");
  says(Run(pack() + " --input Z=1"), kRefused, "no input 'Z'; the pack has X");
  says(Run(repository_.root() + "/nobody"), kRefused, "nobody");
  says(Run(pack() + "/4"), kRefused, "4");
}

TEST_F(MkExplain, BoardsAreListedWithTheirSources) {
  const Ended ended = Run("--boards");
  ASSERT_EQ(ended.code, kOk) << ended.err;
  EXPECT_NE(ended.out.find("152.8 reported"), std::string::npos) << ended.out;
  const Ended json = Run("--boards --json");
  EXPECT_GE(nlohmann::json::parse(json.out).size(), 10u);
}

TEST(Explain, SumsWhatItsLaunchesTake) {
  mergekernel::v1::Plan plan;
  for (int i = 0; i < 2; ++i) {
    auto* launch = plan.add_launches();
    launch->set_kernel("k");
    for (int d = 0; d < 3; ++d)
      launch->add_grid(d == 0 ? 16 : 1), launch->add_block(d == 0 ? 64 : 1);
    launch->set_bytes(152'800);
  }
  plan.mutable_launches(1)->set_tensor_flops(33'400'000'000);
  const Explained e = Explain("p 1", **FindBoard("agx-orin-64gb"), plan, 3e-6);
  EXPECT_NEAR(e.memory_seconds, 1e-6, 1e-12);
  EXPECT_NEAR(e.tensor_seconds, 1e-3, 1e-9);
  EXPECT_NEAR(e.seconds, 1e-3 + 1e-6 + 6e-6, 1e-9);
}

// On the fake driver: that every launch is clocked and told as measured, not how fast anything is.
TEST_F(MkExplain, MeasuresOnADeviceBesideThePrediction) {
  const std::string fake =
      "env LD_LIBRARY_PATH=core/device/testing CUDA_FAKE_KERNELS=tests/packs/fake_kernels.so "
      "CUDA_FAKE_REPORT=" +
      folder_ + "/report ";
  const std::string page = folder_ + "/plan.html";
  const Ended ended = Run(pack() + " --measure cuda --runs 7 --html " + page, fake);
  ASSERT_EQ(ended.code, kOk) << ended.err;
  for (const char* part :
       {"predicted, and measured", "MEASURED US", "OF THE ROOF", "median of 7"}) {
    EXPECT_NE(ended.out.find(part), std::string::npos) << part << "\n" << ended.out;
  }
  EXPECT_NE(Read(page).find("us, measured"), std::string::npos);
  const Ended json = Run(pack() + " --measure cuda --json", fake);
  const auto row = nlohmann::json::parse(json.out).at(0);
  EXPECT_EQ(row["measured"]["source"], "measured");
  EXPECT_EQ(row["measured"]["runs"], 20);
  EXPECT_GT(row["measured"]["best_us"], 0);
  EXPECT_GT(row["launches"][0]["measured_us"], 0);
}

TEST_F(MkExplain, MeasureRefusesByName) {
  EXPECT_EQ(Run(pack() + " --measure cuda --board all").code, kUsage);
  const Ended none = Run(pack() + " --measure cuda", "env LD_LIBRARY_PATH= ");
  EXPECT_NE(none.code, kOk);
  EXPECT_NE(none.err.find("libcuda"), std::string::npos) << none.err;
  const Ended cpu = Run(pack() + " --measure cpu");
  EXPECT_NE(cpu.err.find("'cpu' launches no kernels"), std::string::npos) << cpu.err;
}

}  // namespace
}  // namespace mk::cli
