#include "packs/vmamba/description.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/image/resize_normalize_params.h"
#include "packs/vmamba/testing/fixture.h"
#include "packs/vmamba/weights.h"

namespace mk::vmamba {
namespace {

Result<Description> Parse(const Parameters& parameters) {
  ModelHost host(parameters, "");
  return ParseDescription(host.services());
}

// The message that `key` = `value` earns.
std::string Refusal(const std::string& key, const std::string& value) {
  Parameters parameters = PlainParameters();
  parameters[key] = value;
  const Result<Description> result = Parse(parameters);
  EXPECT_FALSE(result.ok()) << key << " = " << value;
  EXPECT_EQ(result.status().code(), MK_INVALID_ARGUMENT);
  return result.status().message();
}

TEST(Description, ReadsThePicoManifest) {
  Result<Description> d = Parse(PicoParameters());
  ASSERT_TRUE(d.ok()) << d.status().message();
  EXPECT_EQ(d->in_chans, 1);
  EXPECT_EQ(d->depths, (std::vector<int64_t>{2, 2, 2, 1}));
  EXPECT_EQ(d->Channels(3), 96);
  EXPECT_EQ(d->Inner(2), 48);
  EXPECT_EQ(d->Rank(0), 1);
  EXPECT_EQ(d->Rank(3), 6);
  EXPECT_EQ(d->Hidden(0), 48);
  EXPECT_EQ(d->SideMultiple(), 32);
  EXPECT_EQ(d->preprocessing.crop, 28);
  EXPECT_EQ(d->preprocessing.mean[0], 0.286f);
  EXPECT_EQ(d->preprocessing.std[0], 0.353f);
}

TEST(Description, TakesEveryPublishedSize) {
  Parameters parameters = PlainParameters();
  parameters["config.embed_dim"] = "128";
  parameters["config.depths"] = "2-2-15-2";
  parameters["config.ssm_ratio"] = "2.0";
  parameters["config.dt_rank"] = "8";
  parameters["preprocess.resize"] = "256";
  parameters["preprocess.crop"] = "224";
  Result<Description> d = Parse(parameters);
  ASSERT_TRUE(d.ok()) << d.status().message();
  EXPECT_EQ(d->Inner(3), 2048);
  EXPECT_EQ(d->Rank(3), 8);
  EXPECT_EQ(d->preprocessing.std[2], 2.0f);
}

TEST(Description, TheFilterIsTriangleUnlessSaid) {
  Parameters parameters = PlainParameters();
  EXPECT_EQ(Parse(parameters)->preprocessing.filter, MK_RESIZE_TRIANGLE);
  parameters["preprocess.filter"] = "bicubic";
  EXPECT_EQ(Parse(parameters)->preprocessing.filter, MK_RESIZE_BICUBIC);
  parameters["preprocess.filter"] = "lanczos";
  EXPECT_NE(Parse(parameters).status().message().find("preprocess.filter"), std::string::npos);
}

TEST(Description, RefusesEachMissingParameter) {
  for (const auto& [key, value] : PlainParameters()) {
    EXPECT_EQ(Refusal(key, ""), "parameter " + key + " is missing");
  }
}

TEST(Description, RefusesWhatIsNoNumberOrOutOfRange) {
  EXPECT_EQ(Refusal("config.in_chans", "4"),
            "parameter config.in_chans '4' must be an integer in 1..3");
  EXPECT_EQ(Refusal("config.embed_dim", "12x"),
            "parameter config.embed_dim '12x' must be an integer in 2..1024");
  EXPECT_EQ(Refusal("config.embed_dim", "99999999999999999999"),
            "parameter config.embed_dim '99999999999999999999' must be an integer in 2..1024");
  EXPECT_EQ(Refusal("config.num_classes", "-1"),
            "parameter config.num_classes '-1' must be an integer in 1..65536");
  EXPECT_EQ(Refusal("config.num_classes", " 7"),
            "parameter config.num_classes ' 7' must be an integer in 1..65536");
  EXPECT_EQ(Refusal("config.d_state", "0"),
            "parameter config.d_state '0' must be an integer in 1..256");
  EXPECT_EQ(Refusal("config.dt_rank", "automatic"),
            "parameter config.dt_rank 'automatic' must be an integer in 1..4096");
  for (const char* ratio : {"0", "-1", "nan", "inf", "0x10", "1e99", "17", "1.0.0", "e"}) {
    EXPECT_EQ(Refusal("config.ssm_ratio", ratio), std::string("parameter config.ssm_ratio '") +
                                                      ratio +
                                                      "' must be a number above 0 and at most 16");
  }
  EXPECT_EQ(Refusal("config.mlp_ratio", "four"),
            "parameter config.mlp_ratio 'four' must be a number above 0 and at most 16");
  EXPECT_EQ(Refusal("preprocess.resize", "-28"),
            "parameter preprocess.resize '-28' must be an integer in 0..16384");
  EXPECT_EQ(Refusal("preprocess.crop", "16385"),
            "parameter preprocess.crop '16385' must be an integer in 0..16384");
  EXPECT_EQ(Refusal("preprocess.pad", "1025"),
            "parameter preprocess.pad '1025' must be an integer in 0..1024");
  EXPECT_EQ(Refusal("preprocess.max_encoded_pixels", "0"),
            "parameter preprocess.max_encoded_pixels '0' must be an integer in 1..67108864");
}

TEST(Description, RefusesDepthsThatAreNoList) {
  for (const char* depths : {"2-", "-2", "2--2", "2-0", "2-65", "a", "1-1-1-1-1-1-1", "2,2"}) {
    EXPECT_EQ(Refusal("config.depths", depths),
              std::string("parameter config.depths '") + depths +
                  "' must be 1 to 6 integers in 1..64 joined by '-'");
  }
}

TEST(Description, RefusesChannelValuesThatDoNotFit) {
  EXPECT_EQ(Refusal("preprocess.mean", "0.5,0.5"),
            "parameter preprocess.mean '0.5,0.5' must be 3 numbers joined by ',', one per channel");
  EXPECT_EQ(Refusal("preprocess.mean", "1,nan,1"),
            "parameter preprocess.mean '1,nan,1' must be 3 numbers joined by ',', one per channel");
  EXPECT_EQ(
      Refusal("preprocess.std", "1,0,1"),
      "parameter preprocess.std '1,0,1' must be 3 non-zero numbers joined by ',', one per channel");
  EXPECT_EQ(Refusal("preprocess.std", "1,1e-60,1"),
            "parameter preprocess.std '1,1e-60,1' must be 3 non-zero numbers joined by ',', one "
            "per channel");
}

TEST(Description, RefusesWhatDoesNotFitTogether) {
  EXPECT_EQ(Refusal("config.embed_dim", "9"),
            "parameter config.embed_dim '9' must be even: the stem's first convolution has half "
            "of it");
  EXPECT_EQ(Refusal("config.ssm_ratio", "0.1"),
            "parameter config.ssm_ratio '0.1' must be such that ratio x embed_dim is at least 1");
  EXPECT_EQ(Refusal("config.mlp_ratio", "0.1"),
            "parameter config.mlp_ratio '0.1' must be such that ratio x embed_dim is at least 1");
  EXPECT_EQ(Refusal("preprocess.channels", "1"),
            "parameter preprocess.channels '1' must be 1 or 3, and equal to config.in_chans 3");
  EXPECT_EQ(Refusal("config.in_chans", "2"),
            "parameter preprocess.channels '3' must be 1 or 3, and equal to config.in_chans 2");
  EXPECT_EQ(Refusal("preprocess.crop", "28"),
            "parameter preprocess.crop '28' must be such that crop + 2 pad, 28, is a multiple of "
            "32");
  Parameters parameters = PlainParameters();
  parameters["preprocess.resize"] = "32";
  parameters["preprocess.crop"] = "64";
  EXPECT_EQ(Parse(parameters).status().message(),
            "parameter preprocess.crop '64' must be at most preprocess.resize 32");
}

TEST(Description, TheLargestOneOverflowsNothing) {
  Parameters parameters = PlainParameters();
  parameters["config.embed_dim"] = "1024";
  parameters["config.depths"] = "64-64-64-64-64-64";
  parameters["config.num_classes"] = "65536";
  parameters["config.ssm_ratio"] = "16";
  parameters["config.d_state"] = "256";
  parameters["config.dt_rank"] = "4096";
  parameters["config.mlp_ratio"] = "16";
  Result<Description> d = Parse(parameters);
  ASSERT_TRUE(d.ok()) << d.status().message();
  double bytes = 0;
  for (const WeightSpec& spec : WeightTable(*d)) {
    double size = 4;
    for (const int64_t dim : spec.shape) size *= static_cast<double>(dim);
    bytes += size;
  }
  EXPECT_LT(bytes, 0x1p62);
}

}  // namespace
}  // namespace mk::vmamba
