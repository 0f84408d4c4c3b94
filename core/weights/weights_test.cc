#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/weights/convert.h"
#include "core/weights/safetensors.h"
#include "core/weights/sha256.h"
#include "core/weights/testing/write_safetensors.h"
#include "core/weights/weight_stream.h"

namespace mk {
namespace {

using absl::StatusCode;

std::string Message(const std::string& file) {
  const auto view = SafetensorsView::Parse(file);
  return view.ok() ? "OK" : std::string(view.status().message());
}
bool Says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}
std::string OneTensor(const std::string& offsets, const std::string& shape = "[2,2]",
                      const std::string& dtype = "\"F32\"") {
  return "{\"w\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets +
         "}}";
}

// Field case G01: the header length is a lie.
TEST(Safetensors, G01LengthWordsThatLieAreRefused) {
  const std::string good = WriteSafetensors({{"w", "F32", {2, 2}, FloatBytes({1, 2, 3, 4})}});
  ASSERT_EQ(Message(good), "OK");
  const uint64_t size = good.size();
  for (uint64_t lie : {uint64_t{0}, uint64_t{1}, UINT64_MAX, uint64_t{1} << 63, UINT64_MAX - 7,
                       size, size - 7, uint64_t{100000001}}) {
    std::string bad = good;
    std::memcpy(bad.data(), &lie, 8);
    EXPECT_TRUE(Says(Message(bad), "safetensors: ")) << lie;
  }
  for (size_t cut : {0, 7, 8, 9}) EXPECT_NE(Message(good.substr(0, cut)), "OK") << cut;
  for (size_t cut = 0; cut < size; ++cut) EXPECT_NE(Message(good.substr(0, cut)), "OK") << cut;
}

TEST(Safetensors, G01HeadersThatAreNoObjectAreRefused) {
  EXPECT_EQ(Message(RawSafetensors("{}", "")), "OK");
  EXPECT_EQ(Message(RawSafetensors("{}     ", "")), "OK");
  EXPECT_TRUE(Says(Message(RawSafetensors("[]", "")), "no JSON object"));
  EXPECT_TRUE(Says(Message(RawSafetensors("12", "")), "no JSON object"));
  EXPECT_TRUE(Says(Message(RawSafetensors(std::string("{}\0", 3), "")), "no JSON"));
  EXPECT_TRUE(Says(Message(RawSafetensors("{\"\xff\":1}", "")), "no JSON"));
  const std::string deep = "{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}";
  EXPECT_TRUE(Says(Message(RawSafetensors(deep, "")), "unexpected an array"));
  std::string objects = "{\"a\":";
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_TRUE(Says(Message(RawSafetensors(objects, "")), "'a'"));
}

// Field case G02: offsets negative, reversed, fractional.
TEST(Safetensors, G02BadOffsetsAreRefusedWithTheTensorsName) {
  const std::string data(16, 'x');
  for (const char* offsets : {"[-16,0]", "[16,0]", "[0,16,32]", "[0]", "[\"0\",\"16\"]", "[0.5,16]",
                              "[0,1e300]", "[18446744073709551600,16]", "null", "[0,17]", "[]",
                              "{}", "true", "[[0],16]", "[0,18446744073709551616]"}) {
    EXPECT_TRUE(Says(Message(RawSafetensors(OneTensor(offsets), data)), "tensor 'w'")) << offsets;
  }
  EXPECT_TRUE(Says(Message(RawSafetensors("{\"w\":{\"dtype\":\"F32\",\"shape\":[2,2]}}", data)),
                   "lacks data_offsets"));
  const std::string name(5000, 'n');
  const std::string message =
      Message(RawSafetensors("{\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[2,2]}}", data));
  EXPECT_LT(message.size(), 400u);
}

TEST(Safetensors, HolesOverlapsDuplicatesAndSurplusAreRefused) {
  const auto two = [](const char* a, const char* b) {
    return std::string("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":") + a +
           "},\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" + b + "}}";
  };
  EXPECT_EQ(Message(RawSafetensors(two("[0,2]", "[2,4]"), "wxyz")), "OK");
  EXPECT_EQ(Message(RawSafetensors(two("[2,4]", "[0,2]"), "wxyz")), "OK");
  EXPECT_TRUE(Says(Message(RawSafetensors(two("[0,2]", "[1,3]"), "xyz")), "begins at 1"));
  EXPECT_TRUE(Says(Message(RawSafetensors(two("[0,2]", "[3,5]"), "vwxyz")), "begins at 3"));
  EXPECT_TRUE(Says(Message(RawSafetensors(two("[0,2]", "[2,4]"), "wxyz!")), "belong to no tensor"));
  EXPECT_TRUE(Says(Message(RawSafetensors("{\"a\":{},\"a\":{}}", "")), "named twice"));
  EXPECT_TRUE(Says(Message(RawSafetensors("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", "")),
                   "given twice"));
  EXPECT_TRUE(Says(Message(RawSafetensors("{\"a\":{\"more\":1}}", "")), "unknown field 'more'"));
}

// Field case G04: the shape does not fit the byte span.
TEST(Safetensors, G04ShapesMustFitTheirSpans) {
  const auto file = [](const char* shape, const char* offsets, const char* dtype, size_t bytes) {
    return Message(RawSafetensors(OneTensor(offsets, shape, dtype), std::string(bytes, '\0')));
  };
  EXPECT_TRUE(Says(file("[32,8]", "[0,65536]", "\"F32\"", 65536), "takes 1024 bytes"));
  EXPECT_TRUE(Says(file("[32,8]", "[0,512]", "\"F32\"", 512), "takes 1024 bytes"));
  EXPECT_TRUE(Says(file("[4294967296,4294967296]", "[0,0]", "\"F32\"", 0), "too many elements"));
  EXPECT_TRUE(Says(file("[0,9223372036854775807,3]", "[0,0]", "\"F32\"", 0), "too many elements"));
  EXPECT_EQ(file("[]", "[0,4]", "\"F32\"", 4), "OK");
  EXPECT_EQ(file("[0]", "[0,0]", "\"F32\"", 0), "OK");
  std::string ones = "[1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  EXPECT_TRUE(Says(file((ones + "]").c_str(), "[0,4]", "\"F32\"", 4), "rank over 64"));
  EXPECT_TRUE(Says(file("[-1]", "[0,4]", "\"F32\"", 4), "dim -1 is negative"));
  EXPECT_TRUE(Says(file("[2.0]", "[0,8]", "\"F32\"", 8), "unexpected 2.0"));
  EXPECT_TRUE(Says(file("[3]", "[0,2]", "\"F4\"", 2), "whole bytes"));
  EXPECT_EQ(file("[4]", "[0,2]", "\"F4\"", 2), "OK");
}

// Field case G06: number formats that came later, and names that never were.
TEST(Safetensors, G06KnownTypesParseAndUnknownOnesAreNamed) {
  for (const char* type : {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32",
                           "U16", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "F8_E8M0"}) {
    const std::string header = OneTensor("[0,0]", "[0]", std::string("\"") + type + "\"");
    EXPECT_EQ(Message(RawSafetensors(header, "")), "OK") << type;
  }
  for (const char* type : {"F128", "f32", ""}) {
    const std::string header = OneTensor("[0,0]", "[0]", std::string("\"") + type + "\"");
    EXPECT_TRUE(Says(Message(RawSafetensors(header, "")), "unknown dtype '")) << type;
  }
}

TEST(Convert, G06BFloat16AndFloat8ValuesAreExact) {
  EXPECT_EQ(BFloat16ToFloat(0x3f80), 1.0f);
  EXPECT_TRUE(std::isinf(BFloat16ToFloat(0x7f80)));
  EXPECT_TRUE(std::isnan(BFloat16ToFloat(0x7fc0)));
  EXPECT_FLOAT_EQ(BFloat16ToFloat(0x0001), 9.183549615799121e-41f);
  EXPECT_TRUE(std::signbit(BFloat16ToFloat(0x8000)));
  EXPECT_EQ(Float8E4M3ToFloat(0x7e), 448.0f);
  EXPECT_TRUE(std::isnan(Float8E4M3ToFloat(0x7f)));
  EXPECT_TRUE(std::signbit(Float8E4M3ToFloat(0x80)));
  EXPECT_EQ(Float8E4M3ToFloat(0x01), 0.001953125f);
}

TEST(Convert, HalfIsExactOverAllItsValues) {
  EXPECT_EQ(HalfToFloat(0x3c00), 1.0f);
  EXPECT_EQ(HalfToFloat(0x7bff), 65504.0f);
  EXPECT_EQ(HalfToFloat(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(HalfToFloat(0x83ff), -std::ldexp(1023.0f, -24));
  EXPECT_TRUE(std::isinf(HalfToFloat(0xfc00)));
  EXPECT_TRUE(std::isnan(HalfToFloat(0x7e00)));
}

TEST(Sha256, KnownDigests) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// ---- StreamWeights
// --------------------------------------------------------------------------------------------------

class StreamTest : public testing::Test {
 protected:
  static int File(const std::string& bytes) {
    const int fd = memfd_create("weights", 0);
    EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    return fd;
  }
  absl::Status Stream(const std::string& file, std::string digest = "") {
    const int fd = File(file);
    const absl::Status status =
        StreamWeights(fd, {"model.safetensors", std::move(digest)}, absl::MakeSpan(weights_));
    close(fd);
    return status;
  }
  void Want(const char* name, mk_dtype dtype, std::vector<int64_t> shape, uint32_t flags = 0) {
    shapes_.push_back(std::make_unique<std::vector<int64_t>>(std::move(shape)));
    buffers_.push_back(std::make_unique<std::vector<char>>(1 << 12));
    weights_.push_back({name, dtype, static_cast<mk_u32>(shapes_.back()->size()),
                        shapes_.back()->data(), buffers_.back()->data(), flags, 0});
  }
  float At(size_t tensor, size_t i) const {
    float value;
    std::memcpy(&value, buffers_[tensor]->data() + i * 4, 4);
    return value;
  }

  std::vector<std::unique_ptr<std::vector<int64_t>>> shapes_;
  std::vector<std::unique_ptr<std::vector<char>>> buffers_;
  std::vector<mk_weight> weights_;
};

TEST_F(StreamTest, FillsConvertsAndChecksTheDigest) {
  Want("a", MK_DTYPE_FP32, {2});
  Want("h", MK_DTYPE_FP32, {2});
  Want("i", MK_DTYPE_INT64, {1});
  Want("none", MK_DTYPE_FP32, {3}, MK_WEIGHT_OPTIONAL);
  const std::string file =
      WriteSafetensors({{"a", "F32", {2}, FloatBytes({1.5f, -2})},
                        {"h", "BF16", {2}, std::string("\x80\x3f\x24\x3c", 4)},
                        {"i", "I64", {1}, std::string("\x05\0\0\0\0\0\0\0", 8)}});
  ASSERT_TRUE(Stream(file, Sha256Hex(file)).ok());
  EXPECT_EQ(At(0, 1), -2.0f);
  EXPECT_EQ(At(1, 1), 0.010009765625f);
  EXPECT_EQ((*buffers_[2])[0], 5);
  EXPECT_EQ(weights_[3].found, 0u);
  const absl::Status wrong = Stream(file, std::string(64, 'a'));
  EXPECT_EQ(wrong.code(), StatusCode::kDataLoss);
  EXPECT_TRUE(Says(std::string(wrong.message()), Sha256Hex(file).substr(0, 8))) << wrong;
}

// Field case G09: names that do not match never leave a model at its random start.
TEST_F(StreamTest, G09MissingAndSurplusTensorsAreCountedAndNamed) {
  Want("block.weight", MK_DTYPE_FP32, {1});
  Want("block.bias", MK_DTYPE_FP32, {1});
  const std::string one = FloatBytes({1});
  const std::string prefixed = WriteSafetensors(
      {{"module.block.bias", "F32", {1}, one}, {"module.block.weight", "F32", {1}, one}});
  std::string message(Stream(prefixed).message());
  EXPECT_TRUE(
      Says(message, "missing 'block.weight', 'block.bias' (0 of 2 tensors loaded, 2 extra)"))
      << message;
  EXPECT_TRUE(Says(message, "nearest name in the file: 'module.block.weight'")) << message;
  const std::string surplus = WriteSafetensors({{"block.bias", "F32", {1}, one},
                                                {"block.weight", "F32", {1}, one},
                                                {"extra", "F32", {1}, one}});
  EXPECT_TRUE(Says(std::string(Stream(surplus).message()), "surplus 'extra'"));
}

TEST_F(StreamTest, G09TransposedTensorsFailByShape) {
  Want("w", MK_DTYPE_FP32, {2, 3});
  const std::string file = WriteSafetensors({{"w", "F32", {3, 2}, FloatBytes({1, 2, 3, 4, 5, 6})}});
  EXPECT_TRUE(
      Says(std::string(Stream(file).message()), "tensor 'w' has shape [3,2], expected [2,3]"));
}

TEST_F(StreamTest, NonFiniteValuesAreNamedWithTheirIndex) {
  Want("w", MK_DTYPE_FP32, {3});
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    const std::string file = WriteSafetensors({{"w", "F32", {3}, FloatBytes({1, 2, bad})}});
    EXPECT_TRUE(Says(std::string(Stream(file).message()), "at index 2")) << bad;
  }
  const std::string half =
      WriteSafetensors({{"w", "F16", {3}, std::string("\0\x3c\0\x7c\0\0", 6)}});
  EXPECT_TRUE(Says(std::string(Stream(half).message()), "at index 1"));
}

TEST_F(StreamTest, TypesThatDoNotConvertAndOddBooleansAreRefused) {
  Want("w", MK_DTYPE_FP32, {4});
  const std::string f8 = WriteSafetensors({{"w", "F8_E4M3", {4}, "\x38\x38\x38\x38"}});
  EXPECT_TRUE(Says(std::string(Stream(f8).message()), "F8_E4M3 does not convert to FP32"));
  weights_[0].dtype = MK_DTYPE_BOOL;
  const std::string odd = WriteSafetensors({{"w", "BOOL", {4}, std::string("\0\1\7\0", 4)}});
  EXPECT_TRUE(Says(std::string(Stream(odd).message()), "7 as BOOL at index 2"));
}

}  // namespace
}  // namespace mk
