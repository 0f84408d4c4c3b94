#include "server/import/testing/checkpoints.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

namespace mk {

TestFolder::TestFolder() {
  std::string path = testing::TempDir() + "/importXXXXXX";
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  path_ = path;
  std::filesystem::create_directory(path_ + "/packs");
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TestFolder::Write(const std::string& name, const std::string& bytes) const {
  const std::string path = path_ + "/" + name;
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  return path;
}

std::vector<std::string> TestFolder::List(const std::string& under) const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_ + "/" + under)) {
    names.push_back(std::filesystem::relative(entry.path(), path_ + "/" + under).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<TestTensor> FixtureTensors() {
  Fd fd(open(kFixture, O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(fd.ok()) << kFixture;
  const uint64_t size = std::filesystem::file_size(kFixture);
  auto stream = OpenTorchCheckpoint(std::move(fd), size, TorchOptions());
  EXPECT_TRUE(stream.ok()) << stream.status();
  std::vector<TestTensor> tensors;
  if (!stream.ok()) return tensors;
  for (const StoredTensor& stored : (*stream)->header().tensors) {
    TestTensor tensor = {stored.name, std::string(StoredTypeName(stored.type)), stored.shape,
                         std::string(stored.end - stored.begin, '\0')};
    EXPECT_TRUE((*stream)->Read(tensor.data.data(), tensor.data.size()).ok());
    tensors.push_back(std::move(tensor));
  }
  EXPECT_TRUE((*stream)->Finish().ok());
  return tensors;
}

VMambaImport ImportOptions(const std::string& checkpoint, const std::string& repository) {
  VMambaImport options;
  options.checkpoint = checkpoint;
  options.repository = repository;
  options.name = "tri";
  options.pack = kVMambaLibrary;
  options.resize = 36;
  options.crop = 32;
  return options;
}

}  // namespace mk
