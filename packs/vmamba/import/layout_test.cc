#include "packs/vmamba/import/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "packs/vmamba/weights.h"

namespace mk::vmamba {
namespace {

using Tensors = std::vector<StoredTensorSpec>;
using Config = std::map<std::string, std::string>;

Config WithPreprocessing(Config config) {
  config.insert({{"preprocess.resize", "0"},
                 {"preprocess.crop", "0"},
                 {"preprocess.pad", "0"},
                 {"preprocess.channels", config.at("config.in_chans")},
                 {"preprocess.mean", config.at("config.in_chans") == "1" ? "0" : "0,0,0"},
                 {"preprocess.std", config.at("config.in_chans") == "1" ? "1" : "1,1,1"},
                 {"preprocess.max_encoded_pixels", "1000"}});
  return config;
}

Config Make(const std::string& chans, const std::string& embed, const std::string& depths,
            const std::string& classes, const std::string& ssm, const std::string& mlp,
            const std::string& state, const std::string& rank,
            const std::string& forward_type = "v05_noz") {
  return {{"config.in_chans", chans},
          {"config.embed_dim", embed},
          {"config.depths", depths},
          {"config.num_classes", classes},
          {"config.ssm_ratio", ssm},
          {"config.mlp_ratio", mlp},
          {"config.d_state", state},
          {"config.dt_rank", rank},
          {"config.forward_type", forward_type}};
}
Config Tiny() { return Make("3", "96", "2-2-8-2", "1000", "1.0", "4.0", "1", "auto"); }
Config Reduced() { return Make("3", "8", "1-2-1", "7", "2.0", "4.0", "4", "auto"); }

Tensors Complete(const Config& config) {
  Result<Description> description = DescriptionOf(WithPreprocessing(config));
  EXPECT_TRUE(description.ok()) << description.status().message();
  Tensors tensors;
  for (const WeightSpec& spec : WeightTable(*description)) {
    tensors.push_back({spec.name, spec.shape});
  }
  return tensors;
}

StoredTensorSpec& Named(Tensors& tensors, const std::string& name) {
  return *std::find_if(tensors.begin(), tensors.end(),
                       [&](const StoredTensorSpec& t) { return t.name == name; });
}
void Remove(Tensors& tensors, const std::string& name) {
  tensors.erase(std::find_if(tensors.begin(), tensors.end(),
                             [&](const StoredTensorSpec& t) { return t.name == name; }));
}
std::string AllOf(const CheckpointLayout& layout) {
  std::string all;
  for (const std::string& problem : layout.problems) all += problem + "\n";
  return all;
}
bool Says(const CheckpointLayout& layout, const std::string& text) {
  return AllOf(layout).find(text) != std::string::npos;
}

TEST(Layout, EverySizeIsReadOffItsShapes) {
  for (const Config& config :
       {Tiny(), Make("3", "96", "2-2-15-2", "1000", "2.0", "4.0", "1", "auto"),
        Make("3", "128", "2-2-15-2", "21841", "2.0", "4.0", "1", "auto"), Reduced(),
        Make("1", "2", "1", "1", "1.0", "4.0", "1", "auto"),
        Make("3", "12", "3-1", "5", "1.5", "2.5", "16", "2"),
        Make("3", "96", "2-2-8-2", "1000", "1.0", "4.0", "1", "auto", "v05"),
        Make("3", "16", "1-1-1-1-1-1", "9", "1.0", "1.0", "2", "1"),
        Make("3", "96", "2-2-8-2", "12", "1.0", "4.0", "1", "auto")}) {
    const CheckpointLayout layout = ReadLayout(Complete(config));
    EXPECT_EQ(AllOf(layout), "");
    EXPECT_EQ(layout.config, config);
    EXPECT_EQ(layout.taken.size(), Complete(config).size());
  }
}

TEST(Layout, ThePublishedLineIsKnownByItsSizes) {
  EXPECT_EQ(ReadLayout(Complete(Tiny())).published_name, "tiny");
  EXPECT_TRUE(ReadLayout(Complete(Tiny())).published_head);
  Config tuned = Tiny();
  tuned["config.num_classes"] = "12";
  EXPECT_EQ(ReadLayout(Complete(tuned)).published_name, "tiny");
  EXPECT_FALSE(ReadLayout(Complete(tuned)).published_head);
  EXPECT_EQ(ReadLayout(Complete(Reduced())).published_name, "");
  Config gated = Tiny();
  gated["config.forward_type"] = "v05";
  EXPECT_EQ(ReadLayout(Complete(gated)).published_name, "");
}

TEST(Layout, PrefixesComeOffWhenEveryTensorHasThem) {
  for (const std::string prefix : {"module.", "model.", "_orig_mod.", "module._orig_mod."}) {
    Tensors tensors = Complete(Reduced());
    for (StoredTensorSpec& tensor : tensors) tensor.name = prefix + tensor.name;
    tensors.push_back({"n_averaged", {}});
    const CheckpointLayout layout = ReadLayout(tensors);
    EXPECT_EQ(AllOf(layout), "");
    EXPECT_EQ(layout.stripped_prefix, prefix);
    EXPECT_EQ(layout.dropped, std::vector<size_t>{tensors.size() - 1});
    EXPECT_EQ(layout.taken[0].name, "patch_embed.0.weight");
  }
  Tensors tensors = Complete(Reduced());
  for (StoredTensorSpec& tensor : tensors) tensor.name = "detector." + tensor.name;
  EXPECT_TRUE(Says(ReadLayout(tensors), "the first is called 'detector.classifier.head.bias'"));
  EXPECT_EQ(AllOf(ReadLayout(tensors, "detector.")), "");
  Tensors half = Complete(Reduced());
  for (size_t i = 0; i < half.size() / 2; ++i) half[i].name = "module." + half[i].name;
  EXPECT_FALSE(ReadLayout(half).problems.empty());
}

TEST(Layout, BookkeepingOfProfilersIsDropped) {
  Tensors tensors = Complete(Reduced());
  tensors.push_back({"layers.0.blocks.0.total_ops", {1}});
  tensors.push_back({"classifier.total_params", {1}});
  const CheckpointLayout layout = ReadLayout(tensors);
  EXPECT_EQ(AllOf(layout), "");
  EXPECT_EQ(layout.dropped.size(), 2u);
}

TEST(Layout, LinearLayersMayBeStoredAsConvolutions) {
  Tensors tensors = Complete(Reduced());
  for (StoredTensorSpec& tensor : tensors) {
    if (tensor.shape.size() == 2 && tensor.name.find("A_logs") == std::string::npos) {
      tensor.shape.insert(tensor.shape.end(), {1, 1});
    }
  }
  const CheckpointLayout layout = ReadLayout(tensors);
  EXPECT_EQ(AllOf(layout), "");
  for (const TakenTensor& taken : layout.taken) {
    EXPECT_EQ(taken.name, tensors[taken.index].name);
    if (taken.name == "classifier.head.weight") {
      EXPECT_EQ(taken.shape, (std::vector<int64_t>{7, 32}));
    }
  }
}

TEST(Layout, EveryMissingTensorIsNamed) {
  const Tensors complete = Complete(Reduced());
  for (const StoredTensorSpec& tensor : complete) {
    Tensors tensors = complete;
    Remove(tensors, tensor.name);
    const CheckpointLayout layout = ReadLayout(tensors);
    EXPECT_TRUE(Says(layout, "tensor '" + tensor.name + "'")) << AllOf(layout);
    EXPECT_TRUE(Says(layout, "is missing")) << AllOf(layout);
  }
}

TEST(Layout, RenamedTensorsGetTheNearestName) {
  Tensors tensors = Complete(Reduced());
  Named(tensors, "layers.1.blocks.1.norm2.weight").name = "layers.1.blocks.1.norm_2.weight";
  const CheckpointLayout layout = ReadLayout(tensors);
  EXPECT_EQ(AllOf(layout),
            "tensor 'layers.1.blocks.1.norm2.weight' [16] is missing; the nearest name in the file "
            "is 'layers.1.blocks.1.norm_2.weight'\n"
            "tensor 'layers.1.blocks.1.norm_2.weight' is surplus\n");
}

TEST(Layout, MisshapenAndSurplusTensorsAreNamed) {
  Tensors tensors = Complete(Reduced());
  auto& shape = Named(tensors, "layers.1.blocks.0.op.out_proj.weight").shape;
  std::swap(shape[0], shape[1]);  // transposed
  tensors.push_back({"layers.0.blocks.0.op.conv2d.bias", {16}});
  const CheckpointLayout layout = ReadLayout(tensors);
  EXPECT_EQ(AllOf(layout),
            "tensor 'layers.1.blocks.0.op.out_proj.weight' has shape [32,16], expected [16,32]\n"
            "tensor 'layers.0.blocks.0.op.conv2d.bias' is surplus\n");
}

TEST(Layout, OneGatedBlockAmongOthersIsMisshapen) {
  Tensors tensors = Complete(Reduced());
  Named(tensors, "layers.1.blocks.0.op.in_proj.weight").shape = {64, 16};
  EXPECT_EQ(AllOf(ReadLayout(tensors)),
            "tensor 'layers.1.blocks.0.op.in_proj.weight' has shape [64,16], expected [32,16]\n");
}

TEST(Layout, AGapInTheBlocksIsMissingTensors) {
  Tensors tensors = Complete(Make("3", "8", "1-3-1", "7", "2.0", "4.0", "4", "auto"));
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                               [](const StoredTensorSpec& tensor) {
                                 return tensor.name.rfind("layers.1.blocks.1.", 0) == 0;
                               }),
                tensors.end());
  const CheckpointLayout layout = ReadLayout(tensors);
  EXPECT_EQ(layout.problems.size(), 18u) << AllOf(layout);
  EXPECT_TRUE(Says(layout, "'layers.1.blocks.1.op.A_logs' [128,4] is missing"));
}

TEST(Layout, HostileNamesAndShapesAreBounded) {
  for (const char* name : {"layers.6.blocks.0.norm.weight", "layers.0.blocks.64.norm.weight",
                           "layers.0.blocks.999999.norm.weight"}) {
    Tensors tensors = Complete(Reduced());
    tensors.push_back({name, {8}});
    EXPECT_TRUE(Says(ReadLayout(tensors), "the pack takes up to 6 stages of 64 blocks")) << name;
  }
  for (const char* name : {"layers.00.blocks.0.x", "layers.9999999.blocks.0.x",
                           "layers.-1.blocks.0.x", "layers.0.blocks.", "layers.", ""}) {
    Tensors tensors = Complete(Reduced());
    tensors.push_back({name, {8}});
    EXPECT_EQ(ReadLayout(tensors).problems.size(), 1u) << name;
  }
  for (const int64_t dim : {int64_t{0}, int64_t{1} << 40, INT64_MAX}) {
    for (const char* name :
         {"patch_embed.5.weight", "patch_embed.0.weight", "classifier.head.weight",
          "layers.0.blocks.0.op.conv2d.weight", "layers.0.blocks.0.mlp.fc1.weight",
          "layers.0.blocks.0.op.A_logs", "layers.0.blocks.0.op.dt_projs_weight"}) {
      Tensors tensors = Complete(Reduced());
      for (int64_t& one : Named(tensors, name).shape) one = dim;
      EXPECT_TRUE(Says(ReadLayout(tensors), std::string("tensor '") + name)) << dim;
    }
  }
  EXPECT_FALSE(ReadLayout({}).problems.empty());
  Tensors wide = Complete(Reduced());
  Named(wide, "patch_embed.5.weight").shape[0] = 4096;
  EXPECT_TRUE(Says(ReadLayout(wide), "config.embed_dim '4096'"));
}

TEST(DescriptionOf, IsThePacksOwnJudgement) {
  Config config = WithPreprocessing(Tiny());
  EXPECT_TRUE(DescriptionOf(config).ok());
  config["preprocess.crop"] = "225";
  const auto refused = DescriptionOf(config);
  EXPECT_EQ(refused.status().code(), MK_INVALID_ARGUMENT);
  EXPECT_NE(refused.status().message().find("preprocess.crop '225'"), std::string::npos);
}

TEST(DeclareMemory, CoversTheTableAndGrowsWithTheInput) {
  Config config = WithPreprocessing(Tiny());
  config["preprocess.max_input_pixels"] = "50176";
  Result<Description> tiny = DescriptionOf(config);
  uint64_t bytes = 0;
  for (const WeightSpec& spec : WeightTable(*tiny)) {
    uint64_t count = 1;
    for (const int64_t dim : spec.shape) count *= static_cast<uint64_t>(dim);
    bytes += count * 4;
  }
  const DeclaredMemory small = DeclareMemory(*tiny);
  EXPECT_GE(small.weights_bytes, bytes);
  EXPECT_LE(small.weights_bytes, bytes + bytes / 10);
  config["preprocess.max_input_pixels"] = "100352";
  EXPECT_GT(DeclareMemory(*DescriptionOf(config)).scratch_bytes, small.scratch_bytes);
}

}  // namespace
}  // namespace mk::vmamba
