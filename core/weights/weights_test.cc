#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "core/base/half.h"
#include "core/weights/convert.h"
#include "core/weights/safetensors.h"
#include "core/weights/sha256.h"
#include "core/weights/testing/write_safetensors.h"

namespace mk {
namespace {

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

// A lying header costs neither time nor memory.
TEST(Safetensors, G01RefusalsAreCheap) {
  const std::string good = WriteSafetensors({{"w", "F32", {2, 2}, FloatBytes({1, 2, 3, 4})}});
  const std::string deep = RawSafetensors("{\"a\":" + std::string(100000, '['), "");
  const auto peak_kib = [] {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const auto before = peak_kib();
  const std::clock_t start = std::clock();  // of the CPU: the machine may be busy
  for (const uint64_t lie : {uint64_t{0}, UINT64_MAX, uint64_t{1} << 63, uint64_t{100000001}}) {
    std::string bad = good;
    std::memcpy(bad.data(), &lie, 8);
    EXPECT_NE(Message(bad), "OK");
  }
  EXPECT_NE(Message(deep), "OK");
  const std::clock_t took = std::clock() - start;
  EXPECT_LT(peak_kib() - before, 1 << 10);
  EXPECT_LT(took, CLOCKS_PER_SEC / 20);  // 10 ms each
}

TEST(Safetensors, G01HeadersMustBeginWithTheObject) {
  EXPECT_TRUE(Says(Message(RawSafetensors(" {}", "")), "no JSON object"));
  EXPECT_TRUE(Says(Message(RawSafetensors("\xef\xbb\xbf{}", "")), "no JSON object"));
  EXPECT_TRUE(Says(Message(RawSafetensors("  ", "")), "no JSON object"));
  EXPECT_TRUE(Says(Message(RawSafetensors("{}x", "")), "no JSON"));
  EXPECT_TRUE(Says(Message(RawSafetensors("{}{}", "")), "no JSON"));
}

TEST(Safetensors, EveryTruncationOfTheHeaderIsRefused) {
  const std::string json = OneTensor("[0,16]");
  const std::string data(16, 'x');
  ASSERT_EQ(Message(RawSafetensors(json, data)), "OK");
  for (size_t size = 2; size < json.size(); ++size) {
    EXPECT_NE(Message(RawSafetensors(json.substr(0, size), data)), "OK") << size;
  }
}

TEST(Safetensors, MetadataIsTextByNameAndNoTensor) {
  const auto parse = [](const std::string& json) {
    return ParseSafetensorsHeader(json, 8 + json.size());
  };
  const auto header = parse("{\"__metadata__\":{\"format\":\"pt\",\"x\":\"\"}}");
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_TRUE(header->tensors.empty());
  EXPECT_EQ(header->metadata.at("format"), "pt");
  for (const char* bad : {"5", "[]", "null", "\"pt\"", "{\"a\":1}", "{\"a\":null}", "{\"a\":{}}",
                          "{\"a\":[]}", "{\"a\":\"x\",\"a\":\"y\"}"}) {
    EXPECT_FALSE(parse(std::string("{\"__metadata__\":") + bad + "}").ok()) << bad;
  }
}

TEST(Safetensors, TensorsThatAreNoObjectsAreRefusedByName) {
  for (const char* bad :
       {"5", "-5", "1.5", "[]", "null", "true", "\"x\"", "{\"dtype\":5}", "{\"dtype\":[]}",
        "{\"shape\":5}", "{\"shape\":{}}", "{\"shape\":[[1]]}", "{\"shape\":[\"1\"]}",
        "{\"shape\":[null]}", "{\"shape\":[{}]}", "{\"shape\":[1],\"shape\":[1]}", "{}"}) {
    const std::string message = Message(RawSafetensors(std::string("{\"w\":") + bad + "}", ""));
    EXPECT_TRUE(Says(message, "tensor 'w'")) << bad << ": " << message;
  }
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

// Sign, exponent and mantissa by the formula of the format, in doubles.
double ByFormula(int bits, int exponent_bits, int mantissa_bits, int bias) {
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const double mantissa = std::ldexp(bits & ((1 << mantissa_bits) - 1), -mantissa_bits);
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, 1 - bias) : std::ldexp(1 + mantissa, exponent - bias);
  return bits >> (exponent_bits + mantissa_bits) & 1 ? -magnitude : magnitude;
}

TEST(Convert, SixteenAndEightBitFloatsFollowTheirFormulaOverAllValues) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const float half = HalfToFloat(static_cast<uint16_t>(bits));
    ASSERT_EQ(std::isfinite(half), (bits >> 10 & 0x1f) != 0x1f) << bits;
    if (std::isfinite(half)) {
      ASSERT_EQ(half, ByFormula(bits, 5, 10, 15)) << bits;
    }
    const float brain = BFloat16ToFloat(static_cast<uint16_t>(bits));
    ASSERT_EQ(std::isfinite(brain), (bits >> 7 & 0xff) != 0xff) << bits;
    if (std::isfinite(brain)) {
      ASSERT_EQ(brain, ByFormula(bits, 8, 7, 127)) << bits;
    }
  }
  for (int bits = 0; bits < 1 << 8; ++bits) {
    const float small = Float8E4M3ToFloat(static_cast<uint8_t>(bits));
    ASSERT_EQ(std::isnan(small), (bits & 0x7f) == 0x7f) << bits;
    if (!std::isnan(small)) {
      ASSERT_EQ(small, ByFormula(bits, 4, 3, 7)) << bits;
    }
  }
}

TEST(Convert, OnlyFloatsConvertAndOnlyToFp32) {
  for (int from = 0; from <= static_cast<int>(StoredType::kF4); ++from) {
    const auto type = static_cast<StoredType>(from);
    const std::string name(StoredTypeName(type));
    int destinations = 0;
    for (mk_dtype to = MK_DTYPE_INVALID; to <= MK_DTYPE_BYTES; ++to) {
      destinations += Converts(type, to);
    }
    const bool later = name == "F8_E4M3" || name == "F8_E5M2" || name == "F8_E8M0" || name == "F4";
    const bool widens = name == "F64" || name == "F16" || name == "BF16";
    EXPECT_EQ(destinations, later ? 0 : widens ? 2 : 1) << name;
  }
}

TEST(Sha256, PiecesMakeTheSameDigestAsTheWhole) {
  const std::string text(1000, 'x');
  for (size_t cut = 0; cut <= text.size(); cut += 37) {
    Sha256 hash;
    hash.Update(text.substr(0, cut));
    hash.Update(text.substr(cut));
    ASSERT_EQ(hash.HexDigest(), Sha256Hex(text)) << cut;
  }
}

TEST(Sha256, KnownDigests) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace mk
