#include "core/weights/weight_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/weights/sha256.h"
#include "core/weights/testing/write_safetensors.h"

namespace mk {
namespace {

using absl::StatusCode;

bool Says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

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

// Field case G09, the whole list: ten tensors expected.
class TenTensors : public StreamTest {
 protected:
  void SetUp() override {
    for (int i = 0; i < 10; ++i) names_.push_back("layer" + std::to_string(i) + ".weight");
    for (const std::string& name : names_) Want(name.c_str(), MK_DTYPE_FP32, {2, 3});
  }
  std::vector<TestTensor> Tensors(const std::string& prefix, int count) {
    std::vector<TestTensor> tensors;
    for (int i = 0; i < count; ++i) {
      const std::string name =
          i < 10 ? names_[static_cast<size_t>(i)] : "extra" + std::to_string(i);
      tensors.push_back({prefix + name, "F32", {2, 3}, FloatBytes(std::vector<float>(6, 1.0f))});
    }
    return tensors;
  }
  std::string Refusal(const std::vector<TestTensor>& tensors) {
    const absl::Status status = Stream(WriteSafetensors(tensors));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  std::vector<std::string> names_;
};

TEST_F(TenTensors, G09PrefixesAreNotGuessedAway) {
  for (const char* prefix : {"detector.", "module."}) {
    const std::string message = Refusal(Tensors(prefix, 10));
    EXPECT_TRUE(Says(message, "(0 of 10 tensors loaded, 10 extra)")) << message;
    EXPECT_TRUE(Says(message, "'layer4.weight' and 5 more")) << message;
    EXPECT_TRUE(
        Says(message, std::string("nearest name in the file: '") + prefix + "layer0.weight'"))
        << message;
  }
}

TEST_F(TenTensors, G09SixOfTenFail) {
  const std::string message = Refusal(Tensors("", 6));
  EXPECT_TRUE(Says(message,
                   "missing 'layer6.weight', 'layer7.weight', 'layer8.weight', "
                   "'layer9.weight' (6 of 10 tensors loaded, 0 extra)"))
      << message;
}

TEST_F(TenTensors, G09ThreeExtraFail) {
  const std::string message = Refusal(Tensors("", 13));
  EXPECT_TRUE(Says(message, "surplus 'extra10', 'extra11', 'extra12' (10 of 10")) << message;
}

TEST_F(TenTensors, G09OnlyTensorsOfTheAllowListMayBeMissing) {
  weights_[8].flags = weights_[9].flags = MK_WEIGHT_OPTIONAL;
  EXPECT_TRUE(Stream(WriteSafetensors(Tensors("", 8))).ok());
  EXPECT_EQ(weights_[7].found, 1u);
  EXPECT_EQ(weights_[8].found, 0u);
  EXPECT_TRUE(Says(Refusal(Tensors("", 7)), "missing 'layer7.weight' (7 of 10"));
}

TEST_F(TenTensors, G09ATiedWeightUnderItsOtherNameIsNamedAsTheNearest) {
  std::vector<TestTensor> tensors = Tensors("", 10);
  tensors[3].name = "layer3.weights";
  const std::string message = Refusal(tensors);
  EXPECT_TRUE(Says(message, "nearest name in the file: 'layer3.weights'")) << message;
}

TEST_F(TenTensors, G09ATensorThatThePackNamesTwiceIsThePacksFault) {
  weights_[1].name = weights_[0].name;
  EXPECT_EQ(Stream(WriteSafetensors(Tensors("", 10))).code(), StatusCode::kInternal);
}

// Field case G06: each type as itself, and what converts.
TEST_F(StreamTest, G06EveryTypeOfTheAbiLoadsAsItselfByteForByte) {
  const struct {
    const char* stored;
    mk_dtype dtype;
    size_t size;
  } types[] = {
      {"F64", MK_DTYPE_FP64, 8},   {"F32", MK_DTYPE_FP32, 4},   {"F16", MK_DTYPE_FP16, 2},
      {"BF16", MK_DTYPE_BF16, 2},  {"I64", MK_DTYPE_INT64, 8},  {"I32", MK_DTYPE_INT32, 4},
      {"I16", MK_DTYPE_INT16, 2},  {"I8", MK_DTYPE_INT8, 1},    {"U64", MK_DTYPE_UINT64, 8},
      {"U32", MK_DTYPE_UINT32, 4}, {"U16", MK_DTYPE_UINT16, 2}, {"U8", MK_DTYPE_UINT8, 1},
      {"BOOL", MK_DTYPE_BOOL, 1}};
  Want("w", MK_DTYPE_FP32, {3});
  for (const auto& type : types) {
    weights_[0].dtype = type.dtype;
    const std::string data(3 * type.size, '\1');
    ASSERT_TRUE(Stream(WriteSafetensors({{"w", type.stored, {3}, data}})).ok()) << type.stored;
    EXPECT_EQ(std::string(buffers_[0]->data(), data.size()), data) << type.stored;
  }
}

TEST_F(StreamTest, G06DoublesAreRoundedAndRefusedWhereFp32HasNone) {
  Want("w", MK_DTYPE_FP32, {2});
  const auto doubles = [](double a, double b) {
    std::string bytes(16, '\0');
    std::memcpy(bytes.data(), &a, 8);
    std::memcpy(bytes.data() + 8, &b, 8);
    return WriteSafetensors({{"w", "F64", {2}, bytes}});
  };
  ASSERT_TRUE(Stream(doubles(0.1, 1e-300)).ok());
  EXPECT_EQ(At(0, 0), 0.1f);
  EXPECT_EQ(At(0, 1), 0.0f);
  EXPECT_TRUE(Says(std::string(Stream(doubles(1, 1e300)).message()), "1e+300 at index 1"));
}

TEST_F(StreamTest, G06SixteenBitFloatsKeptAsTheyAreMustBeFiniteToo) {
  Want("w", MK_DTYPE_FP16, {2});
  EXPECT_FALSE(Stream(WriteSafetensors({{"w", "F16", {2}, std::string("\0\x3c\0\x7e", 4)}})).ok());
  weights_[0].dtype = MK_DTYPE_BF16;
  EXPECT_FALSE(
      Stream(WriteSafetensors({{"w", "BF16", {2}, std::string("\x80\x7f\x80\x3f", 4)}})).ok());
}

TEST_F(StreamTest, ScalarsAndEmptyTensorsAreLegal) {
  Want("scalar", MK_DTYPE_FP32, {});
  Want("empty", MK_DTYPE_FP32, {0, 7});
  weights_[1].data = nullptr;
  const std::string file =
      WriteSafetensors({{"empty", "F32", {0, 7}, ""}, {"scalar", "F32", {}, FloatBytes({2.5f})}});
  ASSERT_TRUE(Stream(file).ok());
  EXPECT_EQ(At(0, 0), 2.5f);
  EXPECT_EQ(weights_[1].found, 1u);
}

TEST_F(StreamTest, FilesThatAreNoneAreRefusedWithTheirName) {
  Want("w", MK_DTYPE_FP32, {1});
  for (const char* bytes : {"", "short", "version https://git-lfs.github.com/spec/v1"}) {
    const absl::Status status = Stream(bytes);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_TRUE(Says(std::string(status.message()), "weights 'model.safetensors': safetensors: "))
        << status;
  }
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const absl::Status status =
      StreamWeights(ends[0], {"model.safetensors", ""}, absl::MakeSpan(weights_));
  EXPECT_TRUE(Says(std::string(status.message()), "is no plain file")) << status;
  close(ends[0]);
  close(ends[1]);
}

// Field case G13: the right size and other bytes.
TEST_F(StreamTest, G13EveryFlippedByteIsSeen) {
  Want("a", MK_DTYPE_FP32, {4});
  const std::string good = WriteSafetensors({{"a", "F32", {4}, FloatBytes({1, 2, 3, 4})}});
  const std::string digest = Sha256Hex(good);
  ASSERT_TRUE(Stream(good, digest).ok());
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_FALSE(Stream(bad, digest).ok()) << i;
  }
}

// Tensors of several chunks, read while another thread changes the file behind the reader's back.
class BigStreamTest : public StreamTest {
 protected:
  static constexpr size_t kCount = 6'000'001;  // odd, so that the last chunk is ragged

  BigStreamTest() : values_(kCount, 0.0f), shape_(1, kCount) {
    weights_.push_back({"w", MK_DTYPE_FP32, 1, shape_.data(), values_.data(), 0, 0});
    std::string data(kCount * 2, '\0');
    for (size_t i = 0; i < kCount; ++i) {
      const uint16_t bits = static_cast<uint16_t>(0x3f80 + i % 50);
      std::memcpy(data.data() + i * 2, &bits, 2);
    }
    file_ = WriteSafetensors({{"w", "BF16", {kCount}, data}});
  }

  std::vector<float> values_;
  std::vector<int64_t> shape_;
  std::string file_;
};

TEST_F(BigStreamTest, ChunksJoinWithoutASeam) {
  ASSERT_TRUE(Stream(file_, Sha256Hex(file_)).ok());
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(values_[i], 1.0f + static_cast<float>(i % 50) / 128.0f) << i;
  }
}

TEST_F(BigStreamTest, AFileThatShrinksOrGrowsMeanwhileIsDataLoss) {
  for (const bool grow : {false, true}) {
    absl::Status status;
    // The change races with the reader, on purpose; it is tried again until it came in time.
    for (int attempt = 0; attempt < 50 && status.ok(); ++attempt) {
      const int fd = File(file_);
      std::atomic<bool> reading{false};
      std::thread other([&] {
        while (!reading) std::this_thread::yield();
        EXPECT_EQ(ftruncate(fd, static_cast<off_t>(grow ? file_.size() + 1 : 4096)), 0);
      });
      reading = true;
      status = StreamWeights(fd, {"model.safetensors", ""}, absl::MakeSpan(weights_));
      other.join();
      close(fd);
      // Changed before it was looked at: another file, and no race.
      if (status.code() == StatusCode::kInvalidArgument) status = absl::OkStatus();
    }
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
    EXPECT_TRUE(Says(std::string(status.message()),
                     grow ? "changed its size from" : "the file ended early"))
        << status;
  }
}

}  // namespace
}  // namespace mk
