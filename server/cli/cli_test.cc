#include <gtest/gtest.h>

#include <cmath>

#include "server/cli/answers.h"
#include "server/cli/classify.h"
#include "server/cli/common.h"
#include "server/cli/npy.h"
#include "server/cli/tensors.h"

namespace mk::cli {
namespace {

TEST(Npy, RoundTripsEveryDatatype) {
  for (const char* datatype : {"BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16",
                               "INT32", "INT64", "FP16", "FP32", "FP64"}) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {3}, {2, 3}, {0, 4}}) {
      uint64_t count = 1;
      for (const int64_t dim : shape) count *= static_cast<uint64_t>(dim);
      const HostTensor tensor{datatype, shape, RandomData(datatype, count, 7)};
      const auto file = WriteNpy(tensor);
      ASSERT_TRUE(file.ok());
      const auto back = ParseNpy(*file);
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(back->shape, shape);
      EXPECT_EQ(back->data, tensor.data);
      EXPECT_EQ(back->datatype, datatype);
    }
  }
}

TEST(Npy, TruncationsAndFlippedBytesAreSurvived) {
  const std::string file = *WriteNpy({"FP32", {2, 3}, std::string(24, 'x')});
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(ParseNpy(file.substr(0, size)).ok()) << size;
  for (size_t i = 0; i < file.size(); ++i) {
    std::string bad = file;
    bad[i] = static_cast<char>(bad[i] ^ 0x55);
    static_cast<void>(ParseNpy(bad));
  }
  std::string fortran = file;
  fortran.replace(fortran.find("False"), 5, "True ");
  EXPECT_NE(std::string(ParseNpy(fortran).status().message()).find("Fortran"), std::string::npos);
}

TEST(Shapes, OnlyListsOfSizesParse) {
  EXPECT_EQ(*ParseShape("1,2,3"), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_TRUE(ParseShape("")->empty());
  for (const char* bad : {"-1", "1,,2", "a", "1,", "99999999999999999999"})
    EXPECT_FALSE(ParseShape(bad).ok()) << bad;
  EXPECT_FALSE(ParseAssignments("--shape", {"x"}).ok());
  EXPECT_EQ(ParseAssignments("--shape", {"x=1=2"})->at("x"), "1=2");
}

TEST(Answers, EveryDatatypeIsShown) {
  EXPECT_EQ(Values("FP16", std::string("\x00\x3c\x00\xc0", 4)), nlohmann::json({1.0, -2.0}));
  EXPECT_EQ(Values("BF16", std::string("\x80\x3f\x24\x3c", 4)),
            nlohmann::json({1.0, 0.010009765625}));
  EXPECT_EQ(Values("BOOL", std::string("\0\1", 2)), nlohmann::json({false, true}));
  EXPECT_EQ(Values("BYTES", std::string("\2\0\0\0hi\0\0\0\0", 10)), nlohmann::json({"hi", ""}));
  EXPECT_EQ(Values("BYTES", std::string("\x9\0\0\0hi", 6)), nlohmann::json::array());
  // Past 2^53, where a double would round.
  EXPECT_EQ(Values("INT64", std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8))[0].dump(),
            "9223372036854775807");
  EXPECT_TRUE(Values("COMPLEX", "x").is_null());
  EXPECT_EQ(JsonText({{"x", "\xff"}}), "{\n  \"x\": \"\ufffd\"\n}\n");
}

TEST(Answers, TypedValuesArePackedOrRefused) {
  for (const char* datatype : {"UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32",
                               "INT64", "FP16", "BF16", "FP32", "FP64"}) {
    const auto packed = Pack(datatype, {"1, 2", "3"});
    ASSERT_TRUE(packed.ok()) << packed.status();
    EXPECT_EQ(packed->count, 3u);
    EXPECT_EQ(Values(datatype, packed->raw).get<std::vector<double>>(),
              (std::vector<double>{1, 2, 3}))
        << datatype;
    EXPECT_FALSE(Pack(datatype, {"1,,2"}).ok()) << datatype;
    EXPECT_FALSE(Pack(datatype, {"one"}).ok()) << datatype;
  }
  EXPECT_FALSE(Pack("UINT8", {"256"}).ok());
  EXPECT_FALSE(Pack("INT8", {"-129"}).ok());
  EXPECT_FALSE(Pack("INT64", {"9223372036854775808"}).ok());
  EXPECT_EQ(Pack("BYTES", {"a,b", ""})->raw, std::string("\3\0\0\0a,b\0\0\0\0", 11));
  EXPECT_EQ(Pack("BOOL", {"true,0"})->raw, std::string("\1\0", 2));
}

TEST(TopK, RanksByProbabilityWithNanLast) {
  const auto top = TopK({1, NAN, 3, 3, -INFINITY}, 3, {"a", "b", "c"});
  EXPECT_EQ(top[0].label, "c");
  EXPECT_EQ(top[1].label, "class 3");
  EXPECT_EQ(top[2].label, "a");
  EXPECT_NEAR(top[0].probability, std::exp(2.0) / (2 * std::exp(2.0) + 1), 1e-12);
  EXPECT_TRUE(TopK({}, 5, {}).empty());
}

TEST(ExitCodes, FollowTheTable) {
  const auto code = [](grpc::StatusCode c, const char* m = "") {
    return ExitCodeOf(grpc::Status(c, m));
  };
  EXPECT_EQ(code(grpc::OK), kOk);
  EXPECT_EQ(code(grpc::NOT_FOUND), kRefused);
  EXPECT_EQ(code(grpc::UNAVAILABLE, "failed to connect to all addresses"), kUnreachable);
  EXPECT_EQ(code(grpc::UNAVAILABLE, "Exceeds maximum queue size"), kUnavailable);
  EXPECT_EQ(code(grpc::DEADLINE_EXCEEDED), kUnavailable);
  EXPECT_EQ(code(grpc::INTERNAL), kFailed);
}

TEST(Text, TablesAlignAndNamesAreGuessed) {
  Table table({"NAME", "N"});
  table.Row({"a", "5"});
  table.Row({"long", "10"});
  EXPECT_EQ(table.Text(), "NAME   N\na      5\nlong  10\n");
  Table units({"CHECK", "TOOK", "DETAIL"});
  units.Row({"caf\u00e9", "9 us", "2 cores allowed"});
  units.Row({"plain", "12.5 ms", "\x1b[0m"});
  EXPECT_EQ(units.Text(),
            "CHECK     TOOK  DETAIL\ncaf\u00e9      9 us  2 cores allowed\nplain  12.5 ms  "
            "\\x1b[0m\n");
  EXPECT_EQ(Meant("statsu", {"status", "packs"}), "status");
  EXPECT_EQ(Meant("zzz", {"status", "packs"}), "");
  EXPECT_EQ(HumanBytes(1536), "1.5 KiB");
  EXPECT_EQ(HumanDuration(94e-6), "94 us");
  EXPECT_EQ(Percentile({3, 1, 2, 4}, 0.5), 2);
  EXPECT_EQ(Percentile({}, 0.5), 0);
}

}  // namespace
}  // namespace mk::cli
