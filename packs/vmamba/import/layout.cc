#include "packs/vmamba/import/layout.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "packs/vmamba/import/sizes.h"
#include "packs/vmamba/weights.h"

namespace mk::vmamba {
namespace {

constexpr int64_t kPublishedClasses = 1000;
constexpr size_t kMaxSuggestions = 32;  // each compares against every surplus name

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

// A linear layer may be stored as the 1x1 convolution that it is: the same bytes.
bool SameBytes(const Shape& stored, const Shape& wanted) {
  if (stored == wanted) return true;
  return wanted.size() == 2 && stored.size() == 4 && stored[0] == wanted[0] &&
         stored[1] == wanted[1] && stored[2] == 1 && stored[3] == 1;
}

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
      misshapen.push_back("tensor '" + name + "' has shape " + ShapeText(tensors[index].shape) +
                          ", expected " + ShapeText(spec.shape));
    }
  }
  size_t suggestions = 0;
  for (const WeightSpec& spec : table) {
    if (seen.count(spec.name) != 0) continue;
    const std::string nearest =
        suggestions++ < kMaxSuggestions ? Nearest(spec.name, surplus, spec.name.size() / 2) : "";
    layout.problems.push_back(
        "tensor '" + spec.name + "' " + ShapeText(spec.shape) + " is missing" +
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
        config.at("config.in_chans") == "3" && config.at("config.forward_type") == "v05_noz") {
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
  layout.config = ReadSizes(shapes, layout.problems);
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
