#include "packs/vmamba/import/sizes.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace mk::vmamba {
namespace {

// Bounds of what names and shapes may claim; ParseDescription judges the rest.
constexpr int64_t kMaxStages = 6;
constexpr int64_t kMaxBlocks = 64;
constexpr int64_t kMaxDim = int64_t{1} << 30;

// A number of the name at `at`, digits only and without leading zeros: layers.<number>.
std::optional<int64_t> NumberAt(std::string_view name, size_t at) {
  size_t end = at;
  int64_t value = 0;
  while (end < name.size() && name[end] >= '0' && name[end] <= '9' && end - at < 6) {
    value = value * 10 + (name[end++] - '0');
  }
  if (end == at || end == name.size() || name[end] != '.') return std::nullopt;
  if (name[at] == '0' && end - at > 1) return std::nullopt;
  return value;
}

// The shortest text of inner / channels that a double reads back such that the pack computes
// `inner` from it.
std::string RatioText(int64_t inner, int64_t channels) {
  const double ratio = static_cast<double>(inner) / static_cast<double>(channels);
  char text[40] = "1.0";
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*f", digits, ratio);
    if (static_cast<int64_t>(std::strtod(text, nullptr) * static_cast<double>(channels)) == inner) {
      break;
    }
  }
  return text;
}

// Reads the sizes off the tensors that tell them.
class SizeReader {
 public:
  SizeReader(const Shapes& shapes, std::vector<std::string>& problems)
      : shapes_(shapes), problems_(problems) {}

  std::map<std::string, std::string> Read() {
    const std::vector<int64_t> depths = Depths();
    const int64_t embed = Require("patch_embed.5.weight", 4, 0, "config.embed_dim");
    const int64_t chans = Require("patch_embed.0.weight", 4, 1, "config.in_chans");
    const int64_t classes = Require("classifier.head.weight", 2, 0, "config.num_classes");
    if (depths.empty() || embed <= 0 || embed > 65536 || chans <= 0 || classes <= 0) return {};
    int64_t stage = 0;
    const std::string block = FirstBlock(depths, &stage);
    if (block.empty()) return {};
    const int64_t channels = embed << stage;
    const int64_t inner = Require(block + ".op.conv2d.weight", 4, 0, "config.ssm_ratio");
    const int64_t hidden = Require(block + ".mlp.fc1.weight", 2, 0, "config.mlp_ratio");
    const int64_t state = Require(block + ".op.A_logs", 2, 1, "config.d_state");
    const int64_t rank = Require(block + ".op.dt_projs_weight", 3, 2, "config.dt_rank");
    if (inner <= 0 || hidden <= 0 || state <= 0 || rank <= 0) return {};
    return {{"config.in_chans", std::to_string(chans)},
            {"config.embed_dim", std::to_string(embed)},
            {"config.depths", Join(depths)},
            {"config.num_classes", std::to_string(classes)},
            {"config.ssm_ratio", RatioText(inner, channels)},
            {"config.mlp_ratio", RatioText(hidden, channels)},
            {"config.d_state", std::to_string(state)},
            {"config.forward_type", ForwardType(block, inner)},
            {"config.dt_rank",
             RankIsAuto(rank, channels, embed, depths.size()) ? "auto" : std::to_string(rank)}};
  }

 private:
  // Blocks of each stage, by the numbers in the names. A gap is a missing tensor, found later.
  std::vector<int64_t> Depths() {
    std::vector<int64_t> depths;
    constexpr std::string_view kLayers = "layers.", kBlocks = ".blocks.";
    for (const auto& [name, shape] : shapes_.all()) {
      if (name.compare(0, kLayers.size(), kLayers) != 0) continue;
      const auto stage = NumberAt(name, kLayers.size());
      if (!stage) continue;
      const size_t at = kLayers.size() + std::to_string(*stage).size();
      if (name.compare(at, kBlocks.size(), kBlocks) != 0) continue;
      const auto block = NumberAt(name, at + kBlocks.size());
      if (!block) continue;
      if (*stage >= kMaxStages || *block >= kMaxBlocks) {
        problems_.push_back("tensor '" + name + "' names stage " + std::to_string(*stage) +
                            ", block " + std::to_string(*block) + "; the pack takes up to " +
                            std::to_string(kMaxStages) + " stages of " +
                            std::to_string(kMaxBlocks) + " blocks");
        return {};
      }
      depths.resize(std::max(depths.size(), static_cast<size_t>(*stage) + 1), 1);
      depths[static_cast<size_t>(*stage)] =
          std::max(depths[static_cast<size_t>(*stage)], *block + 1);
    }
    if (depths.empty()) {
      problems_.push_back("no tensor is called layers.<stage>.blocks.<block>.*" + OtherNames());
    }
    return depths;
  }

  // What else the names look like, for a reader who took the wrong file.
  std::string OtherNames() const {
    for (const auto& [name, shape] : shapes_.all()) {
      if (name.find(".self_attention.") != name.npos || name.find(".ln_1.") != name.npos) {
        return ": '" + name + "' is of the first VMamba code, whose layout is another";
      }
    }
    return shapes_.all().empty() ? ""
                                 : "; the first is called '" + shapes_.all().begin()->first + "'";
  }

  int64_t Require(const std::string& name, size_t rank, size_t dim, const char* tells) {
    const int64_t value = shapes_.Dim(name, rank, dim);
    if (value <= 0 || value > kMaxDim) {
      const Shape* shape = shapes_.Find(name);
      problems_.push_back("tensor '" + name + "', which tells " + tells +
                          (shape == nullptr ? ", is missing" : ", has shape " + ShapeText(*shape)));
      return 0;
    }
    return value;
  }

  // The first block that has all the tensors that tell sizes, else the very first.
  std::string FirstBlock(const std::vector<int64_t>& depths, int64_t* stage) const {
    for (size_t i = 0; i < depths.size(); ++i) {
      for (int64_t j = 0; j < depths[i]; ++j) {
        const std::string block = "layers." + std::to_string(i) + ".blocks." + std::to_string(j);
        bool complete = true;
        for (const char* name :
             {".op.conv2d.weight", ".mlp.fc1.weight", ".op.A_logs", ".op.dt_projs_weight"}) {
          complete = complete && shapes_.Find(block + name) != nullptr;
        }
        *stage = static_cast<int64_t>(i);
        if (complete) return block;
      }
    }
    *stage = 0;
    return "layers.0.blocks.0";
  }

  // Whether `rank`, found in a stage of `channels`, is the rank by the rule ceil(channels / 16). A
  // fixed rank can be equal to it in one stage; the last stage tells then.
  bool RankIsAuto(int64_t rank, int64_t channels, int64_t embed, size_t stages) const {
    const int64_t last =
        shapes_.Dim("layers." + std::to_string(stages - 1) + ".blocks.0.op.dt_projs_weight", 3, 2);
    const bool fixed = last == rank && last != ((embed << (stages - 1)) + 15) / 16;
    return rank == (channels + 15) / 16 && !fixed;
  }

  // A gated block projects to x and z, twice the inner channels.
  const char* ForwardType(const std::string& block, int64_t inner) const {
    return shapes_.Dim(block + ".op.in_proj.weight", 2, 0) == 2 * inner ? "v05" : "v05_noz";
  }

  static std::string Join(const std::vector<int64_t>& depths) {
    std::string text;
    for (const int64_t depth : depths) text += (text.empty() ? "" : "-") + std::to_string(depth);
    return text;
  }

  const Shapes& shapes_;
  std::vector<std::string>& problems_;
};

}  // namespace

std::string ShapeText(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

std::map<std::string, std::string> ReadSizes(const Shapes& shapes,
                                             std::vector<std::string>& problems) {
  return SizeReader(shapes, problems).Read();
}

}  // namespace mk::vmamba
