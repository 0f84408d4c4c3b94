// Reads like figure 3 of the paper (Liu et al., "VMamba: Visual State Space Model",
// arXiv 2401.10166), forward types v05 and v05_noz. Activations are channel-last, so that a 1x1
// projection is a GEMM over tokens.
#include "packs/vmamba/network.h"

#include <string>

#include "kernels/conv/conv3x3.h"
#include "kernels/conv/depthwise3x3.h"
#include "kernels/linear/feed_forward.h"
#include "kernels/linear/linear.h"
#include "kernels/norm/layer_norm.h"
#include "kernels/pointwise/multiply.h"
#include "kernels/pool/global_average_pool.h"
#include "kernels/scan/cross_scan.h"

namespace mk::vmamba {
namespace {

constexpr float kEpsilon = 1e-5f;

// Side of what a convolution of stride 2 makes of `side`: rounded up.
int64_t Halved(int64_t side) { return Conv3x3OutputSide(side, 2); }

Result<Map> NewMap(Context& context, int64_t height, int64_t width, int64_t channels) {
  MK_TRY_ASSIGN(float* const data, context.Scratch<float>(height * width * channels));
  return Map{data, height, width, channels};
}

// y = act(LN(x)); y may be x.
Status Norm(Context& context, const NormWeights& norm, const Map& x, const Map& y,
            Activation activation = Activation::kNone) {
  return LayerNorm(context, {x.data, norm.weight, norm.bias, y.data, x.tokens(), x.channels,
                             kEpsilon, activation});
}

// y = act(x W^T + b), or y += x W^T + b.
enum class Into { kOverwrite, kAdd };
Status Project(Context& context, const LinearWeights& linear, const Map& x, const Map& y,
               Activation activation, Into into) {
  return Linear(context, {x.data, linear.weight, linear.bias, into == Into::kAdd ? y.data : nullptr,
                          y.data, x.tokens(), y.channels, x.channels, activation});
}

Status Convolve(Context& context, const ConvWeights& conv, const Map& x, const Map& y) {
  return Conv3x3(context, {x.data, conv.weight, conv.bias, y.data, x.height, x.width, x.channels,
                           y.channels, 2});
}

// Where a pass stands. Its name is spelt only when somebody asks: a run allocates nothing.
struct Step {
  const char* what;  // "stem", "blocks", "downsample", "features", "logits"
  int64_t stage = -1;
  int64_t block = -1;

  std::string Name() const {
    std::string name;
    if (stage >= 0) name = "layers." + std::to_string(stage) + ".";
    name += what;
    if (block >= 0) name += "." + std::to_string(block);
    return name;
  }
};

// One forward pass: what every step needs.
class Pass {
 public:
  Pass(Context& context, const Description& description, const Weights& weights, const Tap* tap)
      : context_(context), d_(description), w_(weights), tap_(tap) {}

  Status Run(const Map& input, float* logits) {
    MK_TRY_ASSIGN(Map x, Stem(input));
    for (int64_t stage = 0; stage < d_.stages(); ++stage) MK_TRY(Stage(stage, x));
    return Head(x, logits);
  }

 private:
  // conv3x3 s2 -> LN -> GELU -> conv3x3 s2 -> LN: a quarter of each side.
  Result<Map> Stem(const Map& input) {
    const int64_t height = Halved(input.height);
    const int64_t width = Halved(input.width);
    MK_TRY_ASSIGN(const Map out, NewMap(context_, Halved(height), Halved(width), d_.embed_dim));
    const ScratchScope scope(context_);
    MK_TRY_ASSIGN(const Map half, NewMap(context_, height, width, d_.embed_dim / 2));
    MK_TRY(Convolve(context_, w_.stem0, input, half));
    MK_TRY(Norm(context_, w_.stem0_norm, half, half, Activation::kGelu));
    MK_TRY(Convolve(context_, w_.stem1, half, out));
    MK_TRY(Norm(context_, w_.stem1_norm, out, out));
    MK_TRY(Done({"stem"}, out));
    return out;
  }

  // The stage's blocks on x, then the downsample, whose result becomes x.
  Status Stage(int64_t index, Map& x) {
    const StageWeights& stage = w_.stages[static_cast<size_t>(index)];
    for (size_t j = 0; j < stage.blocks.size(); ++j) {
      MK_TRY(Ss2d(index, stage.blocks[j], x));
      MK_TRY(Mlp(index, stage.blocks[j], x));
      MK_TRY(Done({"blocks", index, static_cast<int64_t>(j)}, x));
    }
    if (index + 1 == d_.stages()) return Ok();
    MK_TRY_ASSIGN(const Map out,
                  NewMap(context_, Halved(x.height), Halved(x.width), d_.Channels(index + 1)));
    MK_TRY(Convolve(context_, stage.downsample, x, out));
    MK_TRY(Norm(context_, stage.downsample_norm, out, out));
    x = out;
    return Done({"downsample", index}, out);
  }

  // x += out_proj(LN(cross_scan(SiLU(dwconv3x3(u)))) SiLU(z)), (u, z) = in_proj(LN(x)); without a
  // gate there is no z.
  Status Ss2d(int64_t stage, const BlockWeights& block, const Map& x) {
    const int64_t inner = d_.Inner(stage);
    const ScratchScope scope(context_);
    MK_TRY_ASSIGN(const Map u, NewMap(context_, x.height, x.width, inner));
    Map z;
    if (d_.gated) {
      MK_TRY_ASSIGN(z, NewMap(context_, x.height, x.width, inner));
    }
    MK_TRY(Enter(block, x, u, z));
    const Map& y = u;  // done with its first use
    MK_TRY(ScanInto(stage, block, u, y));
    MK_TRY(Norm(context_, block.out_norm, y, y));
    if (d_.gated) MK_TRY(Multiply(context_, {y.data, z.data, y.data, y.tokens() * y.channels}));
    return Project(context_, block.out_proj, y, x, Activation::kNone, Into::kAdd);
  }

  // u = in_proj(LN(x)), and z = SiLU of its second half.
  Status Enter(const BlockWeights& block, const Map& x, const Map& u, const Map& z) {
    const ScratchScope scope(context_);
    MK_TRY_ASSIGN(const Map normed, NewMap(context_, x.height, x.width, x.channels));
    MK_TRY(Norm(context_, block.norm, x, normed));
    MK_TRY(Project(context_, block.in_proj, normed, u, Activation::kNone, Into::kOverwrite));
    if (!d_.gated) return Ok();
    return Project(context_, block.gate_proj, normed, z, Activation::kSilu, Into::kOverwrite);
  }

  // y = cross_scan(SiLU(dwconv3x3(u))); y may be u.
  Status ScanInto(int64_t stage, const BlockWeights& block, const Map& u, const Map& y) {
    const int64_t rank = d_.Rank(stage);
    const int64_t fields = 4 * (rank + 2 * d_.d_state);
    const ScratchScope scope(context_);
    MK_TRY_ASSIGN(const Map v, NewMap(context_, u.height, u.width, u.channels));
    MK_TRY_ASSIGN(const Map projected, NewMap(context_, u.height, u.width, fields));
    MK_TRY(Depthwise3x3(context_, {u.data, block.depthwise, v.data, u.height, u.width, u.channels,
                                   Activation::kSilu}));
    MK_TRY(Project(context_, {block.scan.x_proj, nullptr}, v, projected, Activation::kNone,
                   Into::kOverwrite));
    return CrossScan(
        context_, {v.data, projected.data, block.scan.dt_weight, block.scan.dt_bias, block.scan.a,
                   block.scan.d, y.data, u.height, u.width, u.channels, rank, d_.d_state});
  }

  // x += fc2(GELU(fc1(LN(x))))
  Status Mlp(int64_t stage, const BlockWeights& block, const Map& x) {
    return FeedForward(context_,
                       {block.norm2.weight, block.norm2.bias, block.fc1.weight, block.fc1.bias,
                        block.fc2.weight, block.fc2.bias, x.data, x.tokens(), x.channels,
                        d_.Hidden(stage), kEpsilon, Activation::kGelu});
  }

  // LN -> mean over positions -> linear.
  Status Head(const Map& x, float* logits) {
    const ScratchScope scope(context_);
    MK_TRY_ASSIGN(const Map features, NewMap(context_, 1, 1, x.channels));
    MK_TRY(Norm(context_, w_.head_norm, x, x));
    MK_TRY(GlobalAveragePool(context_, {x.data, features.data, x.tokens(), x.channels}));
    MK_TRY(Done({"features"}, features));
    const Map scores = {logits, 1, 1, d_.num_classes};
    MK_TRY(Project(context_, w_.head, features, scores, Activation::kNone, Into::kOverwrite));
    return Done({"logits"}, scores);
  }

  // Between steps: shows the result to the tap, and stops when nobody waits for it any more.
  Status Done(const Step& step, const Map& map) {
    if (tap_ != nullptr) tap_->see(tap_->self, step.Name().c_str(), map);
    if (context_.cancelled()) return Cancelled("vmamba: cancelled after " + step.Name());
    return Ok();
  }

  Context& context_;
  const Description& d_;
  const Weights& w_;
  const Tap* const tap_;
};

}  // namespace

Status RunNetwork(Context& context, const Description& description, const Weights& weights,
                  const Map& input, float* logits, const Tap* tap) {
  const ScratchScope scope(context);
  return Pass(context, description, weights, tap).Run(input, logits);
}

}  // namespace mk::vmamba
