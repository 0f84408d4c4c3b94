// Checkpoints and repositories for the tests of the import.
#ifndef MERGEKERNEL_SERVER_IMPORT_TESTING_CHECKPOINTS_H_
#define MERGEKERNEL_SERVER_IMPORT_TESTING_CHECKPOINTS_H_

#include <string>
#include <vector>

#include "core/weights/testing/write_safetensors.h"
#include "server/import/vmamba.h"

namespace mk {

inline constexpr char kFixture[] = "packs/vmamba/import/fixture/checkpoint.pth";
inline constexpr char kFixtureGolden[] = "packs/vmamba/import/fixture/golden.safetensors";
inline constexpr char kVMambaLibrary[] = "packs/vmamba/vmamba.so";

// A folder of its own below TEST_TMPDIR.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();  // removes it
  const std::string& path() const { return path_; }
  std::string Write(const std::string& name, const std::string& bytes) const;  // its path
  // Every file and folder below `path()`/`under`, as relative paths, ascending.
  std::vector<std::string> List(const std::string& under) const;

 private:
  std::string path_;
};

// The fixture's 50-odd tensors, read through the converter.
std::vector<TestTensor> FixtureTensors();

// Options that import `checkpoint` into `repository` as `tri`, with the fixture's preprocessing.
VMambaImport ImportOptions(const std::string& checkpoint, const std::string& repository);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_IMPORT_TESTING_CHECKPOINTS_H_
