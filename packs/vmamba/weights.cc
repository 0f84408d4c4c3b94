#include "packs/vmamba/weights.h"

#include <cmath>
#include <utility>

#include "kernels/conv/conv3x3.h"
#include "kernels/conv/depthwise3x3.h"

namespace mk::vmamba {
namespace {

constexpr int64_t kDirections = 4;
constexpr int64_t kAlignment = 64;

int64_t ElementCount(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

// A row of the table: a tensor and the pointer that will hold it.
struct Entry {
  WeightSpec spec;
  float** destination;
};

// Lists the tensors of a checkpoint under their published names.
class Lister {
 public:
  explicit Lister(std::vector<Entry>& entries) : entries_(entries) {}

  void Tensor(std::string name, std::vector<int64_t> shape, float*& destination) {
    entries_.push_back({{std::move(name), std::move(shape)}, &destination});
  }
  void Norm(const std::string& name, int64_t channels, NormWeights& norm) {
    Tensor(name + ".weight", {channels}, norm.weight);
    Tensor(name + ".bias", {channels}, norm.bias);
  }
  void Conv(const std::string& name, int64_t in, int64_t out, ConvWeights& conv) {
    Tensor(name + ".weight", {out, in, 3, 3}, conv.weight);
    Tensor(name + ".bias", {out}, conv.bias);
  }
  void Linear(const std::string& name, int64_t in, int64_t out, bool bias, LinearWeights& linear) {
    Tensor(name + ".weight", {out, in}, linear.weight);
    if (bias) Tensor(name + ".bias", {out}, linear.bias);
  }

  void Block(const std::string& name, const Description& d, int64_t stage, BlockWeights& block) {
    const int64_t channels = d.Channels(stage);
    const int64_t inner = d.Inner(stage);
    const int64_t rank = d.Rank(stage);
    const int64_t hidden = d.Hidden(stage);
    Norm(name + ".norm", channels, block.norm);
    Linear(name + ".op.in_proj", channels, d.Projected(stage), false, block.in_proj);
    Tensor(name + ".op.conv2d.weight", {inner, 1, 3, 3}, block.depthwise);
    Tensor(name + ".op.x_proj_weight", {kDirections, rank + 2 * d.d_state, inner},
           block.scan.x_proj);
    Tensor(name + ".op.dt_projs_weight", {kDirections, inner, rank}, block.scan.dt_weight);
    Tensor(name + ".op.dt_projs_bias", {kDirections, inner}, block.scan.dt_bias);
    Tensor(name + ".op.A_logs", {kDirections * inner, d.d_state}, block.scan.a);
    Tensor(name + ".op.Ds", {kDirections * inner}, block.scan.d);
    Norm(name + ".op.out_norm", inner, block.out_norm);
    Linear(name + ".op.out_proj", inner, channels, false, block.out_proj);
    Norm(name + ".norm2", channels, block.norm2);
    Linear(name + ".mlp.fc1", channels, hidden, true, block.fc1);
    Linear(name + ".mlp.fc2", hidden, channels, true, block.fc2);
  }

 private:
  std::vector<Entry>& entries_;
};

// The whole table. The numbers in the names are positions in the reference's modules; those between
// are layers without weights.
std::vector<Entry> ListTensors(const Description& d, Weights& weights) {
  std::vector<Entry> entries;
  Lister lister(entries);
  const int64_t half = d.embed_dim / 2;
  lister.Conv("patch_embed.0", d.in_chans, half, weights.stem0);
  lister.Norm("patch_embed.2", half, weights.stem0_norm);
  lister.Conv("patch_embed.5", half, d.embed_dim, weights.stem1);
  lister.Norm("patch_embed.7", d.embed_dim, weights.stem1_norm);
  weights.stages.resize(d.depths.size());
  for (int64_t s = 0; s < d.stages(); ++s) {
    const std::string layer = "layers." + std::to_string(s);
    const auto index = static_cast<size_t>(s);
    StageWeights& stage = weights.stages[index];
    stage.blocks.resize(static_cast<size_t>(d.depths[index]));
    for (size_t j = 0; j < stage.blocks.size(); ++j) {
      lister.Block(layer + ".blocks." + std::to_string(j), d, s, stage.blocks[j]);
    }
    if (s + 1 < d.stages()) {
      lister.Conv(layer + ".downsample.1", d.Channels(s), d.Channels(s + 1), stage.downsample);
      lister.Norm(layer + ".downsample.3", d.Channels(s + 1), stage.downsample_norm);
    }
  }
  const int64_t last = d.Channels(d.stages() - 1);
  lister.Norm("classifier.norm", last, weights.head_norm);
  lister.Linear("classifier.head", last, d.num_classes, true, weights.head);
  return entries;
}

int64_t Padded(const Entry& entry) {
  constexpr int64_t kFloats = kAlignment / static_cast<int64_t>(sizeof(float));
  return (ElementCount(entry.spec.shape) + kFloats - 1) / kFloats * kFloats;
}

int64_t TotalFloats(const std::vector<Entry>& entries) {
  int64_t total = 0;
  for (const Entry& entry : entries) total += Padded(entry);
  return total;
}

// Gives every entry its place, one behind the other.
void Place(const std::vector<Entry>& entries, float* memory) {
  for (const Entry& entry : entries) {
    *entry.destination = memory;
    memory += Padded(entry);
  }
}

// `flags` of each mk_weight.
Status LoadFile(const Host& host, const std::vector<Entry>& entries, const char* file,
                mk_u32 flags) {
  std::vector<mk_weight> table;
  table.reserve(entries.size());
  for (const Entry& entry : entries) {
    table.push_back({entry.spec.name.c_str(), MK_DTYPE_FP32,
                     static_cast<mk_u32>(entry.spec.shape.size()), entry.spec.shape.data(),
                     *entry.destination, flags, 0});
  }
  return host.LoadWeights(file, table);
}

// Replaces the `count` elements at `data` by what relay(copy of them, data) writes.
template <typename Relay>
void InPlace(float* data, int64_t count, const Relay& relay) {
  const std::vector<float> copy(data, data + count);
  relay(copy.data(), data);
}

void RelayConv(ConvWeights& conv, int64_t in, int64_t out) {
  InPlace(conv.weight, 9 * in * out,
          [&](const float* stored, float* weight) { RelayConv3x3Weight(stored, out, in, weight); });
}

// [4, rows, columns] to [4, columns, rows], value by value through `map`.
template <typename Map>
void TransposeDirections(float* data, int64_t rows, int64_t columns, const Map& map) {
  InPlace(data, kDirections * rows * columns, [&](const float* stored, float* out) {
    for (int64_t k = 0; k < kDirections; ++k, stored += rows * columns, out += rows * columns) {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) out[c * rows + r] = map(stored[r * columns + c]);
      }
    }
  });
}

void FoldBlock(const Description& d, int64_t stage, BlockWeights& block) {
  const int64_t inner = d.Inner(stage);
  if (d.gated) block.gate_proj.weight = block.in_proj.weight + inner * d.Channels(stage);
  InPlace(block.depthwise, 9 * inner, [&](const float* stored, float* weight) {
    RelayDepthwise3x3Weight(stored, inner, weight);
  });
  FoldScan(d, stage, block.scan);
}

void Fold(const Description& d, Weights& weights) {
  RelayConv(weights.stem0, d.in_chans, d.embed_dim / 2);
  RelayConv(weights.stem1, d.embed_dim / 2, d.embed_dim);
  for (int64_t s = 0; s < d.stages(); ++s) {
    StageWeights& stage = weights.stages[static_cast<size_t>(s)];
    for (BlockWeights& block : stage.blocks) FoldBlock(d, s, block);
    if (s + 1 < d.stages()) RelayConv(stage.downsample, d.Channels(s), d.Channels(s + 1));
  }
}

}  // namespace

void FoldScan(const Description& description, int64_t stage, ScanWeights& scan) {
  const int64_t inner = description.Inner(stage);
  TransposeDirections(scan.dt_weight, inner, description.Rank(stage), [](float v) { return v; });
  TransposeDirections(scan.a, inner, description.d_state, [](float a_log) {
    return static_cast<float>(-std::exp(static_cast<double>(a_log)));
  });
  for (int64_t c = 0; c < inner; ++c) {
    double sum = 0;
    for (int64_t k = 0; k < kDirections; ++k) sum += scan.d[k * inner + c];
    scan.d[c] = static_cast<float>(sum);
  }
}

Result<Weights> LoadStoredWeights(const Host& host, const Description& description,
                                  const char* file, std::vector<float>& memory) {
  Weights weights;
  const std::vector<Entry> entries = ListTensors(description, weights);
  memory.assign(static_cast<size_t>(TotalFloats(entries)), 0.0f);
  Place(entries, memory.data());
  MK_TRY(LoadFile(host, entries, file, MK_WEIGHT_HOST));
  return weights;
}

std::vector<WeightSpec> WeightTable(const Description& description) {
  Weights unused;
  std::vector<WeightSpec> specs;
  for (Entry& entry : ListTensors(description, unused)) specs.push_back(std::move(entry.spec));
  return specs;
}

Result<Weights> LoadWeights(const Host& host, const Description& description, const char* file) {
  Weights weights;
  const std::vector<Entry> entries = ListTensors(description, weights);
  const auto bytes = static_cast<uint64_t>(TotalFloats(entries)) * sizeof(float);
  MK_TRY_ASSIGN(void* const memory, host.AllocateWeights(bytes));
  Place(entries, static_cast<float*>(memory));
  MK_TRY(LoadFile(host, entries, file, 0));
  Fold(description, weights);
  return weights;
}

}  // namespace mk::vmamba
