// Reading, judging and loading one pack: every refusal by name.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>

#include "core/loader/elf_facts.h"
#include "core/loader/loaded_model.h"
#include "core/loader/manifest.h"
#include "core/loader/pack_library.h"
#include "core/loader/repository.h"
#include "core/loader/sealed_pack.h"
#include "core/loader/version_policy.h"
#include "core/weights/testing/write_safetensors.h"
#include "tests/packs/pack_builder.h"

namespace mk {
namespace {

using absl::StatusCode;

bool Says(const absl::Status& status, const std::string& part) {
  return std::string(status.message()).find(part) != std::string::npos;
}

// ---- Versions
// -------------------------------------------------------------------------------------------------------

TEST(ParseVersion, TakesCanonicalPositiveIntegersOnly) {
  EXPECT_EQ(*ParseVersion("1"), 1);
  EXPECT_EQ(*ParseVersion("9223372036854775807"), INT64_MAX);
  for (const char* bad : {"", "0", "-1", "+1", "03", "v4", "11.tmp", "1/../2", " 1", "1 ", "1.0",
                          "9223372036854775808", "010"}) {
    EXPECT_FALSE(ParseVersion(bad).ok()) << bad;
  }
}

// Field case B13: versions compare as numbers.
TEST(AspiredVersions, B13LatestIsNumeric) {
  EXPECT_EQ(*AspiredVersions(*ParseVersionPolicy("latest"), {1, 10, 2}),
            (std::vector<int64_t>{10}));
  EXPECT_EQ(*AspiredVersions(*ParseVersionPolicy("latest:2"), {1, 10, 2}),
            (std::vector<int64_t>{2, 10}));
  EXPECT_EQ(*AspiredVersions(*ParseVersionPolicy("all"), {3, 1}), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(*AspiredVersions(*ParseVersionPolicy("2,1"), {1, 2, 3}), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(AspiredVersions(*ParseVersionPolicy("7"), {1}).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(AspiredVersions({}, {}).status().code(), StatusCode::kNotFound);
  for (const char* bad : {"", "latest:0", "latest:x", "1,,2", "some", "-1", "01"}) {
    EXPECT_FALSE(ParseVersionPolicy(bad).ok()) << bad;
  }
}

// ---- Manifest
// -------------------------------------------------------------------------------------------------------

constexpr char kManifest[] = R"(
name: "p" version: 1 devices: "cpu"
code { file: "pack.so" name: "c" version: 1 abi_major: 1 }
files { name: "pack.so" sha256: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" }
inputs { name: "IN" datatype: "FP32" shape: -1 }
outputs { name: "OUT" datatype: "FP32" shape: -1 })";

absl::Status Judge(const std::string& text) {
  const auto manifest = ParseManifest(text);
  return manifest.ok() ? ValidateManifest(*manifest, "p", 1) : manifest.status();
}

std::string With(const std::string& from, const std::string& to) {
  std::string text = kManifest;
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Manifest, AGoodOneIsTaken) { EXPECT_TRUE(Judge(kManifest).ok()) << Judge(kManifest); }

TEST(Manifest, EveryBrokenFieldIsNamed) {
  const struct {
    std::string text;
    const char* says;
  } cases[] = {
      {std::string(kManifest) + "unknown_field: 1", "unknown_field"},
      {std::string(kManifest) + "lanes: \"two\"", "line 6"},
      {With("name: \"p\"", "name: \"q\""), "name 'q' in the folder of 'p'"},
      {With("version: 1 devices", "version: 2 devices"), "version 2 in the folder of version 1"},
      {With("devices: \"cpu\"", ""), "devices: none"},
      {With("devices: \"cpu\"", "devices: \"tpu\""), "unknown device 'tpu'"},
      {With("abi_major: 1", "abi_major: 2"), "code.abi_major 2"},
      {With("abi_major: 1", "abi_major: 1 abi_minor: 9"), "code.abi_minor 9"},
      {With("version: 1 abi", "version: 0 abi"), "code.version 0"},
      {With("file: \"pack.so\"", "file: \"other.so\""), "code.file 'other.so'"},
      {With("files { name: \"pack.so\"", "files { name: \"../pack.so\""),
       "'../pack.so' must be a plain"},
      {With("files { name: \"pack.so\"", "files { name: \"manifest.textproto\""),
       "plain file name"},
      {With("sha256: \"0123", "sha256: \"XYZ"), "64 lower-case hex"},
      {With("datatype: \"FP32\"", "datatype: \"fp32\""), "unknown datatype 'fp32'"},
      {With("shape: -1", "shape: -2"), "dim -2 < -1"},
      {With("name: \"IN\"", "name: \"I N\""), "name 'I N'"},
      {std::string(kManifest) + "inputs { name: \"IN\" datatype: \"FP32\" }",
       "'IN' is named twice"},
      {std::string(kManifest) + "lanes: 65", "lanes 65"},
      {std::string(kManifest) + "blind_spots: 6", "blind_spots: 6"},
      {std::string(kManifest) + "memory { weights_bytes: 18446744073709551615 }", "memory"},
      {std::string(kManifest) + "golden { file: \"g\" max_rel_l2: 0.1 }", "golden.file 'g'"},
      {std::string(kManifest) + "labels_file: \"l\"", "labels_file 'l'"},
      {std::string(kMaxManifestBytes + 1, ' '), "the limit is"},
  };
  for (const auto& c : cases) {
    const absl::Status status = Judge(c.text);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.says;
    EXPECT_TRUE(Says(status, c.says)) << status << " should say " << c.says;
  }
}

// ---- ELF
// ------------------------------------------------------------------------------------------------------------

absl::Status JudgeBytes(const std::string& bytes) {
  const auto facts = ReadElfFacts(bytes);
  return facts.ok() ? JudgeElf(*facts) : facts.status();
}

TEST(Elf, GoodPacksPass) {
  for (const char* pack :
       {"packs/echo/echo.so", "tests/packs/version1.so", "tests/packs/affine.so"}) {
    EXPECT_TRUE(JudgeBytes(ReadRunfile(pack)).ok()) << pack << JudgeBytes(ReadRunfile(pack));
  }
}

TEST(Elf, EachForbiddenFeatureIsNamed) {
  const auto refuse = [](const char* fixture, const char* says) {
    const absl::Status status = JudgeBytes(ReadRunfile(std::string("tests/packs/") + fixture));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << fixture;
    EXPECT_TRUE(Says(status, says)) << fixture << ": " << status;
  };
  refuse("needed.so", "needs 'libz.so.1'");
  refuse("unique.so", "is STB_GNU_UNIQUE");
  refuse("no_entry.so", "does not export 'mk_pack_entry'");
  refuse("thread_local.so", "thread_local");
#ifndef MK_SANITIZED
  refuse("extra_export.so", "exports 'mk_pack_extra'");
  refuse("constructor.so", "1 static constructors");
#endif
}

TEST(Elf, LibrariesAreKnownByTheirWholeNames) {
  auto facts = *ReadElfFacts(ReadRunfile("tests/packs/version1.so"));
  facts.needed = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1",
                  "ld-linux-x86-64.so.2"};
  EXPECT_TRUE(JudgeElf(facts).ok()) << JudgeElf(facts);
  facts.needed = {"libc.so.6.own"};
  EXPECT_TRUE(Says(JudgeElf(facts), "needs 'libc.so.6.own'")) << JudgeElf(facts);
}

TEST(Elf, EveryTruncationAndFlippedHeaderByteIsSurvived) {
  const std::string good = ReadRunfile("tests/packs/sum2.so");
  for (size_t size = 0; size < good.size(); size += size < 600 ? 1 : 97) {
    EXPECT_FALSE(JudgeBytes(good.substr(0, size)).ok()) << size;
  }
  std::string bad = good;
  for (size_t i = 0; i < good.size(); i += i < 2000 ? 1 : 13) {
    bad[i] = static_cast<char>(bad[i] ^ 0xff);
    static_cast<void>(JudgeBytes(bad));
    bad[i] = good[i];
  }
}

// ---- Sealing
// --------------------------------------------------------------------------------------------------------

class PackTest : public testing::Test {
 protected:
  absl::StatusOr<std::shared_ptr<const SealedPack>> Read(const std::string& name = "p",
                                                         int64_t version = 1,
                                                         uint64_t limit = 64 << 20) {
    auto repository = Repository::Open(repository_.root());
    auto folder = (*repository)->OpenVersion(name, version);
    if (!folder.ok()) return folder.status();
    return SealedPack::Read(folder->get(), name, version, limit,
                            "mk-test-" + std::to_string(++label_));
  }
  absl::Status Load() {
    auto sealed = Read();
    if (!sealed.ok()) return sealed.status();
    return LoadedModel::Create(*sealed, *device_, services_, nullptr).status();
  }
  // Replaces `from` by `to` (of one length) in the library before it is installed.
  absl::Status LoadPatched(PackSpec spec, const std::string& from, const std::string& to) {
    EXPECT_EQ(from.size(), to.size());
    size_t at = spec.library.find(from);
    EXPECT_NE(at, spec.library.npos);
    for (; at != spec.library.npos; at = spec.library.find(from, at + from.size())) {
      spec.library.replace(at, from.size(), to);
    }
    repository_.Install("p", 1, std::move(spec));
    return Load();
  }
  static std::string Words(std::initializer_list<uint32_t> words) {
    std::string bytes;
    for (const uint32_t word : words) bytes.append(reinterpret_cast<const char*>(&word), 4);
    return bytes;
  }

  TestRepository repository_;
  std::unique_ptr<Device> device_ = *NewCpuDevice(1 << 30);
  HostServices services_{{1, 1 << 20}};
  int label_ = 0;
};

TEST_F(PackTest, ReadsSealsAndKeepsItsBytesWhenTheDiskChanges) {
  PackSpec spec = EchoSpec();
  spec.small["labels.txt"] = "a\nb\n";
  repository_.Install("p", 1, spec);
  auto sealed = Read();
  ASSERT_TRUE(sealed.ok()) << sealed.status();
  WriteFile(repository_.Folder("p", 1) + "/labels.txt", "changed");
  EXPECT_EQ((*sealed)->small.at("labels.txt")->bytes(), "a\nb\n");
  EXPECT_EQ(ftruncate((*sealed)->code().fd(), 0), -1);
  EXPECT_EQ(write((*sealed)->code().fd(), "x", 1), -1);
}

TEST_F(PackTest, WrongDigestMissingSurplusAndOversizeFilesAreNamed) {
  repository_.Install("p", 1, EchoSpec());
  const std::string folder = repository_.Folder("p", 1);
  const std::string library = ReadFileOrEmpty(folder + "/pack.so");
  WriteFile(folder + "/pack.so", library.substr(0, library.size() - 1));
  EXPECT_EQ(Read().status().code(), StatusCode::kDataLoss);
  EXPECT_TRUE(Says(Read().status(), "file 'pack.so': digest")) << Read().status();
  WriteFile(folder + "/pack.so", library);
  EXPECT_TRUE(Read().ok());
  WriteFile(folder + "/stray", "x");
  EXPECT_TRUE(Says(Read().status(), "'stray' stands in the folder and not in the manifest"));
  std::filesystem::remove(folder + "/stray");
  EXPECT_TRUE(Says(Read("p", 1, 1000).status(), "larger than the 1000 bytes"));
  std::filesystem::remove(folder + "/pack.so");
  EXPECT_TRUE(Says(Read().status(), "'pack.so'"));
}

TEST_F(PackTest, LinksThatLeaveTheFolderAreRefused) {
  repository_.Install("p", 1, EchoSpec());
  const std::string folder = repository_.Folder("p", 1);
  const std::string library = ReadFileOrEmpty(folder + "/pack.so");
  WriteFile(repository_.root() + "/outside.so", library);
  std::filesystem::remove(folder + "/pack.so");
  std::filesystem::create_symlink("../../outside.so", folder + "/pack.so");
  EXPECT_TRUE(Says(Read().status(), "leaves its folder")) << Read().status();
  EXPECT_FALSE(Read("..", 1).ok());
  EXPECT_FALSE(Read("p/../p", 1).ok());
}

// ---- Loading
// --------------------------------------------------------------------------------------------------------

TEST_F(PackTest, LoadsRunsAndUnloadsWithoutATrace) {
  repository_.Install("p", 1,
                      AffineSpec(WriteSafetensors({{"w", "F32", {2}, FloatBytes({2, 1})}})));
  auto model = LoadedModel::Create(*Read(), *device_, services_, nullptr);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->memory().live(Region::kWeights), 8u);
  bool retired = true;
  EXPECT_TRUE((*model)->Unload(&retired).ok());
  EXPECT_FALSE(retired);
  EXPECT_EQ(device_->in_use_bytes(), 0u);
}

TEST_F(PackTest, EntryFieldsThatDifferAreNamed) {
  // magic, abi_major, abi_minor, struct_size stand in a row.
  const std::string magic = "MKPACK01";
  const struct {
    std::string bad;
    const char* says;
  } cases[] = {
      {"MKPACK99" + Words({1, 0, 96}), "magic"},
      {magic + Words({2, 0, 96}), "abi_major is 2, this host speaks 1"},
      {magic + Words({1, 7, 96}), "abi_minor is 7"},
      {magic + Words({1, 0, 16}), "struct_size is 16, must be at least 88"},
  };
  std::string actual = ReadRunfile("packs/echo/echo.so");
  const size_t at = actual.find(magic);
  ASSERT_NE(at, actual.npos);
  const std::string found = actual.substr(at, 20);
  for (const auto& c : cases) {
    const absl::Status status = LoadPatched(EchoSpec(), found, c.bad);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_TRUE(Says(status, c.says)) << status;
  }
  PackSpec spec = EchoSpec();
  spec.manifest.mutable_code()->set_name("other");
  repository_.Install("p", 1, spec);
  EXPECT_TRUE(Says(Load(), "name is echo, the manifest says other")) << Load();
}

// The dynamic loader knows a library again by its path: neither bytes that were let go of nor a
// library that stays mapped may stand in for new code.
TEST_F(PackTest, B02AnOldLibraryNeverStandsInForANewOne) {
  const auto load = [&](const char* fixture, int64_t version) {
    repository_.Install("p", 1, FixtureSpec(fixture, version));
    return *PackLibrary::Load(**Read());  // the sealed bytes are let go of here
  };
  const auto one = load("version1", 1);
  const auto two = load("version2", 2);
  EXPECT_EQ(one->entry().code_version, 1u);
  EXPECT_EQ(two->entry().code_version, 2u);
  // Another handle keeps the first one mapped, as a unique symbol would.
  Dl_info info;
  ASSERT_NE(dladdr(&one->entry(), &info), 0);
  void* second = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(second, nullptr);
  EXPECT_FALSE(one->Close());  // retired, and told
  for (int i = 0; i < 8; ++i) EXPECT_EQ(load("version2", 2)->entry().code_version, 2u);
  EXPECT_TRUE(two->Close());
  dlclose(second);
}

TEST_F(PackTest, NamesOfTheFullLengthLoad) {
  const std::string name(128, 'n'), file(128, 'f');
  PackSpec spec = EchoSpec();
  spec.small[file] = "x";
  repository_.Install(name, INT64_MAX, spec);
  const auto repository = *Repository::Open(repository_.root());
  const auto folder = repository->OpenVersion(name, INT64_MAX);
  ASSERT_TRUE(folder.ok()) << folder.status();
  const auto sealed = SealedPack::Read(folder->get(), name, INT64_MAX, 64 << 20,
                                       "mk-" + name + "-9223372036854775807-g1");
  ASSERT_TRUE(sealed.ok()) << sealed.status();
  auto library = PackLibrary::Load(**sealed);
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_TRUE((*library)->Close());
}

// Field case B02: the version that the library reports is held against the manifest's.
TEST_F(PackTest, B02CodeVersionMustBeTheManifests) {
  repository_.Install("p", 1, FixtureSpec("version2", 1));
  EXPECT_TRUE(Says(Load(), "code_version is 2, the manifest says 1")) << Load();
}

// Field case B07: the loader's own words come through, without a path.
TEST_F(PackTest, B07UndefinedSymbolsAndVersionsAreNamed) {
  repository_.Install("p", 1, FixtureSpec("undefined"));
  EXPECT_TRUE(Says(Load(), "undefined symbol: mk_not_there")) << Load();
  EXPECT_FALSE(Says(Load(), "/proc")) << Load();
  const absl::Status status = LoadPatched(EchoSpec(), "GLIBCXX_3.4.21", "GLIBCXX_9.9.99");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Says(status, "GLIBCXX_9.9.99")) << status;
  EXPECT_FALSE(Says(status, "/")) << "a client would see a path of this host: " << status;
  EXPECT_TRUE(Says(LoadPatched(EchoSpec(), "libgcc_s.so.1", "libnope_.so.1"), "libnope_.so.1"));
}

// Field case B04: a pack with thread_local objects never gets to run.
TEST_F(PackTest, B04ThreadLocalsAreRefusedBeforeTheyCanOutliveTheCode) {
  repository_.Install("p", 1, FixtureSpec("thread_local"));
  EXPECT_TRUE(Says(Load(), "thread_local")) << Load();
}

TEST_F(PackTest, ASignatureOtherThanTheManifestsIsRefused) {
  PackSpec spec = FixtureSpec("version1");
  spec.manifest.mutable_outputs(0)->set_datatype("FP32");
  repository_.Install("p", 1, spec);
  EXPECT_TRUE(Says(Load(), "output 0 is 'VERSION' INT64[1] in the pack and 'VERSION' FP32[1]"))
      << Load();
}

TEST_F(PackTest, CreateThatFailsOrThrowsGivesItsMessage) {
  repository_.Install("p", 1, FixtureSpec("create_fails"));
  EXPECT_EQ(Load().code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Says(Load(), "create failed: fixture: no such luck")) << Load();
  repository_.Install("p", 1, FixtureSpec("create_throws"));
  EXPECT_TRUE(Says(Load(), "exception in pack: thrown in create")) << Load();
  EXPECT_EQ(device_->in_use_bytes(), 0u);
}

TEST_F(PackTest, WeightsThatDoNotFitAreRefusedByName) {
  const auto load = [&](const std::string& file) {
    repository_.Install("p", 1, AffineSpec(file));
    return Load();
  };
  EXPECT_TRUE(Says(load(WriteSafetensors({{"v", "F32", {2}, FloatBytes({2, 1})}})), "missing 'w'"));
  EXPECT_TRUE(
      Says(load(WriteSafetensors({{"w", "F32", {2}, FloatBytes({2, NAN})}})), "nan at index 1"));
  EXPECT_TRUE(Says(load("short"), "weights 'model.safetensors'") ||
              Says(load("short"), "safetensors:"));
  PackSpec greedy = AffineSpec(WriteSafetensors({{"w", "F32", {2}, FloatBytes({2, 1})}}));
  greedy.manifest.mutable_memory()->set_weights_bytes(7);
  repository_.Install("p", 1, greedy);
  EXPECT_EQ(Load().code(), StatusCode::kResourceExhausted);
}

TEST_F(PackTest, WeightsChangedAfterTheManifestFailByDigest) {
  repository_.Install("p", 1,
                      AffineSpec(WriteSafetensors({{"w", "F32", {2}, FloatBytes({2, 1})}})));
  auto sealed = Read();
  WriteFile(repository_.Folder("p", 1) + "/model.safetensors",
            WriteSafetensors({{"w", "F32", {2}, FloatBytes({2, 3})}}));
  const absl::Status status = LoadedModel::Create(*sealed, *device_, services_, nullptr).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
}

}  // namespace
}  // namespace mk
