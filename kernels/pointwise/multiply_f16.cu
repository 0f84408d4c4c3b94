// A product of fp16 tensors: eight elements a thread, 16 bytes of each operand.
//
// Grid: ceil(ceil(count / 8) / 256), "any" ceil(count / 256). Block: 256 threads. The last thread
// takes what fills no 16 bytes. Moves 6 count bytes.
#include "kernels/device/device.h"
#include "kernels/device/memory.h"
#include "kernels/device/ptx.h"
#include "kernels/pointwise/multiply_f16_params.h"

namespace mk {
namespace {

using device::half;

MK_DEVICE void MultiplyOne(const MultiplyF16Params& p, mk_i64 i) {
  using namespace device;
  Store(p.y + i, ToHalf(ToFloat(Load(p.a + i)) * ToFloat(Load(p.b + i))));
}

}  // namespace
}  // namespace mk

extern "C" __global__ void __launch_bounds__(256)
    mk_multiply_f16_vectors(const mk::MultiplyF16Params p) {
  using namespace mk::device;
  const mk_i64 i = (static_cast<mk_i64>(blockIdx.x) * 256 + static_cast<mk_i64>(threadIdx.x)) * 8;
  if (i + 8 <= p.count) {
    const Words4 a = Load(As<Words4>(p.a + i));
    const Words4 b = Load(As<Words4>(p.b + i));
    Words4 y;
    MK_UNROLL
    for (int j = 0; j < 4; ++j) y.word[j] = MulHalf2(a.word[j], b.word[j]);
    Store(As<Words4>(p.y + i), y);
  } else {
    for (mk_i64 j = i; j < p.count; ++j) mk::MultiplyOne(p, j);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    mk_multiply_f16_any(const mk::MultiplyF16Params p) {
  const mk_i64 i = static_cast<mk_i64>(blockIdx.x) * 256 + static_cast<mk_i64>(threadIdx.x);
  if (i < p.count) mk::MultiplyOne(p, i);
}
