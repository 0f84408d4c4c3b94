// Recursive descent over the wire format, one function per message that can be large; the small
// leaves (types, properties) are left to protobuf's own parser inside a length limit.
#include "verify/scan/reader.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace mk::scan {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::ZeroCopyInputStream;
using WireFormat = google::protobuf::internal::WireFormatLite;

class Reader {
 public:
  Reader(CodedInputStream& in, const ReadLimits& limits,
         const std::function<void(int64_t)>& progress)
      : in_(in), limits_(limits), progress_(progress) {}

  absl::Status Model(onnx::ModelProto* model);

 private:
  absl::Status Graph(onnx::GraphProto* graph);
  absl::Status Function(onnx::FunctionProto* function);
  absl::Status Node(onnx::NodeProto* node);
  absl::Status Attribute(onnx::AttributeProto* attribute);
  absl::Status Tensor(onnx::TensorProto* tensor);
  absl::Status Sparse(onnx::SparseTensorProto* sparse);

  // Calls `read` on a nested message, which must end where its length says.
  template <typename Message>
  absl::Status Nested(absl::Status (Reader::*read)(Message*), Message* message);
  template <typename Message>
  absl::Status Leaf(Message* message);
  absl::Status Text(std::string* text);
  template <typename Fn>  // void(CodedInputStream&): reads one element
  absl::Status Packed(uint32_t tag, uint64_t kept_limit, uint64_t* skipped, Fn one);
  absl::Status Data(onnx::TensorProto* tensor);
  absl::Status Skip(uint32_t tag);
  absl::Status Count(int64_t items);
  absl::Status Broken(const char* what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("not an ONNX model: ", what, " near byte ", in_.CurrentPosition()));
  }
  // How much of a tensor's data is worth keeping: index tables and shapes, and square matrices (a
  // rotation may be hidden in one); of other numbers only what is short.
  uint32_t KeptBytes(const onnx::TensorProto& tensor) const {
    const bool is_int =
        tensor.data_type() == 6 || tensor.data_type() == 7 || tensor.data_type() == 9;
    const bool is_square = tensor.dims_size() == 2 && tensor.dims(0) == tensor.dims(1);
    return is_int || is_square ? limits_.kept_tensor_bytes : limits_.kept_number_bytes;
  }

  CodedInputStream& in_;
  const ReadLimits& limits_;
  const std::function<void(int64_t)>& progress_;
  int64_t items_ = 0;
  uint64_t text_ = 0;
  uint64_t kept_ = 0;
  int depth_ = 0;
};

absl::Status Reader::Count(int64_t items) {
  items_ += items;
  if (items_ > limits_.items)
    return absl::InvalidArgumentError(
        absl::StrCat("the model holds more than ", limits_.items, " nodes, names and numbers"));
  if (progress_ && items_ % 4096 == 0) progress_(in_.CurrentPosition());
  return absl::OkStatus();
}

absl::Status Reader::Skip(uint32_t tag) {
  if (WireFormat::GetTagWireType(tag) == WireFormat::WIRETYPE_LENGTH_DELIMITED) {
    uint32_t length;
    if (!in_.ReadVarint32(&length) || !in_.Skip(static_cast<int>(length)))
      return Broken("a field ends past its message");
    return absl::OkStatus();
  }
  return WireFormat::SkipField(&in_, tag) ? absl::OkStatus() : Broken("a field cannot be read");
}

absl::Status Reader::Text(std::string* text) {
  MK_RETURN_IF_ERROR(Count(1));
  uint32_t length;
  if (!in_.ReadVarint32(&length)) return Broken("a length cannot be read");
  if (length > limits_.name_bytes)
    return absl::InvalidArgumentError(absl::StrCat("a name of ", length, " bytes is longer than ",
                                                   limits_.name_bytes, ", near byte ",
                                                   in_.CurrentPosition()));
  text_ += length;
  if (text_ > limits_.text_bytes)
    return absl::InvalidArgumentError(
        absl::StrCat("the names of the model pass ", limits_.text_bytes, " bytes"));
  return in_.ReadString(text, static_cast<int>(length)) ? absl::OkStatus()
                                                        : Broken("a name is cut off");
}

template <typename Message>
absl::Status Reader::Nested(absl::Status (Reader::*read)(Message*), Message* message) {
  MK_RETURN_IF_ERROR(Count(1));
  uint32_t length;
  if (!in_.ReadVarint32(&length)) return Broken("a length cannot be read");
  // A negative or overlong length is clipped by PushLimit to the enclosing one, so it is compared.
  const int enclosing = in_.BytesUntilLimit();
  if (length > INT32_MAX || (enclosing >= 0 && length > static_cast<uint32_t>(enclosing)))
    return Broken("a message is longer than what holds it");
  const auto limit = in_.PushLimit(static_cast<int>(length));
  MK_RETURN_IF_ERROR((this->*read)(message));
  if (in_.BytesUntilLimit() != 0) return Broken("a message is cut off");
  in_.PopLimit(limit);
  return absl::OkStatus();
}

// Types, opset imports and properties: short, or refused.
template <typename Message>
absl::Status Reader::Leaf(Message* message) {
  uint32_t length;
  if (!in_.ReadVarint32(&length)) return Broken("a length cannot be read");
  if (length > limits_.name_bytes)
    return absl::InvalidArgumentError(absl::StrCat(message->GetTypeName(), " of ", length,
                                                   " bytes is longer than ", limits_.name_bytes));
  // Its smallest part (an empty dimension) is two bytes long.
  MK_RETURN_IF_ERROR(Count(1 + length / 2));
  text_ += length;
  if (text_ > limits_.text_bytes)
    return absl::InvalidArgumentError(
        absl::StrCat("the names of the model pass ", limits_.text_bytes, " bytes"));
  std::string bytes;
  if (!in_.ReadString(&bytes, static_cast<int>(length))) return Broken("a message is cut off");
  CodedInputStream nested(reinterpret_cast<const uint8_t*>(bytes.data()),
                          static_cast<int>(bytes.size()));
  nested.SetRecursionLimit(32);
  if (!message->MergeFromCodedStream(&nested) || !nested.ConsumedEntireMessage())
    return Broken(message->GetTypeName().c_str());
  return absl::OkStatus();
}

// A repeated number, packed or not. Elements past `kept_limit` bytes are skipped and counted.
template <typename Fn>
absl::Status Reader::Packed(uint32_t tag, uint64_t kept_limit, uint64_t* skipped, Fn one) {
  if (WireFormat::GetTagWireType(tag) != WireFormat::WIRETYPE_LENGTH_DELIMITED) {
    MK_RETURN_IF_ERROR(Count(1));
    kept_ += 8;
    return one(in_) ? absl::OkStatus() : Broken("a number cannot be read");
  }
  uint32_t length;
  if (!in_.ReadVarint32(&length)) return Broken("a length cannot be read");
  if (skipped == nullptr && length > kept_limit)
    return absl::InvalidArgumentError(
        absl::StrCat("a list of ", length, " bytes is longer than ", kept_limit));
  if (skipped != nullptr && (length > kept_limit || kept_ + length > limits_.kept_total_bytes)) {
    *skipped += length;
    return in_.Skip(static_cast<int>(length)) ? absl::OkStatus() : Broken("tensor data is cut off");
  }
  if (skipped != nullptr) kept_ += length;
  MK_RETURN_IF_ERROR(Count(1 + length / 4));
  const int enclosing = in_.BytesUntilLimit();
  if (enclosing >= 0 && length > static_cast<uint32_t>(enclosing))
    return Broken("a list is longer than what holds it");
  const auto limit = in_.PushLimit(static_cast<int>(length));
  while (in_.BytesUntilLimit() > 0) {
    if (!one(in_)) return Broken("a number cannot be read");
  }
  in_.PopLimit(limit);
  return absl::OkStatus();
}

absl::Status Reader::Data(onnx::TensorProto* tensor) {
  uint32_t length;
  if (!in_.ReadVarint32(&length) || length > INT32_MAX) return Broken("a length cannot be read");
  if (length <= KeptBytes(*tensor) && kept_ + length <= limits_.kept_total_bytes) {
    kept_ += length;
    return in_.ReadString(tensor->mutable_raw_data(), static_cast<int>(length))
               ? absl::OkStatus()
               : Broken("tensor data is cut off");
  }
  tensor->set_skipped_bytes(tensor->skipped_bytes() + length);
  return in_.Skip(static_cast<int>(length)) ? absl::OkStatus() : Broken("tensor data is cut off");
}

template <typename T, WireFormat::FieldType kType>
bool ReadOne(CodedInputStream& in, google::protobuf::RepeatedField<T>* out) {
  T value;
  if (!WireFormat::ReadPrimitive<T, kType>(&in, &value)) return false;
  out->Add(value);
  return true;
}

absl::Status Reader::Tensor(onnx::TensorProto* tensor) {
  uint64_t skipped = 0;
  while (const uint32_t tag = in_.ReadTag()) {
    const uint64_t kept = KeptBytes(*tensor);
    switch (WireFormat::GetTagFieldNumber(tag)) {
      case onnx::TensorProto::kDimsFieldNumber:
        MK_RETURN_IF_ERROR(Packed(tag, 1 << 10, nullptr, [&](CodedInputStream& in) {
          return ReadOne<int64_t, WireFormat::TYPE_INT64>(in, tensor->mutable_dims());
        }));
        break;
      case onnx::TensorProto::kDataTypeFieldNumber: {
        uint32_t type;
        if (!in_.ReadVarint32(&type)) return Broken("an element type cannot be read");
        tensor->set_data_type(static_cast<int32_t>(type));
        break;
      }
      case onnx::TensorProto::kFloatDataFieldNumber:
        MK_RETURN_IF_ERROR(Packed(tag, kept, &skipped, [&](CodedInputStream& in) {
          return ReadOne<float, WireFormat::TYPE_FLOAT>(in, tensor->mutable_float_data());
        }));
        break;
      case onnx::TensorProto::kInt32DataFieldNumber:
        MK_RETURN_IF_ERROR(Packed(tag, kept, &skipped, [&](CodedInputStream& in) {
          return ReadOne<int32_t, WireFormat::TYPE_INT32>(in, tensor->mutable_int32_data());
        }));
        break;
      case onnx::TensorProto::kInt64DataFieldNumber:
        MK_RETURN_IF_ERROR(Packed(tag, kept, &skipped, [&](CodedInputStream& in) {
          return ReadOne<int64_t, WireFormat::TYPE_INT64>(in, tensor->mutable_int64_data());
        }));
        break;
      case onnx::TensorProto::kDoubleDataFieldNumber:
        MK_RETURN_IF_ERROR(Packed(tag, kept, &skipped, [&](CodedInputStream& in) {
          return ReadOne<double, WireFormat::TYPE_DOUBLE>(in, tensor->mutable_double_data());
        }));
        break;
      case onnx::TensorProto::kUint64DataFieldNumber:
        MK_RETURN_IF_ERROR(Packed(tag, kept, &skipped, [&](CodedInputStream& in) {
          return ReadOne<uint64_t, WireFormat::TYPE_UINT64>(in, tensor->mutable_uint64_data());
        }));
        break;
      case onnx::TensorProto::kNameFieldNumber:
        MK_RETURN_IF_ERROR(Text(tensor->mutable_name()));
        break;
      case onnx::TensorProto::kRawDataFieldNumber:
        MK_RETURN_IF_ERROR(Data(tensor));
        break;
      case onnx::TensorProto::kExternalDataFieldNumber:
        MK_RETURN_IF_ERROR(Leaf(tensor->add_external_data()));
        break;
      case onnx::TensorProto::kDataLocationFieldNumber: {
        uint32_t location;
        if (!in_.ReadVarint32(&location)) return Broken("a data location cannot be read");
        tensor->set_data_location(static_cast<int32_t>(location));
        break;
      }
      default:
        MK_RETURN_IF_ERROR(Skip(tag));
    }
  }
  if (skipped != 0) tensor->set_skipped_bytes(tensor->skipped_bytes() + skipped);
  return absl::OkStatus();
}

absl::Status Reader::Sparse(onnx::SparseTensorProto* sparse) {
  while (const uint32_t tag = in_.ReadTag()) {
    switch (WireFormat::GetTagFieldNumber(tag)) {
      case onnx::SparseTensorProto::kValuesFieldNumber:
        MK_RETURN_IF_ERROR(Nested(&Reader::Tensor, sparse->mutable_values()));
        break;
      case onnx::SparseTensorProto::kIndicesFieldNumber:
        MK_RETURN_IF_ERROR(Nested(&Reader::Tensor, sparse->mutable_indices()));
        break;
      case onnx::SparseTensorProto::kDimsFieldNumber:
        MK_RETURN_IF_ERROR(Packed(tag, 1 << 10, nullptr, [&](CodedInputStream& in) {
          return ReadOne<int64_t, WireFormat::TYPE_INT64>(in, sparse->mutable_dims());
        }));
        break;
      default:
        MK_RETURN_IF_ERROR(Skip(tag));
    }
  }
  return absl::OkStatus();
}

absl::Status Reader::Attribute(onnx::AttributeProto* attribute) {
  const uint64_t kept = limits_.kept_tensor_bytes;
  while (const uint32_t tag = in_.ReadTag()) {
    switch (WireFormat::GetTagFieldNumber(tag)) {
      case onnx::AttributeProto::kNameFieldNumber:
        MK_RETURN_IF_ERROR(Text(attribute->mutable_name()));
        break;
      case onnx::AttributeProto::kFFieldNumber: {
        float value;
        if (!WireFormat::ReadPrimitive<float, WireFormat::TYPE_FLOAT>(&in_, &value))
          return Broken("an attribute cannot be read");
        attribute->set_f(value);
        break;
      }
      case onnx::AttributeProto::kIFieldNumber: {
        uint64_t value;
        if (!in_.ReadVarint64(&value)) return Broken("an attribute cannot be read");
        attribute->set_i(static_cast<int64_t>(value));
        break;
      }
      case onnx::AttributeProto::kSFieldNumber: {
        // Text of a foreign operator can be long (a serialised engine); no rule reads it then.
        uint32_t length;
        if (!in_.ReadVarint32(&length)) return Broken("a length cannot be read");
        if (length <= 1024 ? !in_.ReadString(attribute->mutable_s(), static_cast<int>(length))
                           : !in_.Skip(static_cast<int>(length)))
          return Broken("an attribute is cut off");
        break;
      }
      case onnx::AttributeProto::kTFieldNumber:
        MK_RETURN_IF_ERROR(Nested(&Reader::Tensor, attribute->mutable_t()));
        break;
      case onnx::AttributeProto::kGFieldNumber:
        MK_RETURN_IF_ERROR(Nested(&Reader::Graph, attribute->mutable_g()));
        break;
      case onnx::AttributeProto::kFloatsFieldNumber:
        MK_RETURN_IF_ERROR(Packed(tag, kept, nullptr, [&](CodedInputStream& in) {
          return ReadOne<float, WireFormat::TYPE_FLOAT>(in, attribute->mutable_floats());
        }));
        break;
      case onnx::AttributeProto::kIntsFieldNumber:
        MK_RETURN_IF_ERROR(Packed(tag, kept, nullptr, [&](CodedInputStream& in) {
          return ReadOne<int64_t, WireFormat::TYPE_INT64>(in, attribute->mutable_ints());
        }));
        break;
      case onnx::AttributeProto::kStringsFieldNumber:
        MK_RETURN_IF_ERROR(Text(attribute->add_strings()));
        break;
      case onnx::AttributeProto::kTensorsFieldNumber:
        MK_RETURN_IF_ERROR(Nested(&Reader::Tensor, attribute->add_tensors()));
        break;
      case onnx::AttributeProto::kGraphsFieldNumber:
        MK_RETURN_IF_ERROR(Nested(&Reader::Graph, attribute->add_graphs()));
        break;
      case onnx::AttributeProto::kTypeFieldNumber: {
        uint32_t type;
        if (!in_.ReadVarint32(&type)) return Broken("an attribute's type cannot be read");
        attribute->set_type(static_cast<int32_t>(type));
        break;
      }
      case onnx::AttributeProto::kRefAttrNameFieldNumber:
        MK_RETURN_IF_ERROR(Text(attribute->mutable_ref_attr_name()));
        break;
      case onnx::AttributeProto::kSparseTensorFieldNumber:
        MK_RETURN_IF_ERROR(Nested(&Reader::Sparse, attribute->mutable_sparse_tensor()));
        break;
      default:
        MK_RETURN_IF_ERROR(Skip(tag));
    }
  }
  return absl::OkStatus();
}

absl::Status Reader::Node(onnx::NodeProto* node) {
  while (const uint32_t tag = in_.ReadTag()) {
    switch (WireFormat::GetTagFieldNumber(tag)) {
      case onnx::NodeProto::kInputFieldNumber:
        MK_RETURN_IF_ERROR(Text(node->add_input()));
        break;
      case onnx::NodeProto::kOutputFieldNumber:
        MK_RETURN_IF_ERROR(Text(node->add_output()));
        break;
      case onnx::NodeProto::kNameFieldNumber:
        MK_RETURN_IF_ERROR(Text(node->mutable_name()));
        break;
      case onnx::NodeProto::kOpTypeFieldNumber:
        MK_RETURN_IF_ERROR(Text(node->mutable_op_type()));
        break;
      case onnx::NodeProto::kAttributeFieldNumber:
        MK_RETURN_IF_ERROR(Nested(&Reader::Attribute, node->add_attribute()));
        break;
      case onnx::NodeProto::kDomainFieldNumber:
        MK_RETURN_IF_ERROR(Text(node->mutable_domain()));
        break;
      case onnx::NodeProto::kOverloadFieldNumber:
        MK_RETURN_IF_ERROR(Text(node->mutable_overload()));
        break;
      default:
        // metadata_props too: exporters put whole stack traces there.
        MK_RETURN_IF_ERROR(Skip(tag));
    }
  }
  return absl::OkStatus();
}

absl::Status Reader::Graph(onnx::GraphProto* graph) {
  if (++depth_ > limits_.graph_depth)
    return absl::InvalidArgumentError(
        absl::StrCat("graphs are nested more than ", limits_.graph_depth, " deep"));
  while (const uint32_t tag = in_.ReadTag()) {
    switch (WireFormat::GetTagFieldNumber(tag)) {
      case onnx::GraphProto::kNodeFieldNumber:
        MK_RETURN_IF_ERROR(Nested(&Reader::Node, graph->add_node()));
        break;
      case onnx::GraphProto::kNameFieldNumber:
        MK_RETURN_IF_ERROR(Text(graph->mutable_name()));
        break;
      case onnx::GraphProto::kInitializerFieldNumber:
        MK_RETURN_IF_ERROR(Nested(&Reader::Tensor, graph->add_initializer()));
        break;
      case onnx::GraphProto::kSparseInitializerFieldNumber:
        MK_RETURN_IF_ERROR(Nested(&Reader::Sparse, graph->add_sparse_initializer()));
        break;
      case onnx::GraphProto::kInputFieldNumber:
        MK_RETURN_IF_ERROR(Leaf(graph->add_input()));
        break;
      case onnx::GraphProto::kOutputFieldNumber:
        MK_RETURN_IF_ERROR(Leaf(graph->add_output()));
        break;
      case onnx::GraphProto::kValueInfoFieldNumber:
        MK_RETURN_IF_ERROR(Leaf(graph->add_value_info()));
        break;
      default:
        MK_RETURN_IF_ERROR(Skip(tag));
    }
  }
  --depth_;
  return absl::OkStatus();
}

absl::Status Reader::Function(onnx::FunctionProto* function) {
  while (const uint32_t tag = in_.ReadTag()) {
    switch (WireFormat::GetTagFieldNumber(tag)) {
      case onnx::FunctionProto::kNameFieldNumber:
        MK_RETURN_IF_ERROR(Text(function->mutable_name()));
        break;
      case onnx::FunctionProto::kInputFieldNumber:
        MK_RETURN_IF_ERROR(Text(function->add_input()));
        break;
      case onnx::FunctionProto::kOutputFieldNumber:
        MK_RETURN_IF_ERROR(Text(function->add_output()));
        break;
      case onnx::FunctionProto::kAttributeFieldNumber:
        MK_RETURN_IF_ERROR(Text(function->add_attribute()));
        break;
      case onnx::FunctionProto::kAttributeProtoFieldNumber:
        MK_RETURN_IF_ERROR(Nested(&Reader::Attribute, function->add_attribute_proto()));
        break;
      case onnx::FunctionProto::kNodeFieldNumber:
        MK_RETURN_IF_ERROR(Nested(&Reader::Node, function->add_node()));
        break;
      case onnx::FunctionProto::kOpsetImportFieldNumber:
        MK_RETURN_IF_ERROR(Leaf(function->add_opset_import()));
        break;
      case onnx::FunctionProto::kDomainFieldNumber:
        MK_RETURN_IF_ERROR(Text(function->mutable_domain()));
        break;
      case onnx::FunctionProto::kOverloadFieldNumber:
        MK_RETURN_IF_ERROR(Text(function->mutable_overload()));
        break;
      case onnx::FunctionProto::kValueInfoFieldNumber:
        MK_RETURN_IF_ERROR(Leaf(function->add_value_info()));
        break;
      default:
        MK_RETURN_IF_ERROR(Skip(tag));
    }
  }
  return absl::OkStatus();
}

absl::Status Reader::Model(onnx::ModelProto* model) {
  while (const uint32_t tag = in_.ReadTag()) {
    switch (WireFormat::GetTagFieldNumber(tag)) {
      case onnx::ModelProto::kIrVersionFieldNumber: {
        uint64_t version;
        if (!in_.ReadVarint64(&version)) return Broken("the IR version cannot be read");
        model->set_ir_version(static_cast<int64_t>(version));
        break;
      }
      case onnx::ModelProto::kProducerNameFieldNumber:
        MK_RETURN_IF_ERROR(Text(model->mutable_producer_name()));
        break;
      case onnx::ModelProto::kProducerVersionFieldNumber:
        MK_RETURN_IF_ERROR(Text(model->mutable_producer_version()));
        break;
      case onnx::ModelProto::kGraphFieldNumber:
        if (model->has_graph()) return Broken("a second graph");
        MK_RETURN_IF_ERROR(Nested(&Reader::Graph, model->mutable_graph()));
        break;
      case onnx::ModelProto::kOpsetImportFieldNumber:
        MK_RETURN_IF_ERROR(Leaf(model->add_opset_import()));
        break;
      case onnx::ModelProto::kFunctionsFieldNumber:
        MK_RETURN_IF_ERROR(Nested(&Reader::Function, model->add_functions()));
        break;
      default:
        MK_RETURN_IF_ERROR(Skip(tag));
    }
  }
  return in_.ConsumedEntireMessage() ? absl::OkStatus() : Broken("bytes that are no field");
}

}  // namespace

absl::Status ReadModel(ZeroCopyInputStream* bytes, const ReadLimits& limits,
                       const std::function<void(int64_t)>& progress, onnx::ModelProto* model) {
  model->Clear();
  CodedInputStream in(bytes);
  in.SetTotalBytesLimit(INT32_MAX);
  MK_RETURN_IF_ERROR(Reader(in, limits, progress).Model(model));
  if (!model->has_graph()) return absl::InvalidArgumentError("not an ONNX model: no graph in it");
  return absl::OkStatus();
}

}  // namespace mk::scan
