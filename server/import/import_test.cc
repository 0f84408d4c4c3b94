// Whole imports with the real pack library: what becomes of good checkpoints, and how each bad one
// is refused with nothing left behind.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "core/loader/manifest.h"
#include "core/weights/sha256.h"
#include "server/import/pack_library_file.h"
#include "server/import/testing/checkpoints.h"
#include "server/import/vmamba.h"

namespace mk {
namespace {

using Names = std::vector<std::string>;

std::string Read(const std::string& path) {
  const auto bytes = ReadWholeFile(path, uint64_t{1} << 30);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : "";
}

TestTensor& Named(std::vector<TestTensor>& tensors, const std::string& name) {
  return *std::find_if(tensors.begin(), tensors.end(),
                       [&](const TestTensor& tensor) { return tensor.name == name; });
}

class Import : public testing::Test {
 protected:
  std::string Repository() const { return folder_.path() + "/packs"; }
  std::string Safetensors(const std::vector<TestTensor>& tensors) {
    return folder_.Write("checkpoint.safetensors", WriteSafetensors(tensors));
  }
  VMambaImport Options(const std::string& checkpoint) {
    return ImportOptions(checkpoint, Repository());
  }
  VMambaImported Good(const VMambaImport& options) {
    auto imported = ImportVMamba(options);
    EXPECT_TRUE(imported.ok()) << imported.status();
    return imported.ok() ? *imported : VMambaImported();
  }
  void Refused(const VMambaImport& options, absl::StatusCode code, const std::string& says) {
    const auto before = folder_.List("packs");
    const auto imported = ImportVMamba(options);
    EXPECT_EQ(imported.status().code(), code) << imported.status();
    EXPECT_NE(std::string(imported.status().message()).find(says), std::string::npos)
        << "'" << imported.status().message() << "' should say '" << says << "'";
    EXPECT_EQ(folder_.List("packs"), before) << "something was left behind";
  }
  mergekernel::v1::Manifest ManifestOf(const VMambaImported& imported) {
    const auto manifest = ParseManifest(Read(imported.folder + "/manifest.textproto"));
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    return *manifest;
  }

  TestFolder folder_;
};

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST_F(Import, ATorchCheckpointBecomesACompleteVersion) {
  VMambaImport options = Options(kFixture);
  options.golden = kFixtureGolden;
  options.licence = "CC0-1.0";
  const VMambaImported imported = Good(options);
  EXPECT_EQ(imported.folder, Repository() + "/tri/1");
  EXPECT_EQ(imported.source, "torch");
  EXPECT_EQ(imported.parameters.at("config.depths"), "1-1");
  EXPECT_EQ(imported.parameters.at("config.ssm_ratio"), "2.0");
  EXPECT_EQ(imported.parameters.at("config.d_state"), "2");
  EXPECT_EQ(folder_.List("packs"),
            (Names{"tri", "tri/1", "tri/1/golden.safetensors", "tri/1/labels.txt",
                   "tri/1/manifest.textproto", "tri/1/model.safetensors", "tri/1/pack.so"}));
  const auto manifest = ManifestOf(imported);
  EXPECT_TRUE(ValidateManifest(manifest, "tri", 1).ok());
  EXPECT_EQ(manifest.weights_license(), "CC0-1.0");
  EXPECT_EQ(manifest.golden().file(), "golden.safetensors");
  for (const auto& file : manifest.files()) {
    EXPECT_EQ(Sha256Hex(Read(imported.folder + "/" + file.name())), file.sha256()) << file.name();
  }
  EXPECT_EQ(Read(imported.folder + "/labels.txt"), "class 0\nclass 1\nclass 2\nclass 3\nclass 4\n");
  EXPECT_EQ(Read(imported.folder + "/pack.so"), Read(kVMambaLibrary));
}

TEST_F(Import, SafetensorsKeepEveryByteUnderAnyPrefix) {
  std::vector<TestTensor> tensors = FixtureTensors();
  const std::vector<TestTensor> plain = tensors;
  for (TestTensor& tensor : tensors) tensor.name = "module." + tensor.name;
  tensors.push_back({"n_averaged", "I64", {}, std::string(8, '\1')});
  const VMambaImported imported = Good(Options(Safetensors(tensors)));
  const std::string written = Read(imported.folder + "/model.safetensors");
  const auto view = SafetensorsView::Parse(written);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->header().tensors.size(), plain.size());
  for (const TestTensor& tensor : plain) {
    const StoredTensor* stored = view->header().Find(tensor.name);
    ASSERT_NE(stored, nullptr) << tensor.name;
    EXPECT_EQ(view->Data(*stored), tensor.data) << tensor.name;
    EXPECT_EQ(stored->shape, tensor.shape);
  }
  EXPECT_EQ(view->header().metadata.at("config.embed_dim"), "4");
  ASSERT_EQ(imported.notes.size(), 2u);
  EXPECT_NE(imported.notes[0].find("'module.'"), std::string::npos);
  EXPECT_NE(imported.notes[1].find("'n_averaged'"), std::string::npos);
}

TEST_F(Import, StoredTypesAreKept) {
  std::vector<TestTensor> tensors = FixtureTensors();
  const auto narrow = [&](const std::string& name, const std::string& type, size_t bytes) {
    TestTensor& tensor = Named(tensors, name);
    tensor.dtype = type;
    tensor.data = std::string(tensor.data.size() / 4 * bytes, '\1');
  };
  narrow("classifier.head.weight", "F16", 2);
  narrow("classifier.norm.bias", "BF16", 2);
  narrow("patch_embed.0.weight", "F64", 8);
  const VMambaImported imported = Good(Options(Safetensors(tensors)));
  const std::string written = Read(imported.folder + "/model.safetensors");
  const auto view = SafetensorsView::Parse(written);
  EXPECT_EQ(view->header().Find("classifier.head.weight")->type, StoredType::kF16);
  EXPECT_EQ(view->header().Find("classifier.norm.bias")->type, StoredType::kBF16);
  EXPECT_EQ(view->header().Find("patch_embed.0.weight")->type, StoredType::kF64);
}

TEST_F(Import, TensorsThatAreNotFiniteAreAllNamed) {
  std::vector<TestTensor> tensors = FixtureTensors();
  const float nan = std::nanf(""), inf = INFINITY;
  std::memcpy(Named(tensors, "patch_embed.2.bias").data.data() + 4, &nan, 4);
  std::memcpy(Named(tensors, "classifier.head.bias").data.data() + 16, &inf, 4);
  Refused(Options(Safetensors(tensors)), kInvalid,
          "tensor 'patch_embed.2.bias' has nan at index 1");
  Refused(Options(Safetensors(tensors)), kInvalid,
          "tensor 'classifier.head.bias' has inf at index 4");
  Refused(Options(Safetensors(tensors)), kInvalid, "2 tensors are not finite");
  for (TestTensor& tensor : tensors) std::memcpy(tensor.data.data(), &nan, 4);
  Refused(Options(Safetensors(tensors)), kInvalid, "... and 1 more");
}

TEST_F(Import, TensorsOfOtherTypesAreNamed) {
  std::vector<TestTensor> tensors = FixtureTensors();
  Named(tensors, "classifier.head.bias").dtype = "I32";
  Refused(Options(Safetensors(tensors)), kInvalid, "tensor 'classifier.head.bias' is of type I32");
}

TEST_F(Import, ZeroTensorsAreNoted) {
  std::vector<TestTensor> tensors = FixtureTensors();
  TestTensor& zero = Named(tensors, "layers.0.blocks.0.mlp.fc1.weight");
  zero.data.assign(zero.data.size(), '\0');
  TestTensor& bias = Named(tensors, "layers.0.blocks.0.mlp.fc1.bias");
  bias.data.assign(bias.data.size(), '\0');
  const VMambaImported imported = Good(Options(Safetensors(tensors)));
  EXPECT_EQ(imported.notes, Names{"tensor 'layers.0.blocks.0.mlp.fc1.weight' is zero throughout"});
}

TEST_F(Import, MissingAndSurplusTensorsAreNamedWithCounts) {
  std::vector<TestTensor> tensors = FixtureTensors();
  Named(tensors, "classifier.norm.bias").name = "classifier.norm.biass";
  Refused(Options(Safetensors(tensors)), kInvalid,
          "tensor 'classifier.norm.bias' [8] is missing; the nearest name in the file is "
          "'classifier.norm.biass'");
  Refused(Options(Safetensors(tensors)), kInvalid, "2 differences");
}

TEST_F(Import, FilesThatAreNoCheckpointAreRefusedByContent) {
  Refused(Options(folder_.Write("model.safetensors", "PK\3\4 no archive")), kInvalid,
          "damaged or cut off");
  Refused(Options(folder_.Write("w.pth", "<!DOCTYPE html>")), kInvalid, "web page");
  Refused(Options(folder_.Write("empty.pth", "")), kInvalid, "empty");
  Refused(Options(folder_.path()), kInvalid, "no plain file");
  Refused(Options(folder_.path() + "/absent"), absl::StatusCode::kNotFound, "No such file");
  const std::string good = WriteSafetensors(FixtureTensors());
  Good(Options(folder_.Write("really_safetensors.pth", good)));
  for (const size_t size : {size_t{9}, size_t{100}, good.size() - 1, good.size() / 2}) {
    Refused(Options(folder_.Write("cut.safetensors", good.substr(0, size))), kInvalid,
            "safetensors");
  }
}

TEST_F(Import, FlippedBytesOfAHeaderEndInOrder) {
  const std::string good = WriteSafetensors(FixtureTensors());
  const size_t header = 8 + (static_cast<uint8_t>(good[0]) | static_cast<uint8_t>(good[1]) << 8);
  std::mt19937 random(6);
  for (int i = 0; i < 300; ++i) {
    std::string flipped = good;
    flipped[random() % header] ^= static_cast<char>(1 << random() % 8);
    VMambaImport options = Options(folder_.Write("flipped", flipped));
    options.version = 1;
    const auto before = folder_.List("packs");
    const auto imported = ImportVMamba(options);
    if (imported.ok()) std::filesystem::remove_all(Repository() + "/tri");  // say, a metadata byte
    ASSERT_TRUE(imported.ok() || folder_.List("packs") == before) << imported.status();
  }
}

TEST_F(Import, VersionsCountUpAndAreNeverOverwritten) {
  VMambaImport options = Options(kFixture);
  EXPECT_EQ(Good(options).version, 1);
  EXPECT_EQ(Good(options).version, 2);
  options.version = 9;
  EXPECT_EQ(Good(options).version, 9);
  Refused(options, absl::StatusCode::kAlreadyExists, "has a version 9 already");
  options.force = true;
  options.licence = "another";
  EXPECT_EQ(ManifestOf(Good(options)).weights_license(), "another");
  options = Options(kFixture);
  EXPECT_EQ(Good(options).version, 10);
}

TEST_F(Import, AStopLeavesNothing) {
  VMambaImport options = Options(kFixture);
  int asked = 0;
  options.hooks.stop = [&asked] { return ++asked > 5; };
  Refused(options, absl::StatusCode::kCancelled, "nothing was installed");
}

TEST_F(Import, AKillLeavesNoVersion) {
  const pid_t child = fork();
  if (child == 0) {
    VMambaImport options = Options(kFixture);
    options.hooks.progress = [](uint64_t done, uint64_t total) {
      if (done == total) raise(SIGKILL);
    };
    static_cast<void>(ImportVMamba(options));
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(std::filesystem::exists(Repository() + "/tri/1"));
  EXPECT_EQ(Good(Options(kFixture)).version, 1);
  EXPECT_EQ(folder_.List("packs").size(), 6u) << "the leftovers are gone";
}

TEST_F(Import, AFullDiskIsSaidAndLeavesNothing) {
  // A limit on the size of files stands in for the disk.
  signal(SIGXFSZ, SIG_IGN);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit = {uint64_t{1} << 20, uint64_t{1} << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::vector<TestTensor> none;
    const auto imported = ImportVMamba(Options(kFixture));
    _exit(imported.status().code() == absl::StatusCode::kResourceExhausted ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(folder_.List("packs").empty());
}

TEST_F(Import, LabelsMustBeOneALine) {
  VMambaImport options = Options(kFixture);
  options.labels = folder_.Write("labels.txt", "a cat\r\na dog\r\nb\r\nc\r\nd");
  EXPECT_EQ(Read(Good(options).folder + "/labels.txt"), "a cat\na dog\nb\nc\nd\n");
  options.labels = folder_.Write("labels.txt", "a\nb\nc\nd\n");
  Refused(options, kInvalid, "has 4 lines, the checkpoint has 5 classes");
  options.labels = folder_.Write("labels.txt", "a\nb\n\nd\ne\n");
  Refused(options, kInvalid, "line 3 is empty");
  options.labels = folder_.path() + "/absent";
  Refused(options, absl::StatusCode::kNotFound, "absent");
}

TEST_F(Import, OptionsAreJudgedByThePacksRules) {
  const auto with = [&](auto change) {
    VMambaImport options = Options(kFixture);
    change(options);
    return options;
  };
  Refused(with([](VMambaImport& o) { o.crop = 33; }), kInvalid, "preprocess.crop '33'");
  Refused(with([](VMambaImport& o) { o.crop = 40; }), kInvalid, "at most preprocess.resize 36");
  Refused(with([](VMambaImport& o) { o.mean = "0.5"; }), kInvalid, "preprocess.mean '0.5'");
  Refused(with([](VMambaImport& o) { o.std = "1,0,1"; }), kInvalid, "preprocess.std");
  Refused(with([](VMambaImport& o) { o.max_encoded_pixels = 0; }), kInvalid, "max_encoded_pixels");
  Refused(with([](VMambaImport& o) { o.crop = o.max_input_pixels = 0; }), kInvalid,
          "preprocess.max_input_pixels '0'");
  Refused(with([](VMambaImport& o) { o.version = -1; }), kInvalid, "--version -1");
  for (const char* name : {"../x", ".x", "-x", "a/b", "a b"}) {
    Refused(with([&](VMambaImport& o) { o.name = name; }), kInvalid, "--name");
  }
  Refused(with([](VMambaImport& o) { o.golden = kFixture; }), kInvalid, "golden");
  Refused(with([](VMambaImport& o) { o.lanes = 1000; }), kInvalid, "lanes 1000");
  Good(with([](VMambaImport& o) { o.crop = o.resize = 0; }));
}

TEST_F(Import, TheLibraryComesFromTheRepositoryOrIsNamed) {
  VMambaImport options = Options(kFixture);
  options.pack = "";
  Refused(options, absl::StatusCode::kNotFound, "--pack FILE");
  options.pack = "packs/echo/echo.so";
  Refused(options, kInvalid, "name is echo");
  options.pack = folder_.Write("no.so",
                               "\x7f"
                               "ELF and nothing");
  Refused(options, kInvalid, "pack library");
  options.pack = folder_.path() + "/absent.so";
  Refused(options, absl::StatusCode::kNotFound, "absent.so");
  Good(Options(kFixture));
  options.pack = "";
  EXPECT_EQ(Good(options).library, Repository() + "/tri/1/pack.so");
  options.pack = Repository() + "/tri/2";
  EXPECT_EQ(Good(options).library, Repository() + "/tri/2/pack.so");
}

}  // namespace
}  // namespace mk
