// The kernels of the fixture packs, for a fake driver in a process that no test can reach into.
#include "core/device/testing/fake_cuda.h"
#include "tests/packs/affine_params.h"

namespace {

void Affine(const mk::FakeLaunch& launch, const void* params) {
  const auto& p = *static_cast<const mk::AffineParams*>(params);
  const auto count = static_cast<size_t>(p.count);
  const auto* x = static_cast<const float*>(launch.memory(p.x, count * sizeof(float)));
  const auto* w = static_cast<const float*>(launch.memory(p.w, 2 * sizeof(float)));
  auto* y = static_cast<float*>(launch.memory(p.y, count * sizeof(float)));
  if (x == nullptr || w == nullptr || y == nullptr) return;
  for (size_t i = 0; i < count; ++i) y[i] = w[0] * x[i] + w[1];
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void fake_cuda_register(
    const mk::FakeCudaControl* control) {
  control->register_kernel("mk_affine", sizeof(mk::AffineParams), 0, 1024, &Affine);
}
