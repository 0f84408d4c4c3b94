// What a user does with a checkpoint, with the real programs: mk import, a daemon, mk load, mk
// infer. The answers are those of PyTorch.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <jpeglib.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/weights/safetensors.h"
#include "server/import/testing/checkpoints.h"

namespace mk {
namespace {

using nlohmann::json;

constexpr char kPhoto[] = "packs/vmamba/import/fixture/photo.png";

std::string Contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

pid_t Spawn(std::vector<std::string> words, const std::string& out, const std::string& err) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&files, 1, out.c_str(), kWrite, 0600);
  posix_spawn_file_actions_addopen(&files, 2, err.c_str(), kWrite, 0600);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  EXPECT_EQ(posix_spawn(&pid, argv[0], &files, nullptr, argv.data(), environ), 0) << words[0];
  posix_spawn_file_actions_destroy(&files);
  return pid;
}

struct Ended {
  int code = -1;
  std::string out, err;
};

class ImportEndToEnd : public testing::Test {
 protected:
  void TearDown() override {
    if (daemon_ == 0) return;
    kill(daemon_, SIGTERM);
    int status = 0;
    waitpid(daemon_, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the daemon's end";
  }

  std::string Packs() const { return folder_.path() + "/packs"; }

  void StartDaemon() {
    const std::string ready = folder_.path() + "/ready.json";
    daemon_ = Spawn({"server/main/mergekerneld", "--repository", Packs(), "--grpc-address",
                     "127.0.0.1:0", "--metrics-address", "127.0.0.1:0", "--probe-path",
                     "core/loader/mergekernel-probe", "--ready-file", ready},
                    folder_.path() + "/daemon.out", folder_.path() + "/daemon.err");
    for (int i = 0; i < 600 && Contents(ready).empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    const json said = json::parse(Contents(ready), nullptr, false);
    ASSERT_TRUE(said.is_object()) << Contents(folder_.path() + "/daemon.err");
    address_ = said["grpc"];
  }

  Ended Mk(std::vector<std::string> words) {
    words.insert(words.begin(), "server/cli/mk");
    if (!address_.empty()) words.insert(words.begin() + 1, {"--address", address_});
    const std::string out = folder_.path() + "/out", err = folder_.path() + "/err";
    const pid_t pid = Spawn(words, out, err);
    int status = 0;
    waitpid(pid, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), Contents(out),
            Contents(err)};
  }
  Ended ImportFixture(std::vector<std::string> more) {
    std::vector<std::string> words = {
        "import", "vmamba", kFixture,   "--repository", Packs(),  "--pack", kVMambaLibrary,
        "--name", "tri",    "--resize", "36",           "--crop", "32"};
    words.insert(words.end(), more.begin(), more.end());
    return Mk(words);
  }
  std::vector<double> Logits(const std::string& photo) {
    const Ended ended = Mk({"infer", "tri", photo, "--json"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    if (ended.code != 0) return {};
    return json::parse(ended.out)[0]["outputs"][0]["data"].get<std::vector<double>>();
  }

  const TestFolder folder_;
  std::string address_;
  pid_t daemon_ = 0;
};

// The golden's picture and logits, as PyTorch made them.
struct Golden {
  std::vector<int64_t> shape;
  std::string pixels;
  std::vector<float> logits;
};
Golden ReadGolden() {
  const std::string bytes = Contents(kFixtureGolden);
  const auto view = SafetensorsView::Parse(bytes);
  EXPECT_TRUE(view.ok()) << view.status();
  Golden golden;
  const StoredTensor& image = *view->header().Find("case0.input.image");
  golden.shape = image.shape;
  golden.pixels = std::string(view->Data(image));
  const std::string_view logits = view->Data(*view->header().Find("case0.output.logits"));
  golden.logits.resize(logits.size() / sizeof(float));
  std::memcpy(golden.logits.data(), logits.data(), logits.size());
  return golden;
}

// [height, width, 3] pixels, each `zoom` times in both directions, as a JPEG.
std::string Jpeg(const Golden& golden, int zoom) {
  const auto height = static_cast<int>(golden.shape[0]), width = static_cast<int>(golden.shape[1]);
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width * zoom);
  jpeg.image_height = static_cast<JDIMENSION>(height * zoom);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 100, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  for (int y = 0; y < height * zoom; ++y) {
    std::string row;
    for (int x = 0; x < width * zoom; ++x) {
      row += golden.pixels.substr(static_cast<size_t>((y / zoom * width + x / zoom) * 3), 3);
    }
    auto* pixels = reinterpret_cast<unsigned char*>(row.data());
    jpeg_write_scanlines(&jpeg, &pixels, 1);
  }
  jpeg_finish_compress(&jpeg);
  const std::string bytes(reinterpret_cast<char*>(memory), size);
  jpeg_destroy_compress(&jpeg);
  free(memory);
  return bytes;
}

TEST_F(ImportEndToEnd, ACheckpointOfPyTorchClassifiesAPhotograph) {
  const std::string labels = folder_.Write("labels.txt", "owl\nfox\nhare\ntrout\nlarge newt\n");
  const Ended imported = ImportFixture({"--labels", labels, "--golden", kFixtureGolden});
  ASSERT_EQ(imported.code, 0) << imported.err;
  EXPECT_NE(imported.out.find("tri/1: imported in"), std::string::npos) << imported.out;
  EXPECT_NE(imported.err.find("left out: epoch, model_ema, optimizer"), std::string::npos);

  StartDaemon();
  const Ended loaded = Mk({"load", "tri"});  // the probe compares with PyTorch's numbers
  ASSERT_EQ(loaded.code, 0) << loaded.err;
  const Golden golden = ReadGolden();
  const std::vector<double> logits = Logits(kPhoto);
  ASSERT_EQ(logits.size(), golden.logits.size());
  double error = 0, norm = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    error += std::pow(logits[i] - static_cast<double>(golden.logits[i]), 2);
    norm += std::pow(static_cast<double>(golden.logits[i]), 2);
  }
  EXPECT_LE(std::sqrt(error / norm), 1e-5);

  // JPEGs, of this size and of another; five lines of labels, the first PyTorch's.
  const size_t first = static_cast<size_t>(
      std::max_element(golden.logits.begin(), golden.logits.end()) - golden.logits.begin());
  const std::vector<std::string> names = {"owl", "fox", "hare", "trout", "large newt"};
  for (const int zoom : {1, 9}) {
    const std::string photo = folder_.Write("photo.jpg", Jpeg(golden, zoom));
    const Ended ended = Mk({"infer", "tri", photo, "--top", "5"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.out.rfind(photo + ":  " + names[first] + " ", 0), 0u) << ended.out;
    for (const std::string& name : names) EXPECT_NE(ended.out.find(name), std::string::npos);
  }
}

TEST_F(ImportEndToEnd, AWrongGoldenKeepsThePackFromServing) {
  std::string golden = Contents(kFixtureGolden);
  golden[golden.size() - 1] ^= 1;  // the sign or exponent of the last logit
  const std::string path = folder_.Write("golden.safetensors", golden);
  ASSERT_EQ(ImportFixture({"--golden", path}).code, 0);
  StartDaemon();
  const Ended loaded = Mk({"load", "tri"});
  EXPECT_EQ(loaded.code, 4) << loaded.err;
  EXPECT_NE(loaded.err.find("rel_l2"), std::string::npos) << loaded.err;
}

TEST_F(ImportEndToEnd, AVersionIsReplacedUnderADaemon) {
  ASSERT_EQ(ImportFixture({}).code, 0);
  StartDaemon();
  ASSERT_EQ(Mk({"load", "tri"}).code, 0);
  const std::vector<double> before = Logits(kPhoto);
  ASSERT_EQ(ImportFixture({"--version", "1", "--force", "--mean", "0,0,0"}).code, 0);
  EXPECT_EQ(Logits(kPhoto), before) << "what is loaded does not change by what stands on disk";
  ASSERT_EQ(Mk({"load", "tri"}).code, 0);
  EXPECT_NE(Logits(kPhoto), before);
}

// A zip archive with one stored entry, as torch.save lays it out.
std::string Zip(const std::string& name, const std::string& data) {
  const auto number = [](uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value & 0xff);
    return text;
  };
  const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size()));
  // From the version needed to the length of the extra field: the same in both headers.
  const std::string common = number(20, 2) + number(0, 8) + number(crc, 4) +
                             number(data.size(), 4) + number(data.size(), 4) +
                             number(name.size(), 2) + number(0, 2);
  const std::string local = "PK\3\4" + common + name + data;
  const std::string central = "PK\1\2" + number(20, 2) + common + number(0, 14) + name;
  return local + central + "PK\5\6" + number(0, 4) + number(1, 2) + number(1, 2) +
         number(central.size(), 4) + number(local.size(), 4) + number(0, 2);
}

TEST_F(ImportEndToEnd, AProgramInACheckpointIsNamedAndNotRun) {
  const std::string pwned = folder_.path() + "/pwned";
  const std::string command = "touch " + pwned;
  const std::string pickle =
      "\x80\x02"
      "cposix\nsystem\nX" +
      std::string(1, static_cast<char>(command.size())) + std::string(3, '\0') + command + "\x85R.";
  for (const char* name : {"hostile.pth", "hostile.safetensors"}) {
    const std::string path = folder_.Write(name, Zip("archive/data.pkl", pickle));
    const Ended ended = Mk({"import", "vmamba", path, "--repository", Packs()});
    EXPECT_EQ(ended.code, 4);
    EXPECT_NE(ended.err.find("asks for 'posix.system'"), std::string::npos) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(pwned));
  }
  EXPECT_TRUE(folder_.List("packs").empty());
}

TEST_F(ImportEndToEnd, TheLibraryIsFoundBesideTheProgram) {
  ASSERT_EQ(ImportFixture({}).code, 0);
  // As the quick start installs: bin/mk and packs/.
  std::filesystem::create_directory(folder_.path() + "/bin");
  std::filesystem::create_directory(folder_.path() + "/elsewhere");
  const std::string program = folder_.path() + "/bin/mk";
  std::filesystem::copy_file("server/cli/mk", program);
  const std::string out = folder_.path() + "/out", err = folder_.path() + "/err";
  const pid_t pid =
      Spawn({program, "import", "vmamba", kFixture, "--repository", folder_.path() + "/elsewhere",
             "--resize", "36", "--crop", "32", "--json"},
            out, err);
  int status = 0;
  waitpid(pid, &status, 0);
  ASSERT_EQ(status, 0) << Contents(err);
  const std::string library = json::parse(Contents(out))["library"];
  EXPECT_TRUE(std::filesystem::equivalent(library, Packs() + "/tri/1/pack.so")) << library;
  EXPECT_EQ(json::parse(Contents(out))["pack"], "vmamba");
}

TEST_F(ImportEndToEnd, ExitCodesAndJson) {
  const Ended good = ImportFixture({"--json"});
  ASSERT_EQ(good.code, 0) << good.err;
  const json said = json::parse(good.out);
  EXPECT_EQ(said["pack"], "tri");
  EXPECT_EQ(said["version"], 1);
  EXPECT_EQ(said["source"], "torch");
  EXPECT_EQ(said["parameters"]["config.num_classes"], "5");
  EXPECT_EQ(said["notes"].size(), 1u);
  EXPECT_EQ(ImportFixture({"--version", "1"}).code, 4);
  EXPECT_EQ(ImportFixture({"--version", "0"}).code, 2);
  EXPECT_EQ(ImportFixture({"--std", "1,0,1"}).code, 4);
  EXPECT_EQ(ImportFixture({"--max-pixels", "many"}).code, 2);
  EXPECT_EQ(Mk({"import", "vmamba"}).code, 2);
  EXPECT_EQ(Mk({"import", "resnet", "x"}).code, 2);
  const Ended absent = Mk({"import", "vmamba", "absent.pth", "--repository", Packs()});
  EXPECT_EQ(absent.code, 4);
  EXPECT_NE(absent.err.find("'absent.pth': No such file"), std::string::npos) << absent.err;
  const Ended help = Mk({"import", "vmamba", "--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* part : {"--repository", "--labels", "--licence", "Examples", "--golden"}) {
    EXPECT_NE(help.out.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace mk
