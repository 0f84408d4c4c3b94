#include "verify/scan/findings.h"

#include <utility>

#include "core/base/text.h"

namespace mk::scan {
namespace {

constexpr size_t kRemarksKept = 200;

std::string Shapes(const Program& program, const Node& node) {
  std::string text;
  for (size_t i = 0; i < node.in.size() && i < 3; ++i) {
    if (node.in[i] == kNone) continue;
    text += (text.empty() ? "" : ", ") + ShapeText(program, node.in[i]);
  }
  if (node.in.size() > 3) text += ", ...";
  text += " ->";
  for (size_t i = 0; i < node.out.size() && i < 2; ++i)
    text += (i ? ", " : " ") + ShapeText(program, node.out[i]);
  if (node.out.size() > 2) text += ", ...";
  return text;
}

}  // namespace

const char* SpotId(int spot) {
  static constexpr const char* kIds[] = {"S1", "S2", "S3", "S4", "S5"};
  return kIds[spot];
}

const char* SpotTitle(int spot) {
  static constexpr const char* kTitles[] = {
      "data-dependent shape or control flow", "non-affine memory access",
      "complex or special operators", "non-standard attention topology",
      "recurrent state or variable length"};
  return kTitles[spot];
}

Structure* Findings::Add(Spot spot, std::string kind, std::string note) {
  const auto at = static_cast<size_t>(spot);
  ++counts_[at];
  if (structures_[at].size() >= kStructuresKept) {
    spare_[at] = {};
    return &spare_[at];
  }
  structures_[at].push_back({std::move(kind), std::move(note), {}, 0});
  return &structures_[at].back();
}

bool Findings::Count(Structure* structure) {
  ++structure->site_count;
  bool keeps = structure->sites.size() < kSitesKept;
  for (size_t spot = 0; spot < kSpots; ++spot) {
    const auto& list = structures_[spot];
    if (structure == &spare_[spot]) keeps = false;
    if (structure == &spare_[spot] || (!list.empty() && structure == &list.back()))
      keeps = ++site_counts_[spot] <= kSitesKeptPerSpot && keeps;
  }
  return keeps;
}

void Findings::AddSite(Structure* structure, NodeId id) {
  if (!Count(structure)) return;
  const Node& node = program_.node(id);
  structure->sites.push_back({id, NodeName(program_, node), Printable(node.proto->op_type(), 80),
                              ScopeName(program_, node), Shapes(program_, node)});
}

void Findings::AddTensor(Structure* structure, ValueId value) {
  if (!Count(structure)) return;
  structure->sites.push_back({program_.value(value).producer, Printable(program_.value(value).name),
                              "tensor", "", ShapeText(program_, value)});
}

void Findings::AddRemark(const char* code, NodeId node, std::string text) {
  if (remarks_.size() >= kRemarksKept) return;
  remarks_.push_back(
      {code, node == kNone ? "" : NodeName(program_, program_.node(node)), std::move(text)});
}

void Findings::AddHidden(NodeId node, std::string why) {
  ++hidden_count_;
  if (hidden_.size() >= kRemarksKept) return;
  hidden_.push_back({"hidden-op", NodeName(program_, program_.node(node)), std::move(why)});
}

}  // namespace mk::scan
