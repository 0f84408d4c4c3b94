// The test images of Fashion-MNIST, as Debian's package dataset-fashion-mnist installs them.
#ifndef MERGEKERNEL_PACKS_VMAMBA_TESTING_FASHION_MNIST_H_
#define MERGEKERNEL_PACKS_VMAMBA_TESTING_FASHION_MNIST_H_

#include <cstdint>
#include <vector>

namespace mk::vmamba {

inline constexpr int64_t kTestImages = 10000;
inline constexpr int64_t kTestImageSide = 28;

struct FashionMnist {
  std::vector<uint8_t> images;  // [10000, 28, 28]; empty where they cannot be read
  std::vector<uint8_t> labels;  // [10000]
  const uint8_t* image(int64_t i) const {
    return images.data() + i * kTestImageSide * kTestImageSide;
  }
};

// Fails the test, naming the package, where a file cannot be read.
FashionMnist ReadFashionMnist();

}  // namespace mk::vmamba

#endif  // MERGEKERNEL_PACKS_VMAMBA_TESTING_FASHION_MNIST_H_
