#include "verify/scan/program.h"

#include "core/base/text.h"

namespace mk::scan {

const onnx::AttributeProto* FindAttribute(const onnx::NodeProto& node, const char* name) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

int64_t IntAttribute(const onnx::NodeProto& node, const char* name, int64_t fallback) {
  const auto* attribute = FindAttribute(node, name);
  return attribute && attribute->has_i() ? attribute->i() : fallback;
}

double FloatAttribute(const onnx::NodeProto& node, const char* name, double fallback) {
  const auto* attribute = FindAttribute(node, name);
  return attribute && attribute->has_f() ? static_cast<double>(attribute->f()) : fallback;
}

std::string TextAttribute(const onnx::NodeProto& node, const char* name, const char* fallback) {
  const auto* attribute = FindAttribute(node, name);
  return attribute && attribute->has_s() ? attribute->s() : fallback;
}

std::vector<int64_t> IntsAttribute(const onnx::NodeProto& node, const char* name) {
  const auto* attribute = FindAttribute(node, name);
  if (!attribute) return {};
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::string ShapeText(const Program& program, ValueId id) {
  if (id == kNone) return "";
  const Value& value = program.value(id);
  if (!value.has_rank) return "?";
  std::string text = "[";
  for (size_t i = 0; i < value.dims.size(); ++i) {
    const Dim dim = value.dims[i];
    if (i) text += ", ";
    if (dim >= 0) {
      text += std::to_string(dim);
    } else if (IsSymbol(dim)) {
      text += Printable(program.symbols[static_cast<size_t>(-2 - dim)], 40);
    } else {
      text += "?";
    }
  }
  return text + "]";
}

std::string NodeName(const Program& program, const Node& node) {
  if (!node.proto->name().empty()) return Printable(node.proto->name());
  for (const ValueId out : node.out) {
    if (out != kNone) return Printable(program.value(out).name);
  }
  return "(no name)";
}

std::string ScopeName(const Program& program, const Node& node) {
  std::string text = program.paths[static_cast<size_t>(node.site_name)];
  const std::string& body = program.scopes[static_cast<size_t>(node.scope)].path;
  if (!text.empty() && !body.empty()) text += "/";
  return Printable(text + body, 300);
}

}  // namespace mk::scan
