#include "packs/vmamba/testing/fashion_mnist.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace mk::vmamba {
namespace {

constexpr char kFolder[] = "/usr/share/datasets/fashion-mnist/";

// The content of one IDX file behind its header.
std::vector<uint8_t> ReadIdx(const std::string& name, size_t header_bytes, size_t content_bytes) {
  const std::string path = kFolder + name;
  gzFile file = gzopen(path.c_str(), "rb");
  std::vector<uint8_t> bytes(header_bytes + content_bytes);
  int read = -1;
  if (file != nullptr) {
    read = gzread(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
  }
  if (read != static_cast<int>(bytes.size())) {
    ADD_FAILURE() << "cannot read " << path << ": install the package dataset-fashion-mnist";
    return {};
  }
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header_bytes));
  return bytes;
}

}  // namespace

FashionMnist ReadFashionMnist() {
  return {ReadIdx("t10k-images-idx3-ubyte.gz", 16, kTestImages * kTestImageSide * kTestImageSide),
          ReadIdx("t10k-labels-idx1-ubyte.gz", 8, kTestImages)};
}

}  // namespace mk::vmamba
