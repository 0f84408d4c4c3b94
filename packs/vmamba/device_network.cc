// Figure 3 of the paper again (arXiv 2401.10166), by launches. A block is
//
//   u = in_proj(LN(x))                      one product, the norm folded in; z = SiLU(gate) another
//   v = SiLU(dwconv3x3(u))                  one launch
//   f = x_proj(v)                           one product for all directions
//   y = LN(cross_scan(v, f)) z              scan, merge, norm and gate in one op
//   x += out_proj(y)                        one product; residual, row statistics in its epilogue
//
//   x += fc2(GELU(fc1(LN(x))))              one launch, or two products as above
//
// so that no launch is only a norm, but for the statistics of a stage's first block.
#include "packs/vmamba/device_network.h"

#include "kernels/op.h"

namespace mk::vmamba {
namespace {

using device::half;

constexpr float kEpsilon = 1e-5f;

int64_t Halved(int64_t side) { return CeilDiv(side, 2); }

Result<DeviceMap> NewMap(Context& context, int64_t height, int64_t width, int64_t channels) {
  MK_TRY_ASSIGN(half* const data, context.Scratch<half>(height * width * channels));
  return DeviceMap{data, height, width, channels};
}

// Statistics of a map's rows, in the groups that their maker left them in.
struct Stats {
  RowStats* rows = nullptr;
  mk_i32 groups = 0;
};

// What one product does beside multiplying.
struct Extras {
  const Stats* norm = nullptr;  // of x: the LayerNorm that is folded into the matrix
  bool add = false;             // to what y holds
  Stats* stats = nullptr;       // of y, for the next
  Activation activation = Activation::kNone;
};

class Pass {
 public:
  Pass(Context& context, const Description& description, const DeviceWeights& weights,
       const DeviceKernels& kernels)
      : context_(context), d_(description), w_(weights), k_(kernels) {}

  Status Run(const DeviceMap& input, float* logits) {
    MK_TRY_ASSIGN(DeviceMap x, Stem(input));
    for (int64_t stage = 0; stage < d_.stages(); ++stage) MK_TRY(Stage(stage, x));
    return Head(x, logits);
  }

 private:
  Result<DeviceMap> Stem(const DeviceMap& input) {
    const int64_t height = Halved(input.height);
    const int64_t width = Halved(input.width);
    MK_TRY_ASSIGN(const DeviceMap out,
                  NewMap(context_, Halved(height), Halved(width), d_.embed_dim));
    const ScratchScope scope(context_);
    MK_TRY_ASSIGN(const DeviceMap half_map, NewMap(context_, height, width, d_.embed_dim / 2));
    MK_TRY(Convolve(w_.stem0, input, half_map));
    MK_TRY(Norm(w_.stem0_norm, half_map, Activation::kGelu));
    MK_TRY(Convolve(w_.stem1, half_map, out));
    MK_TRY(Norm(w_.stem1_norm, out, Activation::kNone));
    return out;
  }

  Status Stage(int64_t index, DeviceMap& x) {
    const DeviceStage& stage = w_.stages[static_cast<size_t>(index)];
    {
      const ScratchScope scope(context_);
      MK_TRY_ASSIGN(Stats stats, NewStats(x));
      stats.groups = 1;
      MK_TRY(RowStatsF16(context_, k_.row_stats, {x.data, stats.rows, x.tokens(), x.channels}));
      for (const DeviceBlock& block : stage.blocks) {
        MK_TRY(Ss2d(index, block, x, stats));
        MK_TRY(Mlp(index, block, x, stats));
        MK_TRY(GoOn());
      }
    }
    if (index + 1 == d_.stages()) return Ok();
    MK_TRY_ASSIGN(const DeviceMap out,
                  NewMap(context_, Halved(x.height), Halved(x.width), d_.Channels(index + 1)));
    MK_TRY(Convolve(stage.downsample, x, out));
    MK_TRY(Norm(stage.downsample_norm, out, Activation::kNone));
    x = out;
    return GoOn();
  }

  // Room for statistics in as many groups as a product leaves.
  Result<Stats> NewStats(const DeviceMap& x) {
    Stats stats;
    stats.groups = static_cast<mk_i32>(CeilDiv(x.channels, kStatsGroup));
    MK_TRY_ASSIGN(stats.rows, context_.Scratch<RowStats>(x.tokens() * stats.groups));
    return stats;
  }

  Status Ss2d(int64_t stage, const DeviceBlock& block, const DeviceMap& x, Stats& stats) {
    const int64_t inner = d_.Inner(stage);
    const ScratchScope scope(context_);
    MK_TRY_ASSIGN(const DeviceMap u, NewMap(context_, x.height, x.width, inner));
    MK_TRY_ASSIGN(const DeviceMap v, NewMap(context_, x.height, x.width, inner));
    Extras normed;
    normed.norm = &stats;
    MK_TRY(Project(block.in_proj, x, u, normed));
    DeviceMap z;
    if (d_.gated) {
      MK_TRY_ASSIGN(z, NewMap(context_, x.height, x.width, inner));
      normed.activation = Activation::kSilu;
      MK_TRY(Project(block.gate_proj, x, z, normed));
    }
    MK_TRY(DepthwiseF16(
        context_, k_.depthwise,
        {u.data, block.depthwise, nullptr, v.data, static_cast<mk_i32>(u.height),
         static_cast<mk_i32>(u.width), static_cast<mk_i32>(inner), 3, Activation::kSilu}));
    const DeviceMap& y = u;  // done with its first use
    MK_TRY(Scan(stage, block, v, z, y));
    Extras back;
    back.add = true;
    back.stats = &stats;
    return Project(block.out_proj, y, x, back);
  }

  Status Scan(int64_t stage, const DeviceBlock& block, const DeviceMap& v, const DeviceMap& z,
              const DeviceMap& y) {
    const int64_t rank = d_.Rank(stage);
    const ScratchScope scope(context_);
    MK_TRY_ASSIGN(const DeviceMap fields,
                  NewMap(context_, v.height, v.width, 4 * (rank + 2 * d_.d_state)));
    MK_TRY(Project(block.scan.x_proj, v, fields, {}));
    CrossScanF16Params params = {};
    params.x = v.data;
    params.projected = fields.data;
    params.dt_weight = block.scan.dt_weight;
    params.dt_bias = block.scan.dt_bias;
    params.a = block.scan.a;
    params.d = block.scan.d;
    params.norm_weight = block.out_norm.weight;
    params.norm_bias = block.out_norm.bias;
    params.gate = z.data;
    params.y = y.data;
    params.height = static_cast<mk_i32>(v.height);
    params.width = static_cast<mk_i32>(v.width);
    params.channels = static_cast<mk_i32>(v.channels);
    params.rank = static_cast<mk_i32>(rank);
    params.state = static_cast<mk_i32>(d_.d_state);
    params.epsilon = kEpsilon;
    return CrossScanF16(context_, k_.cross_scan, params);
  }

  // In one launch where the op can and there are enough rows for it, else by two products, which
  // need no statistics of their own.
  Status Mlp(int64_t stage, const DeviceBlock& block, const DeviceMap& x, Stats& stats) {
    const FeedForwardF16Params fused = {
        block.fc1.weight, block.fc1.norm_sums, block.fc1.bias, block.fc2.weight, block.fc2.bias,
        x.data,           stats.rows,          x.tokens(),     x.channels,       d_.Hidden(stage),
        kEpsilon,         Activation::kGelu};
    MK_TRY(CheckFeedForwardF16(fused));
    const FeedForwardF16Form form = ChooseFeedForwardF16(fused, k_.linear.sms);
    if (form != FeedForwardF16Form::kSeparate) {
      stats.groups = static_cast<mk_i32>(CeilDiv(x.channels, kStatsGroup));
      return FeedForwardF16As(context_, k_.feed_forward, fused, form);
    }
    const ScratchScope scope(context_);
    MK_TRY_ASSIGN(const DeviceMap hidden, NewMap(context_, x.height, x.width, d_.Hidden(stage)));
    Extras in;
    in.norm = &stats;
    in.activation = Activation::kGelu;
    MK_TRY(Project(block.fc1, x, hidden, in));
    Extras back;
    back.add = true;
    back.stats = &stats;
    return Project(block.fc2, hidden, x, back);
  }

  Status Head(const DeviceMap& x, float* logits) {
    const ScratchScope scope(context_);
    MK_TRY_ASSIGN(const DeviceMap features, NewMap(context_, 1, 1, x.channels));
    MK_TRY(GlobalAveragePoolF16(context_, k_.global_average_pool,
                                {x.data, w_.head_norm.weight, w_.head_norm.bias, features.data,
                                 x.tokens(), x.channels, kEpsilon}));
    LinearF16Params params = {features.data, w_.head.weight, 1, d_.num_classes, x.channels, {}};
    params.epilogue.bias = w_.head.bias;
    params.epilogue.y_fp32 = logits;
    return LinearF16(context_, k_.linear, params);
  }

  Status Convolve(const DeviceMatrix& conv, const DeviceMap& x, const DeviceMap& y) {
    Conv3x3F16Params params = {x.data,     conv.weight, x.height, x.width,
                               x.channels, y.channels,  2,        {}};
    params.epilogue.bias = conv.bias;
    params.epilogue.y = y.data;
    return Conv3x3F16(context_, k_.conv3x3, params);
  }

  // In place.
  Status Norm(const DeviceNorm& norm, const DeviceMap& x, Activation activation) {
    return LayerNormF16(context_, k_.layer_norm,
                        {x.data, nullptr, nullptr, norm.weight, norm.bias, x.data, x.tokens(),
                         x.channels, kEpsilon, activation, 0});
  }

  Status Project(const DeviceMatrix& matrix, const DeviceMap& x, const DeviceMap& y,
                 const Extras& extras) {
    LinearF16Params params = {x.data, matrix.weight, x.tokens(), y.channels, x.channels, {}};
    EpilogueF16& e = params.epilogue;
    e.bias = matrix.bias;
    e.y = y.data;
    e.activation = extras.activation;
    if (extras.add) e.residual = y.data;
    if (extras.norm != nullptr) {
      e.norm_stats = extras.norm->rows;
      e.norm_groups = extras.norm->groups;
      e.norm_sums = matrix.norm_sums;
      e.norm_columns = x.channels;
      e.norm_epsilon = kEpsilon;
    }
    if (extras.stats != nullptr) {
      e.y_stats = extras.stats->rows;
      extras.stats->groups = static_cast<mk_i32>(CeilDiv(y.channels, kStatsGroup));
    }
    return LinearF16(context_, k_.linear, params);
  }

  // Between steps: no more launches when nobody waits for them.
  Status GoOn() {
    return context_.cancelled() ? Cancelled("vmamba: cancelled between launches") : Ok();
  }

  Context& context_;
  const Description& d_;
  const DeviceWeights& w_;
  const DeviceKernels& k_;
};

}  // namespace

Status RunDeviceNetwork(Context& context, const Description& description,
                        const DeviceWeights& weights, const DeviceKernels& kernels,
                        const DeviceMap& input, float* logits) {
  const ScratchScope scope(context);
  return Pass(context, description, weights, kernels).Run(input, logits);
}

}  // namespace mk::vmamba
