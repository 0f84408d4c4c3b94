// Builds small ONNX models in tests, a node a line.
#ifndef MERGEKERNEL_VERIFY_SCAN_TESTING_GRAPH_BUILDER_H_
#define MERGEKERNEL_VERIFY_SCAN_TESTING_GRAPH_BUILDER_H_

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "verify/scan/scan.h"

namespace mk::scan::testing {

using Sizes = std::vector<std::variant<int, const char*>>;  // a number, a symbol, or "" for unknown
using AttributeValue = std::variant<int64_t, int, double, const char*, std::vector<int64_t>,
                                    onnx::TensorProto, onnx::GraphProto>;
using Attributes = std::vector<std::pair<const char*, AttributeValue>>;

inline onnx::TensorProto Ints(std::vector<int64_t> values, std::vector<int64_t> dims) {
  onnx::TensorProto tensor;
  tensor.set_data_type(kInt64);
  for (const int64_t dim : dims) tensor.add_dims(dim);
  for (const int64_t value : values) tensor.add_int64_data(value);
  return tensor;
}
inline onnx::TensorProto Ints(std::vector<int64_t> values) {
  const auto size = static_cast<int64_t>(values.size());
  return Ints(std::move(values), {size});
}
inline onnx::TensorProto Scalar(int64_t value) { return Ints({value}, {}); }
inline onnx::TensorProto Floats(std::vector<float> values, std::vector<int64_t> dims) {
  onnx::TensorProto tensor;
  tensor.set_data_type(kFloat);
  for (const int64_t dim : dims) tensor.add_dims(dim);
  tensor.mutable_raw_data()->assign(reinterpret_cast<const char*>(values.data()),
                                    values.size() * 4);
  return tensor;
}
// Weights whose contents do not matter.
inline onnx::TensorProto Weights(std::vector<int64_t> dims) {
  onnx::TensorProto tensor;
  tensor.set_data_type(kFloat);
  size_t count = 1;
  for (const int64_t dim : dims) {
    tensor.add_dims(dim);
    count *= static_cast<size_t>(dim);
  }
  tensor.mutable_raw_data()->assign(count * 4, '\1');
  return tensor;
}

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string prefix = "") : prefix_(std::move(prefix)) {}

  std::string Input(const std::string& name, const Sizes& sizes, int32_t type = kFloat) {
    Describe(graph_.add_input(), name, sizes, type);
    return name;
  }
  void Output(const std::string& name) { graph_.add_output()->set_name(name); }
  std::string Const(const std::string& name, onnx::TensorProto tensor) {
    tensor.set_name(name);
    *graph_.add_initializer() = std::move(tensor);
    return name;
  }
  std::string Const(onnx::TensorProto tensor) { return Const(Fresh("c"), std::move(tensor)); }

  std::string Node(const char* op, std::vector<std::string> inputs,
                   const Attributes& attributes = {}) {
    return Nodes(op, std::move(inputs), 1, attributes)[0];
  }
  std::vector<std::string> Nodes(const char* op, std::vector<std::string> inputs, int outputs,
                                 const Attributes& attributes = {}, const char* domain = "") {
    onnx::NodeProto* node = graph_.add_node();
    node->set_op_type(op);
    node->set_name(Fresh(op));
    if (*domain) node->set_domain(domain);
    for (auto& input : inputs) node->add_input(std::move(input));
    std::vector<std::string> names;
    for (int i = 0; i < outputs; ++i) {
      names.push_back(Fresh("v"));
      node->add_output(names.back());
    }
    for (const auto& [name, value] : attributes) Set(node->add_attribute(), name, value);
    return names;
  }

  onnx::GraphProto& graph() { return graph_; }
  onnx::ModelProto Model(int64_t opset = 17) const {
    onnx::ModelProto model;
    model.set_ir_version(8);
    model.add_opset_import()->set_version(opset);
    *model.mutable_graph() = graph_;
    return model;
  }

 private:
  std::string Fresh(const std::string& stem) {
    return prefix_ + stem + "_" + std::to_string(next_++);
  }
  static void Describe(onnx::ValueInfoProto* info, const std::string& name, const Sizes& sizes,
                       int32_t type) {
    info->set_name(name);
    auto* tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const auto& size : sizes) {
      auto* dim = tensor->mutable_shape()->add_dim();
      if (const int* number = std::get_if<int>(&size)) dim->set_dim_value(*number);
      if (const char* const* symbol = std::get_if<const char*>(&size); symbol && **symbol)
        dim->set_dim_param(*symbol);
    }
  }
  static void Set(onnx::AttributeProto* to, const char* name, const AttributeValue& value) {
    to->set_name(name);
    if (const auto* i = std::get_if<int64_t>(&value)) to->set_i(*i);
    if (const auto* i = std::get_if<int>(&value)) to->set_i(*i);
    if (const auto* f = std::get_if<double>(&value)) to->set_f(static_cast<float>(*f));
    if (const auto* s = std::get_if<const char*>(&value)) to->set_s(*s);
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      for (const int64_t i : *list) to->add_ints(i);
    }
    if (const auto* tensor = std::get_if<onnx::TensorProto>(&value)) *to->mutable_t() = *tensor;
    if (const auto* graph = std::get_if<onnx::GraphProto>(&value)) *to->mutable_g() = *graph;
  }

  const std::string prefix_;
  onnx::GraphProto graph_;
  int next_ = 0;
};

inline absl::StatusOr<Report> ScanString(const std::string& bytes,
                                         const ScanOptions& options = {}) {
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  return ScanBytes(&stream, options);
}
inline absl::StatusOr<Report> ScanModel(const onnx::ModelProto& model,
                                        const ScanOptions& options = {}) {
  return ScanString(model.SerializeAsString(), options);
}
// "S1=1 S3=2": the structures found, without the spots that have none.
inline std::string Labels(const absl::StatusOr<Report>& report) {
  if (!report.ok()) return std::string(report.status().message());
  std::string text;
  for (int spot = 0; spot < kSpots; ++spot) {
    const int64_t count = report->counts[static_cast<size_t>(spot)];
    if (count)
      text += (text.empty() ? "" : " ") + std::string(SpotId(spot)) + "=" + std::to_string(count);
  }
  return text.empty() ? "none" : text;
}

}  // namespace mk::scan::testing

#endif  // MERGEKERNEL_VERIFY_SCAN_TESTING_GRAPH_BUILDER_H_
