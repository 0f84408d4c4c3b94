// The parts of the import, each by itself: what a file is, the look at its numbers, the digest
// beside the copy, and a version made beside its place.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/abi/mk_pack.h"
#include "core/weights/convert.h"
#include "core/weights/sha256.h"
#include "server/import/checkpoint.h"
#include "server/import/finite.h"
#include "server/import/hash_thread.h"
#include "server/import/staging.h"
#include "server/import/testing/checkpoints.h"

namespace mk {
namespace {

using std::string_literals::operator""s;

TEST(SniffCheckpoint, KnowsFilesByTheirContent) {
  EXPECT_EQ(*SniffCheckpoint("PK\3\4....", 100), CheckpointKind::kTorchZip);
  EXPECT_EQ(*SniffCheckpoint("\x10\0\0\0\0\0\0\0{\"a\""s, 100), CheckpointKind::kSafetensors);
  const auto says = [](const std::string& bytes, const std::string& what) {
    const auto kind = SniffCheckpoint(bytes, bytes.size());
    const std::string message = kind.ok() ? "OK" : std::string(kind.status().message());
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  const std::string legacy = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
  says(legacy, "PyTorch before 1.6");
  says(legacy, "weights_only=True");
  says("\x80\x04\x95", "bare pickle");
  says(std::string(257, 'x') + "ustar", "tar archive");
  says("\x1f\x8b\x08", "compressed");
  says("version https://git-lfs.github.com/spec/v1\n", "git lfs pull");
  says("<!DOCTYPE html>", "web page");
  says("\x89HDF\r\n", "HDF5");
  says("PK\5\6", "empty zip");
  says("", "empty");
  says("hello world, this is text", "neither safetensors nor");
  says("\x10\0\0\0\0\0\0\0"s, "neither");
}

std::string Bits(const std::vector<uint64_t>& values, size_t bytes) {
  std::string out;
  for (const uint64_t value : values) out.append(reinterpret_cast<const char*>(&value), bytes);
  return out;
}

TEST(FirstNotFinite, AgreesWithTheLoaderOnEveryHalfWord) {
  for (const StoredType type : {StoredType::kF16, StoredType::kBF16}) {
    for (uint64_t bits = 0; bits < 65536; ++bits) {
      const std::string one = Bits({bits}, 2);
      char out[4];
      std::string ours, loaders;
      bool zero = true;
      const int64_t want = ConvertElements(type, MK_DTYPE_FP32, one.data(), 1, out, &loaders);
      ASSERT_EQ(FirstNotFinite(type, one.data(), 1, &ours, &zero), want) << bits;
      if (want < 0) {
        ASSERT_EQ(zero, (bits & 0x7fff) == 0) << bits;
      }
    }
  }
}

TEST(FirstNotFinite, FindsTheFirstInBlocksAndTails) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  for (const size_t size : {1u, 1023u, 1024u, 1025u, 5000u}) {
    for (const size_t at : {size_t{0}, size / 2, size - 1}) {
      for (const float bad : {nan, inf, -inf}) {
        std::vector<float> values(size, 0.5f);
        values[at] = bad;
        values[size - 1] = size - 1 == at ? bad : nan;
        std::string value;
        bool zero = true;
        // At an odd address: stored tensors have any.
        const std::string bytes =
            "x" + std::string(reinterpret_cast<const char*>(values.data()), size * 4);
        EXPECT_EQ(FirstNotFinite(StoredType::kF32, bytes.data() + 1, static_cast<int64_t>(size),
                                 &value, &zero),
                  static_cast<int64_t>(at));
      }
    }
    std::vector<float> zeros(size, -0.0f);
    std::string value;
    bool zero = true;
    const char* data = reinterpret_cast<const char*>(zeros.data());
    EXPECT_EQ(FirstNotFinite(StoredType::kF32, data, static_cast<int64_t>(size), &value, &zero),
              -1);
    EXPECT_TRUE(zero);
    zeros[size - 1] = 1e-45f;
    EXPECT_EQ(FirstNotFinite(StoredType::kF32, data, static_cast<int64_t>(size), &value, &zero),
              -1);
    EXPECT_FALSE(zero);
  }
}

TEST(FirstNotFinite, DoublesMustFitIntoFloats) {
  const double values[] = {1, 3.4e38, -1e-300, 3.5e38};
  std::string value;
  bool zero = true;
  EXPECT_EQ(
      FirstNotFinite(StoredType::kF64, reinterpret_cast<const char*>(values), 4, &value, &zero), 3);
  EXPECT_EQ(value, "3.5e+38");
}

TEST(HashThread, DigestsWhatIsSubmittedInOrder) {
  std::mt19937 random(1);
  HashThread hash;
  std::string all;
  for (int i = 0; i < 300; ++i) {
    const size_t size = random() % 5000;
    char* buffer = hash.Acquire();
    for (size_t j = 0; j < size; ++j) buffer[j] = static_cast<char>(random());
    all.append(buffer, size);
    hash.Submit(size);
  }
  EXPECT_EQ(hash.HexDigest(), Sha256Hex(all));
  HashThread none;
  EXPECT_EQ(none.HexDigest(), Sha256Hex(""));
  HashThread abandoned;
  std::memset(abandoned.Acquire(), 1, 100);
  abandoned.Submit(100);
}

TEST(Staging, NothingIsLeftOfWhatWasNotPublished) {
  const TestFolder folder;
  const std::string root = folder.path() + "/packs";
  {
    auto staging = Staging::Create(root, "one");
    ASSERT_TRUE(staging.ok()) << staging.status();
    EXPECT_TRUE((*staging)->WriteFile("a", "text").ok());
    EXPECT_EQ((*staging)->WriteFile("a", "again").code(), absl::StatusCode::kInternal);
    EXPECT_EQ(folder.List("packs").size(), 3u);
  }
  EXPECT_TRUE(folder.List("packs").empty());
}

TEST(Staging, PublishesOnceAndReplacesOnlyWhenAsked) {
  const TestFolder folder;
  const std::string root = folder.path() + "/packs";
  const auto publish = [&](const std::string& text, bool replace) {
    auto staging = Staging::Create(root, "one");
    EXPECT_TRUE(staging.ok() && (*staging)->WriteFile(text, text).ok());
    return (*staging)->Publish(7, replace);
  };
  EXPECT_TRUE(publish("a", false).ok());
  EXPECT_EQ(publish("b", false).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(folder.List("packs"), (std::vector<std::string>{"one", "one/7", "one/7/a"}));
  EXPECT_TRUE(publish("c", true).ok());
  EXPECT_EQ(folder.List("packs"), (std::vector<std::string>{"one", "one/7", "one/7/c"}));
  EXPECT_EQ(VersionsOnDisk(root, "one"), std::vector<int64_t>{7});
  EXPECT_TRUE(VersionsOnDisk(root, "other").empty());
}

TEST(Staging, SaysWhatIsWrongWithARepository) {
  EXPECT_EQ(Staging::Create("/nowhere/at/all", "one").status().code(), absl::StatusCode::kNotFound);
  const TestFolder folder;
  const std::string file = folder.Write("plain", "x");
  EXPECT_EQ(Staging::Create(file, "one").status().code(), absl::StatusCode::kNotFound);
  folder.Write("packs/taken", "a file where the pack's folder would be");
  EXPECT_FALSE(Staging::Create(folder.path() + "/packs", "taken").ok());
}

TEST(Staging, LeftoversOfAKilledImportGoAndARunningOneStays) {
  const TestFolder folder;
  const std::string root = folder.path() + "/packs";
  const pid_t child = fork();
  if (child == 0) {
    auto staging = Staging::Create(root, "one");
    if (staging.ok()) (*staging)->WriteFile("half", "made").IgnoreError();
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(folder.List("packs").size(), 3u);
  const auto repository = Repository::Open(root);
  const auto versions = (*repository)->ListVersions("one");
  EXPECT_TRUE(versions->complete.empty() && versions->incomplete.empty());

  auto running = Staging::Create(root, "one");  // removes the killed one's
  ASSERT_TRUE(running.ok());
  EXPECT_EQ(folder.List("packs").size(), 2u);
  auto second = Staging::Create(root, "one");  // leaves the running one's
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(folder.List("packs").size(), 3u);
}

}  // namespace
}  // namespace mk
