#include "packs/vmamba/import/layout.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "packs/vmamba/weights.h"

namespace mk::vmamba {
namespace {

using Shape = std::vector<int64_t>;

// Bounds of what names may claim; ParseDescription judges the rest.
constexpr int64_t kMaxStages = 6;
constexpr int64_t kMaxBlocks = 64;
constexpr int64_t kMaxDim = int64_t{1} << 30;
constexpr int64_t kPublishedClasses = 1000;
constexpr size_t kMaxSuggestions = 32;  // each compares against every surplus name
constexpr size_t kMaxCompared = 2000;

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool IsBookkeeping(std::string_view name) {
  return name == "n_averaged" || EndsWith(name, ".total_ops") || EndsWith(name, ".total_params");
}

// The prefixes that every tensor of `tensors` but bookkeeping carries, joined.
std::string CommonPrefix(const std::vector<StoredTensorSpec>& tensors, const std::string& extra) {
  std::vector<std::string> known = {"module.", "_orig_mod.", "model."};
  if (!extra.empty()) known.insert(known.begin(), extra);
  std::string prefix;
  for (bool grew = true; grew;) {
    grew = false;
    for (const std::string& one : known) {
      const std::string longer = prefix + one;
      size_t with = 0, all = 0;
      for (const StoredTensorSpec& tensor : tensors) {
        if (IsBookkeeping(tensor.name)) continue;
        ++all;
        with += tensor.name.compare(0, longer.size(), longer) == 0 ? 1 : 0;
      }
      if (all == 0 || with != all) continue;
      prefix = longer;
      grew = true;
      break;
    }
  }
  return prefix;
}

// Levenshtein distance, for suggestions.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::string Nearest(const std::string& name, const std::vector<std::string>& names) {
  const std::string* best = nullptr;
  size_t best_distance = name.size() / 2 + 1;
  for (size_t i = 0; i < std::min(names.size(), kMaxCompared); ++i) {
    if (names[i].size() > 2 * name.size()) continue;
    const size_t distance = Distance(name, names[i]);
    if (distance < best_distance) best = &names[i], best_distance = distance;
  }
  return best != nullptr ? *best : "";
}

std::string Text(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

// A linear layer may be stored as the 1x1 convolution that it is: the same bytes.
bool SameBytes(const Shape& stored, const Shape& wanted) {
  if (stored == wanted) return true;
  return wanted.size() == 2 && stored.size() == 4 && stored[0] == wanted[0] &&
         stored[1] == wanted[1] && stored[2] == 1 && stored[3] == 1;
}

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

// Shapes by name, without prefix and bookkeeping.
class Shapes {
 public:
  void Add(const std::string& name, const Shape& shape) { by_name_.emplace(name, shape); }
  const Shape* Find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &found->second;
  }
  // Dim `dim` of `name` when it is there with `rank` dims (or with `rank` and a 1x1 window), or 0.
  int64_t Dim(const std::string& name, size_t rank, size_t dim) const {
    const Shape* shape = Find(name);
    if (shape == nullptr || (shape->size() != rank && !(rank == 2 && shape->size() == 4))) return 0;
    return (*shape)[dim];
  }
  const std::map<std::string, Shape>& all() const { return by_name_; }

 private:
  std::map<std::string, Shape> by_name_;
};

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
    CheckNoGate(block, inner);
    return {{"config.in_chans", std::to_string(chans)},
            {"config.embed_dim", std::to_string(embed)},
            {"config.depths", Join(depths)},
            {"config.num_classes", std::to_string(classes)},
            {"config.ssm_ratio", RatioText(inner, channels)},
            {"config.mlp_ratio", RatioText(hidden, channels)},
            {"config.d_state", std::to_string(state)},
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
                          (shape == nullptr ? ", is missing" : ", has shape " + Text(*shape)));
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

  void CheckNoGate(const std::string& block, int64_t inner) {
    const std::string name = block + ".op.in_proj.weight";
    if (shapes_.Dim(name, 2, 0) != 2 * inner) return;
    problems_.push_back("tensor '" + name + "' has " + std::to_string(2 * inner) + " rows for " +
                        std::to_string(inner) +
                        " inner channels: a gated block, which this pack does not serve (it serves "
                        "the forward type v05_noz)");
  }

  static std::string Join(const std::vector<int64_t>& depths) {
    std::string text;
    for (const int64_t depth : depths) text += (text.empty() ? "" : "-") + std::to_string(depth);
    return text;
  }

  const Shapes& shapes_;
  std::vector<std::string>& problems_;
};

// Holds what is there against what must be there.
void Compare(const std::vector<StoredTensorSpec>& tensors, const std::vector<size_t>& candidates,
             const std::vector<WeightSpec>& table, CheckpointLayout& layout) {
  std::map<std::string_view, const WeightSpec*> wanted;
  for (const WeightSpec& spec : table) wanted.emplace(spec.name, &spec);
  std::set<std::string_view> seen;
  std::vector<std::string> surplus, misshapen;
  for (const size_t index : candidates) {
    const std::string name = tensors[index].name.substr(layout.stripped_prefix.size());
    const auto found = wanted.find(name);
    if (found == wanted.end()) {
      surplus.push_back(name);
      continue;
    }
    const WeightSpec& spec = *found->second;
    seen.insert(spec.name);
    if (SameBytes(tensors[index].shape, spec.shape)) {
      layout.taken.push_back({index, spec.name, spec.shape});
    } else {
      misshapen.push_back("tensor '" + name + "' has shape " + Text(tensors[index].shape) +
                          ", expected " + Text(spec.shape));
    }
  }
  size_t suggestions = 0;
  for (const WeightSpec& spec : table) {
    if (seen.count(spec.name) != 0) continue;
    const std::string nearest = suggestions++ < kMaxSuggestions ? Nearest(spec.name, surplus) : "";
    layout.problems.push_back(
        "tensor '" + spec.name + "' " + Text(spec.shape) + " is missing" +
        (nearest.empty() ? "" : "; the nearest name in the file is '" + nearest + "'"));
  }
  layout.problems.insert(layout.problems.end(), misshapen.begin(), misshapen.end());
  for (const std::string& name : surplus) {
    layout.problems.push_back("tensor '" + name + "' is surplus");
  }
}

// "tiny", "small", "base", or "": the published line of forward type v05_noz.
std::string PublishedName(const std::map<std::string, std::string>& config) {
  struct Row {
    const char *name, *embed, *depths, *ratio;
  };
  static constexpr Row kRows[] = {{"tiny", "96", "2-2-8-2", "1.0"},
                                  {"small", "96", "2-2-15-2", "2.0"},
                                  {"base", "128", "2-2-15-2", "2.0"},
                                  {"small", "96", "2-2-20-2", "1.0"},
                                  {"base", "128", "2-2-20-2", "1.0"}};
  for (const Row& row : kRows) {
    if (config.at("config.embed_dim") == row.embed && config.at("config.depths") == row.depths &&
        config.at("config.ssm_ratio") == row.ratio && config.at("config.mlp_ratio") == "4.0" &&
        config.at("config.d_state") == "1" && config.at("config.dt_rank") == "auto" &&
        config.at("config.in_chans") == "3") {
      return row.name;
    }
  }
  return "";
}

// Preprocessing that fits every description, for the tables that do not depend on it.
std::map<std::string, std::string> WithPlainPreprocessing(std::map<std::string, std::string> p) {
  const bool colour = p["config.in_chans"] == "3";
  p["preprocess.resize"] = p["preprocess.crop"] = p["preprocess.pad"] = "0";
  p["preprocess.channels"] = p["config.in_chans"];
  p["preprocess.mean"] = colour ? "0,0,0" : "0";
  p["preprocess.std"] = colour ? "1,1,1" : "1";
  p["preprocess.max_encoded_pixels"] = "1";
  return p;
}

}  // namespace

CheckpointLayout ReadLayout(const std::vector<StoredTensorSpec>& tensors,
                            const std::string& extra_prefix) {
  CheckpointLayout layout;
  layout.stripped_prefix = CommonPrefix(tensors, extra_prefix);
  std::vector<size_t> candidates;
  Shapes shapes;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (IsBookkeeping(tensors[i].name)) {
      layout.dropped.push_back(i);
      continue;
    }
    candidates.push_back(i);
    shapes.Add(tensors[i].name.substr(layout.stripped_prefix.size()), tensors[i].shape);
  }
  layout.config = SizeReader(shapes, layout.problems).Read();
  if (layout.config.empty()) return layout;
  Result<Description> description = DescriptionOf(WithPlainPreprocessing(layout.config));
  if (!description.ok()) {
    layout.problems.push_back(description.status().message());
    return layout;
  }
  layout.published_name = PublishedName(layout.config);
  layout.published_head = description->num_classes == kPublishedClasses;
  Compare(tensors, candidates, WeightTable(*description), layout);
  return layout;
}

}  // namespace mk::vmamba
