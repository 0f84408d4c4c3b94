// A ModelInferRequest from anywhere. What our reader accepts, Protobuf accepts too and reads the
// same; how the bytes are cut into pieces changes nothing.
#include <memory>

#include "core/base/dtype.h"
#include "proto/inference/grpc_service.pb.h"
#include "server/grpc/wire_request.h"
#include "tests/fuzz/fuzz.h"

namespace mk::fuzz {

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  inference::ModelInferRequest raw;
  raw.set_model_name("echo");
  raw.set_model_version("1");
  raw.set_id("7");
  auto* input = raw.add_inputs();
  input->set_name("INPUT0");
  input->set_datatype("FP32");
  input->add_shape(2);
  raw.add_raw_input_contents(std::string(8, 'x'));
  raw.add_outputs()->set_name("OUTPUT0");
  (*raw.mutable_parameters())["delay_ms"].set_int64_param(1);
  (*raw.mutable_parameters())["who"].set_string_param("me");
  seeds.push_back(raw.SerializeAsString());
  inference::ModelInferRequest typed = raw;
  typed.clear_raw_input_contents();
  typed.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  typed.mutable_inputs(0)->mutable_contents()->add_fp32_contents(2);
  seeds.push_back(typed.SerializeAsString());
  typed.mutable_inputs(0)->set_datatype("BYTES");
  typed.mutable_inputs(0)->mutable_contents()->clear_fp32_contents();
  typed.mutable_inputs(0)->mutable_contents()->add_bytes_contents("a");
  typed.mutable_inputs(0)->mutable_contents()->add_bytes_contents("");
  seeds.push_back(typed.SerializeAsString());
  typed.mutable_inputs(0)->set_datatype("INT8");
  typed.mutable_inputs(0)->mutable_contents()->clear_bytes_contents();
  typed.mutable_inputs(0)->mutable_contents()->add_int_contents(-1);
  typed.mutable_inputs(0)->mutable_contents()->add_int_contents(127);
  seeds.push_back(typed.SerializeAsString());
  return seeds;
}

}  // namespace mk::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  mk::HostPool pool(16 << 20, 1 << 20);
  mk::InferRequest whole, cut;
  const absl::Status status = mk::ParseInferRequest({bytes}, nullptr, pool, &whole);
  // Cut where the first byte says.
  const size_t at = size == 0 ? 0 : data[0] % (size + 1);
  const std::string head = bytes.substr(0, at), tail = bytes.substr(at);
  const absl::Status again = mk::ParseInferRequest({head, tail}, nullptr, pool, &cut);
  FUZZ_CHECK(status.code() == again.code());
  if (!status.ok()) return 0;
  inference::ModelInferRequest message;
  FUZZ_CHECK(message.ParseFromString(bytes));
  FUZZ_CHECK(message.model_name() == whole.model_name && message.id() == whole.id);
  FUZZ_CHECK(static_cast<size_t>(message.inputs_size()) == whole.inputs.size());
  for (int i = 0; i < message.inputs_size(); ++i) {
    const mk::InputTensor& input = whole.inputs[static_cast<size_t>(i)];
    FUZZ_CHECK(message.inputs(i).name() == input.name);
    FUZZ_CHECK(static_cast<size_t>(message.inputs(i).shape_size()) == input.shape.size());
    const std::string_view held(static_cast<const char*>(input.data), input.size_bytes);
    const mk::InputTensor& same = cut.inputs[static_cast<size_t>(i)];
    FUZZ_CHECK(held == std::string_view(static_cast<const char*>(same.data), same.size_bytes));
    if (message.raw_input_contents_size() != 0) FUZZ_CHECK(held == message.raw_input_contents(i));
  }
  return 0;
}
