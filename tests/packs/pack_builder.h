// Makes pack repositories for tests, in a temporary folder.
#ifndef MERGEKERNEL_TESTS_PACKS_PACK_BUILDER_H_
#define MERGEKERNEL_TESTS_PACKS_PACK_BUILDER_H_

#include <cstdint>
#include <map>
#include <string>

#include "proto/mergekernel/v1/pack.pb.h"

namespace mk {

// A file of the build's outputs or sources, by its path from the top of the tree.
std::string ReadRunfile(const std::string& path);
std::string ReadFileOrEmpty(const std::string& path);
void WriteFile(const std::string& path, const std::string& bytes);

// What becomes <root>/<name>/<version>/. The manifest's files, digests, name and version are filled
// in by Install.
struct PackSpec {
  mergekernel::v1::Manifest manifest;
  std::string library;                         // bytes of pack.so
  std::map<std::string, std::string> small;    // name -> bytes
  std::map<std::string, std::string> weights;  // name -> bytes
};

// Specs of the packs that tests load most. The fixtures' code name is "fixture".
PackSpec EchoSpec(
    const std::string& tensors = "INPUT0:UINT8:-1");  // "INPUT0:UINT8:-1,16 INPUT1:..."
PackSpec FixtureSpec(const std::string& fixture,
                     int64_t code_version = 1);  // UINT8 [-1] -> VERSION INT64 [1]
PackSpec Sum2Spec();
PackSpec HitsSpec();
PackSpec AffineSpec(const std::string& safetensors);
PackSpec AffineOnDeviceSpec(const std::string& safetensors);  // for cpu and cuda

class TestRepository {
 public:
  TestRepository();   // a fresh folder under TEST_TMPDIR
  ~TestRepository();  // removes it

  const std::string& root() const { return root_; }
  std::string Folder(const std::string& name, int64_t version) const;
  // Writes the version's folder, replacing what stood there (by rename, as installers do).
  void Install(const std::string& name, int64_t version, PackSpec spec);

 private:
  std::string root_;
};

}  // namespace mk

#endif  // MERGEKERNEL_TESTS_PACKS_PACK_BUILDER_H_
