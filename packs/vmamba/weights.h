// The checkpoint of a VMamba: published names and shapes, and where each tensor ends up.
//
// Folds and layouts, all done in place once the host has loaded and checked the file. Each needs
// host heap for a copy of the one tensor at hand, during create only:
//
//   A = -exp(A_logs)        the scan multiplies by A in every step; exp in double, rounded once
//   d = sum_k Ds[k]         the four skips D_k x_t fall on the same token of the merged map, so
//                           sum_k D_k x_t = (sum_k D_k) x_t
//   x_proj over directions  [4, R + 2N, di] is [4 (R + 2N), di] as it stands: one GEMM over the
//                           tokens in the map's order serves all four directions, for a projection
//                           of single tokens commutes with their permutation
//   conv [co, ci, 3, 3]     to [3, 3, ci, co], depthwise [c, 1, 3, 3] to [3, 3, c]: channel-last
//   dt_projs [4, di, R]     to [4, R, di], A_logs [4 di, N] to [4, N, di]: the scan's inner loops
//                           run over channels
#ifndef MERGEKERNEL_PACKS_VMAMBA_WEIGHTS_H_
#define MERGEKERNEL_PACKS_VMAMBA_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "packs/vmamba/description.h"

namespace mk::vmamba {

// All pointers: fp32, in the host's weights region, 64-byte aligned, alive as long as the model.
struct NormWeights {
  float* weight = nullptr;  // [channels]
  float* bias = nullptr;    // [channels]
};

struct ConvWeights {
  float* weight = nullptr;  // [3, 3, ci, co]
  float* bias = nullptr;    // [co]
};

struct LinearWeights {
  float* weight = nullptr;  // [out, in]
  float* bias = nullptr;    // [out], or null
};

struct ScanWeights {
  float* x_proj = nullptr;     // [4 (R + 2N), di]
  float* dt_weight = nullptr;  // [4, R, di]
  float* dt_bias = nullptr;    // [4, di]
  float* a = nullptr;          // [4, N, di]
  float* d = nullptr;          // [di]; the tensor's other 3 di elements are unused
};

struct BlockWeights {
  NormWeights norm;            // d
  LinearWeights in_proj;       // d -> di
  LinearWeights gate_proj;     // d -> di: the second half of in_proj's tensor; null without a gate
  float* depthwise = nullptr;  // [3, 3, di]
  ScanWeights scan;
  NormWeights out_norm;    // di
  LinearWeights out_proj;  // di -> d
  NormWeights norm2;       // d
  LinearWeights fc1;       // d -> hidden
  LinearWeights fc2;       // hidden -> d
};

struct StageWeights {
  std::vector<BlockWeights> blocks;
  ConvWeights downsample;  // d -> 2d, stride 2; null in the last stage
  NormWeights downsample_norm;
};

struct Weights {
  ConvWeights stem0;  // in_chans -> embed_dim / 2, stride 2
  NormWeights stem0_norm;
  ConvWeights stem1;  // embed_dim / 2 -> embed_dim, stride 2
  NormWeights stem1_norm;
  std::vector<StageWeights> stages;
  NormWeights head_norm;
  LinearWeights head;  // last channels -> num_classes
};

// One tensor of the checkpoint.
struct WeightSpec {
  std::string name;
  std::vector<int64_t> shape;
};

// Every tensor that the checkpoint of `description` must have, and no other.
std::vector<WeightSpec> WeightTable(const Description& description);

// The checkpoint as it is stored, unfolded, in `memory` on the host: every pointer of the result
// points there, and LinearWeights' gate_proj is null. For what makes another layout of it. The host
// refuses, by name, tensors that are missing, surplus, misshapen or not finite.
Result<Weights> LoadStoredWeights(const Host& host, const Description& description,
                                  const char* file, std::vector<float>& memory);

// What the scan takes, in place: A_logs to A, D to its sum over directions, dt_projs transposed.
void FoldScan(const Description& description, int64_t stage, ScanWeights& scan);

// Takes one allocation from the host, loads `file` into it and folds. The host refuses, by name,
// tensors that are missing, surplus, misshapen or not finite.
Result<Weights> LoadWeights(const Host& host, const Description& description, const char* file);

}  // namespace mk::vmamba

#endif  // MERGEKERNEL_PACKS_VMAMBA_WEIGHTS_H_
