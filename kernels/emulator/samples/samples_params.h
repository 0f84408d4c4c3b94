// Parameters of the sample kernels; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_EMULATOR_SAMPLES_SAMPLES_PARAMS_H_
#define MERGEKERNEL_KERNELS_EMULATOR_SAMPLES_SAMPLES_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"

namespace mk {
namespace samples {

struct LayerNormParams {
  const float* x;       // [rows, channels] fp32, device, dense
  const float* weight;  // [channels] fp32, device
  const float* bias;    // [channels] fp32, device
  float* y;             // [rows, channels] fp32, device, dense
  mk_i32 rows;          // >= 1
  mk_i32 channels;      // 1 to 1024
  float epsilon;
};

struct GemmParams {
  const device::half* a;  // [m, k] fp16, device, dense, 16-byte aligned
  const device::half* b;  // [k, n] fp16, device, dense, 16-byte aligned
  device::half* c;        // [m, n] fp16, device, dense, 4-byte aligned
  mk_i32 m, n, k;         // >= 1; n and k multiples of 8
};

struct ReduceParams {
  const float* x;    // [count] fp32, device
  float* partials;   // [blocks of the launch] fp32, device
  mk_u32* finished;  // [1], device, 0 before the launch; 0 again behind it
  float* sum;        // [1] fp32, device
  mk_i32 count;      // >= 0
};

struct BrokenParams {
  const float* x;  // [256] fp32, device
  float* y;        // [256] fp32, device
  mk_i32 n;
};

}  // namespace samples
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_EMULATOR_SAMPLES_SAMPLES_PARAMS_H_
