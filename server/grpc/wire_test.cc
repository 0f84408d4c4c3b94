// The wire reader against protobuf's own, whole and cut into pieces, and against bytes no client
// would send.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "proto/inference/grpc_service.pb.h"
#include "server/grpc/request_options.h"
#include "server/grpc/wire_request.h"

namespace mk {
namespace {

using absl::StatusCode;
using inference::ModelInferRequest;

// Cuts `bytes` at random places; each piece lies in memory of its own, so that overruns are seen.
std::vector<std::string> Cut(const std::string& bytes, std::mt19937& random, int pieces) {
  std::vector<size_t> at = {0, bytes.size()};
  for (int i = 1; i < pieces; ++i) at.push_back(random() % (bytes.size() + 1));
  std::sort(at.begin(), at.end());
  std::vector<std::string> cut;
  for (size_t i = 0; i + 1 < at.size(); ++i) cut.push_back(bytes.substr(at[i], at[i + 1] - at[i]));
  return cut;
}

absl::Status Parse(const std::vector<std::string>& pieces, HostPool& pool, InferRequest* request) {
  auto owned = std::make_shared<std::vector<std::string>>(pieces);
  std::vector<std::string_view> views(owned->begin(), owned->end());
  return ParseInferRequest(views, owned, pool, request);
}

std::string RandomBytes(std::mt19937& random, size_t limit) {
  std::string bytes(random() % limit, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

// Characters of one to four bytes, NUL among them.
std::string RandomText(std::mt19937& random, size_t limit) {
  static const std::string kCharacters[] = {std::string(1, '\0'), "a", "\n", "\u00e9", "\u8863",
                                            "\U0001F600"};
  std::string text;
  for (size_t i = random() % limit; i > 0; --i) text += kCharacters[random() % 6];
  return text;
}

ModelInferRequest RandomRequest(std::mt19937& random) {
  ModelInferRequest request;
  if (random() % 4) request.set_model_name(RandomText(random, 20));
  if (random() % 2) request.set_model_version("3");
  if (random() % 2) request.set_id(RandomText(random, 30));
  for (uint32_t i = random() % 4; i > 0; --i) {
    auto& parameter = (*request.mutable_parameters())[RandomText(random, 8)];
    switch (random() % 5) {
      case 0:
        parameter.set_bool_param(random() % 2);
        break;
      case 1:
        parameter.set_int64_param(static_cast<int64_t>(random()) - (1 << 30));
        break;
      case 2:
        parameter.set_string_param(RandomText(random, 10));
        break;
      case 3:
        parameter.set_double_param(random() * 0.5);
        break;
      default:
        parameter.set_uint64_param(random());
        break;
    }
  }
  const uint32_t inputs = random() % 4;
  for (uint32_t i = 0; i < inputs; ++i) {
    auto* input = request.add_inputs();
    input->set_name(RandomText(random, 12));
    input->set_datatype(std::string(DtypeName(1 + random() % 14)));
    for (uint32_t d = random() % 9; d > 0; --d)
      input->add_shape(static_cast<int64_t>(random()) - 5);
    request.add_raw_input_contents(RandomBytes(random, 400));
  }
  for (uint32_t i = random() % 3; i > 0; --i)
    request.add_outputs()->set_name(RandomText(random, 12));
  return request;
}

void ExpectSame(const ModelInferRequest& want, const InferRequest& got) {
  EXPECT_EQ(got.model_name, want.model_name());
  EXPECT_EQ(got.version_text, want.model_version());
  EXPECT_EQ(got.id, want.id());
  ASSERT_EQ(got.inputs.size(), static_cast<size_t>(want.inputs_size()));
  for (int i = 0; i < want.inputs_size(); ++i) {
    const InputTensor& input = got.inputs[static_cast<size_t>(i)];
    EXPECT_EQ(input.name, want.inputs(i).name());
    EXPECT_EQ(DtypeName(input.dtype), want.inputs(i).datatype());
    EXPECT_EQ(input.shape,
              std::vector<int64_t>(want.inputs(i).shape().begin(), want.inputs(i).shape().end()));
    const std::string& raw = want.raw_input_contents(i);
    ASSERT_EQ(input.size_bytes, raw.size());
    if (raw.empty()) continue;
    EXPECT_EQ(std::memcmp(input.data, raw.data(), raw.size()), 0);
    EXPECT_EQ(
        reinterpret_cast<uintptr_t>(input.data) % std::max<uint64_t>(1, DtypeSize(input.dtype)),
        0u);
  }
  EXPECT_EQ(got.outputs.size(), static_cast<size_t>(want.outputs_size()));
  ASSERT_EQ(got.parameters.size(), static_cast<size_t>(want.parameters().size()));
  for (const auto& [key, value] : got.parameters) {
    const auto& parameter = want.parameters().at(key);
    if (const auto* text = std::get_if<std::string>(&value)) {
      EXPECT_EQ(*text, parameter.string_param());
    }
    if (const auto* number = std::get_if<int64_t>(&value)) {
      EXPECT_EQ(*number, parameter.int64_param());
    }
    if (const auto* number = std::get_if<uint64_t>(&value)) {
      EXPECT_EQ(*number, parameter.uint64_param());
    }
    if (const auto* number = std::get_if<double>(&value)) {
      EXPECT_EQ(*number, parameter.double_param());
    }
  }
}

TEST(WireRequest, ReadsWhatProtobufWroteHoweverItIsCut) {
  std::mt19937 random(1);
  HostPool pool(1 << 20, 1 << 16);
  for (int round = 0; round < 2000; ++round) {
    const ModelInferRequest want = RandomRequest(random);
    const std::string bytes = want.SerializeAsString();
    InferRequest got;
    const absl::Status status =
        Parse(Cut(bytes, random, 1 + static_cast<int>(random() % 6)), pool, &got);
    ASSERT_TRUE(status.ok()) << status << " round " << round;
    ExpectSame(want, got);
  }
  EXPECT_EQ(pool.in_use_bytes(), 0u);
}

// Found by the fuzz target: a client that got its id back in an answer could not read the answer.
TEST(WireRequest, StringsThatAreNoUtf8AreRefusedByField) {
  HostPool pool(1 << 20, 0);
  const std::string bad("\xc3(", 2);
  const auto tagged = [](char tag, const std::string& bytes) {
    return std::string{tag, static_cast<char>(bytes.size())} + bytes;
  };
  const std::string value = tagged('\x1a', bad);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {tagged('\x0a', bad), "model_name"},
      {tagged('\x12', bad), "model_version"},
      {tagged('\x1a', bad), "id"},
      {tagged('\x22', tagged('\x0a', bad)), "parameter name"},
      {tagged('\x22', tagged('\x0a', "k") + tagged('\x12', value)), "string_param"},
      {tagged('\x2a', tagged('\x0a', bad)), "input name"},
      {tagged('\x2a', tagged('\x12', bad)), "datatype"},
      {tagged('\x32', tagged('\x0a', bad)), "output name"}};
  for (const auto& [bytes, field] : cases) {
    InferRequest request;
    const absl::Status status = Parse({bytes}, pool, &request);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << field;
    EXPECT_NE(std::string(status.message()).find(field + " '\\xc3('"), std::string::npos) << status;
    EXPECT_FALSE(ModelInferRequest().ParseFromString(bytes)) << field;
  }
}

TEST(WireRequest, EveryTruncationAndFlippedByteIsSurvived) {
  std::mt19937 random(2);
  HostPool pool(1 << 20, 0);
  for (int sample = 0; sample < 20; ++sample) {
    const std::string bytes = RandomRequest(random).SerializeAsString();
    for (size_t size = 0; size < bytes.size(); ++size) {
      InferRequest request;
      static_cast<void>(Parse({bytes.substr(0, size)}, pool, &request));
    }
    for (size_t i = 0; i < bytes.size(); ++i) {
      std::string bad = bytes;
      bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
      InferRequest request;
      static_cast<void>(Parse(Cut(bad, random, 3), pool, &request));
    }
  }
  EXPECT_EQ(pool.in_use_bytes(), 0u);
}

ModelInferRequest Typed(const std::string& dtype) {
  ModelInferRequest request;
  auto* input = request.add_inputs();
  input->set_name("IN");
  input->set_datatype(dtype);
  input->add_shape(2);
  return request;
}

TEST(WireRequest, TypedContentsOfEveryKindArePacked) {
  HostPool pool(1 << 20, 0);
  const auto pack = [&](const ModelInferRequest& request) {
    InferRequest got;
    const absl::Status status = Parse({request.SerializeAsString()}, pool, &got);
    EXPECT_TRUE(status.ok()) << status;
    return status.ok()
               ? std::string(static_cast<const char*>(got.inputs[0].data), got.inputs[0].size_bytes)
               : "";
  };
  auto request = Typed("INT8");
  request.mutable_inputs(0)->mutable_contents()->add_int_contents(-1);
  request.mutable_inputs(0)->mutable_contents()->add_int_contents(127);
  EXPECT_EQ(pack(request), "\xff\x7f");
  request = Typed("UINT64");
  request.mutable_inputs(0)->mutable_contents()->add_uint64_contents(UINT64_MAX);
  EXPECT_EQ(pack(request), std::string(8, '\xff'));
  request = Typed("FP32");
  request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1.0f);
  EXPECT_EQ(pack(request), std::string("\0\0\x80\x3f", 4));
  request = Typed("FP64");
  request.mutable_inputs(0)->mutable_contents()->add_fp64_contents(1.0);
  EXPECT_EQ(pack(request), std::string("\0\0\0\0\0\0\xf0\x3f", 8));
  request = Typed("BOOL");
  request.mutable_inputs(0)->mutable_contents()->add_bool_contents(true);
  EXPECT_EQ(pack(request), "\x01");
  request = Typed("BYTES");
  request.mutable_inputs(0)->mutable_contents()->add_bytes_contents("ab");
  request.mutable_inputs(0)->mutable_contents()->add_bytes_contents("");
  EXPECT_EQ(pack(request), std::string("\2\0\0\0ab\0\0\0\0", 10));
}

// Field case A07: millions of tiny strings are packed in one allocation, not grown.
TEST(WireRequest, A07MillionsOfTinyStrings) {
  HostPool pool(64 << 20, 0);
  auto request = Typed("BYTES");
  for (int i = 0; i < 2'000'000; ++i)
    request.mutable_inputs(0)->mutable_contents()->add_bytes_contents("A");
  InferRequest got;
  ASSERT_TRUE(Parse({request.SerializeAsString()}, pool, &got).ok());
  EXPECT_EQ(got.inputs[0].size_bytes, 10'000'000u);
}

TEST(WireRequest, ContentsThatDoNotFitAreRefusedByName) {
  HostPool pool(1 << 20, 0);
  const auto refuse = [&](const ModelInferRequest& request, const std::string& says,
                          StatusCode code = StatusCode::kInvalidArgument) {
    InferRequest got;
    const absl::Status status = Parse({request.SerializeAsString()}, pool, &got);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(std::string(status.message()).find(says), std::string::npos) << status;
  };
  auto request = Typed("INT8");
  request.mutable_inputs(0)->mutable_contents()->add_int_contents(128);
  refuse(request, "does not fit INT8");
  request = Typed("UINT16");
  request.mutable_inputs(0)->mutable_contents()->add_uint_contents(65536);
  refuse(request, "does not fit UINT16");
  request = Typed("FP16");
  request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  refuse(request, "FP16 has no typed contents");
  request = Typed("FP32");
  request.mutable_inputs(0)->mutable_contents()->add_int_contents(1);
  refuse(request, "not the fp32_contents");
  request = Typed("FP33");
  refuse(request, "unknown datatype 'FP33'");
  request = Typed("FP32");
  for (int i = 0; i < 8; ++i) request.mutable_inputs(0)->add_shape(1);
  refuse(request, "rank over 8");
  request = ModelInferRequest();
  request.set_model_name(std::string(kMaxNameBytes + 1, 'n'));
  refuse(request, "model_name of 1025 bytes");
  request = ModelInferRequest();
  for (size_t i = 0; i <= kMaxTensorsPerRequest; ++i)
    *request.add_inputs() = Typed("FP32").inputs(0);
  refuse(request, "more than 256 inputs");
  request = Typed("FP32");
  request.add_raw_input_contents(std::string(2 << 20, 'x'));
  request.mutable_inputs(0)->set_name("odd");  // moves the bytes off their alignment
  InferRequest got;
  const absl::Status full =
      Parse({request.SerializeAsString().substr(0, 40), request.SerializeAsString().substr(40)},
            pool, &got);
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted) << full;
}

TEST(RequestOptions, LocalPeersAreTheLoopbackAndUnixSockets) {
  for (const char* local :
       {"ipv4:127.0.0.1:5000", "ipv4:127.9.9.9:1", "ipv6:[::1]:5000", "ipv6:%5B::1%5D:5000",
        "ipv6:[::ffff:127.0.0.1]:1", "unix:", "unix:/run/mk.sock"}) {
    EXPECT_TRUE(IsLocalPeer(local)) << local;
  }
  for (const char* far :
       {"ipv4:10.0.0.1:5000", "ipv4:128.0.0.1:1", "ipv6:[fe80::1]:1", "ipv6:[::1:1]:1", "",
        "ipv6:[::ffff:10.0.0.1]:1", "dns:localhost", "ipv4:"}) {
    EXPECT_FALSE(IsLocalPeer(far)) << far;
  }
}

TEST(RequestOptions, VersionsAreCanonicalIntegers) {
  EXPECT_EQ(*ParseRequestedVersion("m", ""), 0);
  EXPECT_EQ(*ParseRequestedVersion("m", "12"), 12);
  for (const char* none : {"0", "010", "99999999999999999999"}) {
    EXPECT_EQ(ParseRequestedVersion("m", none).status().code(), StatusCode::kNotFound) << none;
  }
  for (const char* bad : {"-1", "v1", "1/../2", "1.0", " 1"}) {
    EXPECT_EQ(ParseRequestedVersion("m", bad).status().code(), StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace mk
