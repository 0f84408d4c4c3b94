#include "packs/vmamba/device_weights.h"

#include "kernels/conv/conv3x3_f16.h"
#include "kernels/conv/depthwise3x3.h"
#include "kernels/device/convert.h"
#include "kernels/linear/norm_fold.h"
#include "kernels/scan/cross_scan_f16.h"
#include "packs/vmamba/weights.h"

namespace mk::vmamba {
namespace {

using device::half;

constexpr int64_t kDirections = 4;

// Makes each tensor's device layout on the host, one at a time, and sends it there.
class Uploader {
 public:
  Uploader(const Host& host, const Description& description, const Weights& stored)
      : host_(host), d_(description), w_(stored) {}

  Result<DeviceWeights> Run() {
    DeviceWeights out;
    const int64_t half = d_.embed_dim / 2;
    MK_TRY(Conv(w_.stem0, d_.in_chans, half, out.stem0));
    MK_TRY(Norm(w_.stem0_norm, half, out.stem0_norm));
    MK_TRY(Conv(w_.stem1, half, d_.embed_dim, out.stem1));
    MK_TRY(Norm(w_.stem1_norm, d_.embed_dim, out.stem1_norm));
    for (int64_t s = 0; s < d_.stages(); ++s) {
      const StageWeights& from = w_.stages[static_cast<size_t>(s)];
      DeviceStage& to = out.stages.emplace_back();
      for (const BlockWeights& block : from.blocks) {
        MK_TRY(Block(s, block, to.blocks.emplace_back()));
      }
      if (s + 1 == d_.stages()) break;
      MK_TRY(Conv(from.downsample, d_.Channels(s), d_.Channels(s + 1), to.downsample));
      MK_TRY(Norm(from.downsample_norm, d_.Channels(s + 1), to.downsample_norm));
    }
    const int64_t last = d_.Channels(d_.stages() - 1);
    MK_TRY(Norm(w_.head_norm, last, out.head_norm));
    MK_TRY(Matrix(w_.head, last, d_.num_classes, out.head));
    return out;
  }

 private:
  template <typename T>
  Status Send(const T* values, int64_t count, const T*& device) {
    const uint64_t bytes = static_cast<uint64_t>(count) * sizeof(T);
    MK_TRY_ASSIGN(void* const memory, host_.AllocateWeights(bytes));
    device = static_cast<const T*>(memory);
    return host_.UploadWeights(memory, values, bytes);
  }
  template <typename T>
  Status Send(const std::vector<T>& values, const T*& device) {
    return Send(values.data(), static_cast<int64_t>(values.size()), device);
  }

  Status Norm(const NormWeights& norm, int64_t channels, DeviceNorm& out) {
    MK_TRY(Send<float>(norm.weight, channels, out.weight));
    return Send<float>(norm.bias, channels, out.bias);
  }

  Status Matrix(const LinearWeights& linear, int64_t in, int64_t out_channels, DeviceMatrix& out) {
    std::vector<half> weight(static_cast<size_t>(in * out_channels));
    for (size_t i = 0; i < weight.size(); ++i) {
      weight[i].bits = device::FloatToHalfBits(linear.weight[i]);
    }
    MK_TRY(Send(weight, out.weight));
    return linear.bias == nullptr ? Ok() : Send<float>(linear.bias, out_channels, out.bias);
  }

  // The linear layer of LN(x).
  Status Normed(const NormWeights& norm, const float* weight, const float* bias, int64_t in,
                int64_t out_channels, DeviceMatrix& out) {
    std::vector<half> folded(static_cast<size_t>(in * out_channels));
    std::vector<float> sums(static_cast<size_t>(out_channels)), biases(sums.size());
    FoldNorm({weight, bias, norm.weight, norm.bias, out_channels, in},
             {folded.data(), sums.data(), biases.data()});
    MK_TRY(Send(folded, out.weight));
    MK_TRY(Send(sums, out.norm_sums));
    return Send(biases, out.bias);
  }

  Status Conv(const ConvWeights& conv, int64_t in, int64_t out_channels, DeviceMatrix& out) {
    std::vector<half> weight(static_cast<size_t>(9 * in * out_channels));
    RelayConv3x3F16Weight(conv.weight, out_channels, in, weight.data());
    MK_TRY(Send(weight, out.weight));
    return Send<float>(conv.bias, out_channels, out.bias);
  }

  Status Scan(int64_t stage, ScanWeights scan, DeviceScan& out) {
    const int64_t inner = d_.Inner(stage);
    const int64_t rank = d_.Rank(stage);
    MK_TRY(
        Matrix({scan.x_proj, nullptr}, inner, kDirections * (rank + 2 * d_.d_state), out.x_proj));
    FoldScan(d_, stage, scan);
    std::vector<half> dt(static_cast<size_t>(PackedDtWeightElements(inner, rank)));
    PackDtWeight(scan.dt_weight, inner, rank, dt.data());
    MK_TRY(Send(dt, out.dt_weight));
    MK_TRY(Send<float>(scan.dt_bias, kDirections * inner, out.dt_bias));
    MK_TRY(Send<float>(scan.a, kDirections * d_.d_state * inner, out.a));
    return Send<float>(scan.d, inner, out.d);
  }

  Status Block(int64_t stage, const BlockWeights& block, DeviceBlock& out) {
    const int64_t channels = d_.Channels(stage);
    const int64_t inner = d_.Inner(stage);
    const int64_t hidden = d_.Hidden(stage);
    MK_TRY(Normed(block.norm, block.in_proj.weight, nullptr, channels, inner, out.in_proj));
    if (d_.gated) {
      MK_TRY(Normed(block.norm, block.in_proj.weight + inner * channels, nullptr, channels, inner,
                    out.gate_proj));
    }
    std::vector<float> depthwise(static_cast<size_t>(9 * inner));
    RelayDepthwise3x3Weight(block.depthwise, inner, depthwise.data());
    MK_TRY(Send(depthwise, out.depthwise));
    MK_TRY(Scan(stage, block.scan, out.scan));
    MK_TRY(Norm(block.out_norm, inner, out.out_norm));
    MK_TRY(Matrix(block.out_proj, inner, channels, out.out_proj));
    MK_TRY(Normed(block.norm2, block.fc1.weight, block.fc1.bias, channels, hidden, out.fc1));
    return Matrix(block.fc2, hidden, channels, out.fc2);
  }

  const Host& host_;
  const Description& d_;
  const Weights& w_;
};

}  // namespace

Result<DeviceWeights> LoadDeviceWeights(const Host& host, const Description& description,
                                        const char* file) {
  std::vector<float> memory;
  MK_TRY_ASSIGN(const Weights stored, LoadStoredWeights(host, description, file, memory));
  return Uploader(host, description, stored).Run();
}

}  // namespace mk::vmamba
