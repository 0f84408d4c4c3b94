#include "kernels/scan/cross_scan_f16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "kernels/scan/cross_scan.h"
#include "kernels/scan/cross_scan_f16_kernels_emulated.h"
#include "kernels/scan/cross_scan_f16_kernels_images.h"
#include "kernels/scan/cross_scan_f16_shapes.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/op_context.h"

namespace mk {
namespace {

using device::half;
using emu::DeviceArray;
using testing::Generate;
using testing::IsNearRelL2;
using testing::OpContext;
using testing::RoundedToHalf;
using testing::ToFloats;
using testing::ToHalves;

enum class Behind { kNothing, kNorm, kNormAndGate };

// Operands of one shape on the host.
struct Operands {
  explicit Operands(const CrossScanF16Shape& s)
      : tokens(s.height * s.width),
        fields(s.rank + 2 * s.state),
        x(ToHalves(Generate("x", 1, tokens * s.channels, -1, 1))),
        projected(ToHalves(Generate("projected", 1, tokens * 4 * fields, -1, 1))),
        dt_weight_plain(RoundedToHalf(Generate("dt_weight", 1, 4 * s.rank * s.channels, -1, 1))),
        dt_weight(static_cast<size_t>(PackedDtWeightElements(s.channels, s.rank))),
        dt_bias(Generate("dt_bias", 1, 4 * s.channels, -4, 1)),
        a(Generate("a", 1, 4 * s.state * s.channels, -2.7f, -0.3f)),
        d(Generate("d", 1, s.channels, 2, 6)),
        norm_weight(Generate("norm_weight", 1, s.channels, 0.5f, 1.5f)),
        norm_bias(Generate("norm_bias", 1, s.channels, -1, 1)),
        gate(ToHalves(Generate("gate", 1, tokens * s.channels, -1, 1))) {
    PackDtWeight(dt_weight_plain.data(), s.channels, s.rank, dt_weight.data());
  }

  const int64_t tokens, fields;
  std::vector<half> x, projected;
  std::vector<float> dt_weight_plain;
  std::vector<half> dt_weight;
  std::vector<float> dt_bias, a, d, norm_weight, norm_bias;
  std::vector<half> gate;
};

class Problem {
 public:
  Problem(OpContext& context, const CrossScanF16Shape& shape, Behind behind)
      : context_(context),
        kernels_(*CrossScanF16Kernels::Load(
            context.host(),
            context.Module(mk_emulated_cross_scan_f16_kernels, mk_images_cross_scan_f16_kernels))),
        s_(shape),
        behind_(behind),
        host_(shape),
        x_(&context.memory(), "x", host_.x),
        projected_(&context.memory(), "projected", host_.projected),
        dt_weight_(&context.memory(), "dt_weight", host_.dt_weight),
        dt_bias_(&context.memory(), "dt_bias", host_.dt_bias),
        a_(&context.memory(), "a", host_.a),
        d_(&context.memory(), "d", host_.d),
        norm_weight_(&context.memory(), "norm_weight", host_.norm_weight),
        norm_bias_(&context.memory(), "norm_bias", host_.norm_bias),
        gate_(&context.memory(), "gate", host_.gate),
        y_(&context.memory(), "y", host_.x.size()) {}

  CrossScanF16Params Params() {
    const bool norm = behind_ != Behind::kNothing;
    return {x_.device(),
            projected_.device(),
            dt_weight_.device(),
            dt_bias_.device(),
            a_.device(),
            d_.device(),
            norm ? norm_weight_.device() : nullptr,
            norm ? norm_bias_.device() : nullptr,
            behind_ == Behind::kNormAndGate ? gate_.device() : nullptr,
            y_.device(),
            s_.height,
            s_.width,
            s_.channels,
            s_.rank,
            s_.state,
            1e-5f};
  }
  // After a change of host_.
  void Upload() {
    x_.Set(host_.x);
    projected_.Set(host_.projected);
    dt_weight_.Set(host_.dt_weight);
    dt_bias_.Set(host_.dt_bias);
    a_.Set(host_.a);
    d_.Set(host_.d);
  }
  Status Run() { return CrossScanF16(*context_, kernels_, Params()); }
  emu::LaunchFunction Launch() {
    return context_.LaunchFunction([this] {
      y_.Reset();
      return Run();
    });
  }
  std::vector<float> Y() { return ToFloats(y_.Host()); }

  std::vector<float> Twins() {
    std::vector<half> y(host_.x.size());
    CrossScanF16Params p = Params();
    p.x = host_.x.data();
    p.projected = host_.projected.data();
    p.dt_weight = host_.dt_weight.data();
    p.dt_bias = host_.dt_bias.data();
    p.a = host_.a.data();
    p.d = host_.d.data();
    if (p.norm_weight != nullptr) {
      p.norm_weight = host_.norm_weight.data();
      p.norm_bias = host_.norm_bias.data();
    }
    if (p.gate != nullptr) p.gate = host_.gate.data();
    p.y = y.data();
    CrossScanF16Cpu(p);
    return ToFloats(y);
  }
  // What fp32 makes of the recurrence is within 1e-5 of what double does; where the two then round
  // to different halves they are 1e-3 apart, which a few elements in a hundred may. A norm of few
  // channels can enlarge that.
  ::testing::AssertionResult IsTheTwins(double bound = 3e-4) {
    return IsNearRelL2(Y(), Twins(), bound, {s_.height, s_.width, s_.channels});
  }

  OpContext& context_;
  const CrossScanF16Kernels kernels_;
  const CrossScanF16Shape s_;
  const Behind behind_;
  Operands host_;
  DeviceArray<half> x_, projected_, dt_weight_;
  DeviceArray<float> dt_bias_, a_, d_, norm_weight_, norm_bias_;
  DeviceArray<half> gate_, y_;
};

TEST(CrossScanF16, TheTwinIsTheCpuOp) {
  std::vector<CrossScanF16Shape> shapes(std::begin(kCrossScanF16RaggedShapes),
                                        std::end(kCrossScanF16RaggedShapes));
  shapes.insert(shapes.end(), std::begin(kCrossScanF16StateShapes),
                std::end(kCrossScanF16StateShapes));
  for (const CrossScanF16Shape& s : shapes) {
    OpContext context;
    Problem problem(context, s, Behind::kNothing);
    const std::vector<float> x = ToFloats(problem.host_.x);
    const std::vector<float> projected = ToFloats(problem.host_.projected);
    std::vector<float> y(x.size());
    testing::TestContext cpu;
    ASSERT_TRUE(CrossScan(*cpu, {x.data(), projected.data(), problem.host_.dt_weight_plain.data(),
                                 problem.host_.dt_bias.data(), problem.host_.a.data(),
                                 problem.host_.d.data(), y.data(), s.height, s.width, s.channels,
                                 s.rank, s.state})
                    .ok());
    EXPECT_TRUE(IsNearRelL2(problem.Twins(), y, 3e-4)) << s.name;  // one rounding to half
  }
}

TEST(CrossScanF16, EqualsTheTwinUnderEverySchedule) {
  int variant = 0;
  for (const CrossScanF16Shape& shape : kCrossScanF16RaggedShapes) {
    OpContext context;
    Problem problem(context, shape, static_cast<Behind>(variant++ % 3));
    const emu::SweepResult sweep = emu::Sweep(problem.Launch(), testing::BytesOf(problem.y_));
    ASSERT_TRUE(sweep.ok) << shape.name << ": " << sweep.text;
    EXPECT_TRUE(problem.IsTheTwins()) << shape.name;
    EXPECT_EQ(context.scratch_used_bytes(), 0u);
    EXPECT_LE(context.scratch_peak_bytes(),
              static_cast<uint64_t>(CrossScanF16Scratch(problem.Params())));
  }
}

TEST(CrossScanF16, EqualsTheTwinOnModelShapes) {
  for (const CrossScanF16Shape& shape : kCrossScanF16ModelShapes) {
    OpContext context;
    Problem problem(context, shape, Behind::kNorm);
    ASSERT_TRUE(problem.Run().ok()) << shape.name << ": " << context.error();
    EXPECT_TRUE(problem.IsTheTwins()) << shape.name;
    EXPECT_EQ(context.launches().size(),
              static_cast<size_t>(PlanCrossScanF16(problem.Params()).launches));
  }
}

TEST(CrossScanF16, EqualsTheTwinWithManyStates) {
  for (const CrossScanF16Shape& shape : kCrossScanF16StateShapes) {
    OpContext context;
    Problem problem(context, shape, Behind::kNormAndGate);
    ASSERT_TRUE(problem.Run().ok()) << shape.name << ": " << context.error();
    EXPECT_TRUE(problem.IsTheTwins()) << shape.name;
  }
}

TEST(CrossScanF16, ASmallMapIsOneLaunch) {
  for (const CrossScanF16Shape& shape : kCrossScanF16ModelShapes) {
    OpContext context;
    Problem problem(context, shape, Behind::kNormAndGate);
    const bool tiny = std::string(shape.name).find("vmamba_t") != std::string::npos;
    EXPECT_EQ(PlanCrossScanF16(problem.Params()).launches, tiny ? 2 : 1) << shape.name;
  }
}

TEST(CrossScanF16, KeepsTheStateOfALongSequence) {
  // 2048 steps of decay e^-0.001 and drive 0.001, over the segments of 64 tiles: a state held, or
  // handed on, in half precision ends far from (1 - e^-2.048) 0.001 / (1 - e^-0.001). Of one row,
  // the backwards direction ends at token 0; the others are silenced by C = 0.
  constexpr int32_t kTokens = 2048;
  OpContext context;
  Problem problem(context, {"long", 1, kTokens, 1, 1, 1}, Behind::kNothing);
  for (half& v : problem.host_.x) v = ToHalves({1})[0];
  for (half& v : problem.host_.dt_weight) v = half{0};
  for (float& v : problem.host_.dt_bias) v = -6.9072555f;  // softplus: 0.001
  for (float& v : problem.host_.a) v = -1.0f;
  problem.host_.d[0] = 0.0f;
  for (size_t i = 0; i < problem.host_.projected.size(); i += 3) {
    problem.host_.projected[i + 1] = ToHalves({1})[0];                             // B
    problem.host_.projected[i + 2] = ToHalves({i / 3 % 4 == 2 ? 1.0f : 0.0f})[0];  // C
  }
  problem.Upload();
  ASSERT_TRUE(problem.Run().ok()) << context.error();
  EXPECT_EQ(context.launches().size(), 3u);
  EXPECT_NEAR(problem.Y()[0], (1 - std::exp(-2.048)) * 0.001 / (1 - std::exp(-0.001)), 5e-4);
}

TEST(CrossScanF16, CarriesNanToItsChannelOnly) {
  for (const CrossScanF16Shape shape : {CrossScanF16Shape{"nan", 3, 4, 5, 2, 1},
                                        {"nan_in_tiles", 2, 40, 5, 2, 1},
                                        {"nan_in_states", 3, 4, 5, 2, 2}}) {
    OpContext context;
    Problem problem(context, shape, Behind::kNothing);
    problem.host_.x[2 * 5 + 3] = ToHalves({NAN})[0];  // token 2, channel 3
    problem.Upload();
    ASSERT_TRUE(problem.Run().ok()) << context.error();
    const std::vector<float> y = problem.Y();
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i % 5 == 3) << i;
  }
}

TEST(CrossScanF16, NeedsEveryBarrier) {
  MK_ON_EMULATOR_ALONE();
  // Of a norm with tickets, the barrier before a ticket is drawn survives: it keeps thread 0 from
  // drawing before another warp has stored, and here the next block only begins when this one has
  // ended. It is not harmless on a GPU.
  const struct {
    CrossScanF16Shape shape;
    size_t syncs, survivors;
  } cases[] = {{{"alone_with_tickets", 9, 2, 100, 2, 1}, 5, 1},
               {{"tiles", 2, 33, 33, 2, 1}, 5, 1},
               {{"all_in_a_block", 4, 4, 12, 1, 1}, 4, 0}};
  for (const auto& [shape, syncs, survivors] : cases) {
    OpContext context;
    Problem problem(context, shape, Behind::kNormAndGate);
    const std::vector<emu::Mutant> mutants =
        emu::MutateSyncs(problem.Launch(), testing::BytesOf(problem.y_));
    EXPECT_EQ(mutants.size(), syncs) << shape.name;
    const std::vector<std::string> alive = testing::Survivors(mutants);
    EXPECT_EQ(alive.size(), survivors) << shape.name << ": " << (alive.empty() ? "" : alive[0]);
  }
}

// ---- Traffic. VMamba-Tiny ("s1l8": one state, inner width of the stage's), an image of 512 x 512.

struct Stage {
  int32_t side, channels, rank, blocks;
};
constexpr Stage kTinyAt512[] = {
    {128, 96, 6, 2}, {64, 192, 12, 2}, {32, 384, 24, 8}, {16, 768, 48, 2}};

CrossScanF16Params ShapeOnly(int32_t side, int32_t channels, int32_t rank) {
  static const float norm[1] = {};
  CrossScanF16Params p = {};
  p.height = p.width = side;
  p.channels = channels;
  p.rank = rank;
  p.state = 1;
  p.norm_weight = p.norm_bias = norm;
  return p;
}

// What stands in this op's place in the reference implementation, each operand of each of its
// operators once, fp16 but for ys: the four sequences xs are copied out of the map; dts is made of
// the ranks' part of x_proj's result; the scan reads xs, dts, B and C and writes ys in fp32; the
// merge reads those and writes the map; the norm reads and writes it.
double ReferenceBytes(const Stage& s) {
  const double map = 2.0 * s.side * s.side * s.channels;
  const double fields = 2.0 * s.side * s.side * 4 * (s.rank + 2);
  return map * ((1 + 4) + 4 + (4 + 4 + 8) + (8 + 1) + 2) + fields;
}

TEST(CrossScanF16, MovesWhatItSaysAndAnEighthOfTheReferenceAt512) {
  MK_ON_EMULATOR_ALONE();
  OpContext context;
  Problem problem(context, {"as_stage_1", 64, 64, 64, 4, 1}, Behind::kNorm);
  ASSERT_TRUE(problem.Run().ok()) << context.error();
  ASSERT_EQ(context.launches().size(), 3u);
  uint64_t said = 0;
  for (const testing::OpLaunch& launch : context.launches()) {
    const emu::Counts& counts = launch.report.counts;
    // The tickets are in no formula: a sector, zeroed in `ends`.
    EXPECT_NEAR(static_cast<double>(counts.footprint_bytes()),
                static_cast<double>(launch.cost.bytes), 32)
        << launch.kernel;
    EXPECT_EQ(counts.bank_conflicts(), 0u) << launch.kernel;
    said += launch.cost.bytes;
  }
  EXPECT_EQ(said, CrossScanF16Cost(problem.Params()).bytes);
  EXPECT_EQ(CrossScanF16Cost(ShapeOnly(64, 64, 4)).bytes, said);

  double ours = 0;
  double reference = 0;
  for (const Stage& s : kTinyAt512) {
    ours += s.blocks *
            static_cast<double>(CrossScanF16Cost(ShapeOnly(s.side, s.channels, s.rank)).bytes);
    reference += s.blocks * ReferenceBytes(s);
  }
  std::printf("VMamba-Tiny at 512: %.1f MB of %.1f MB, 1/%.2f\n", ours / 1e6, reference / 1e6,
              reference / ours);
  EXPECT_LE(ours, reference / 8);
}

TEST(CrossScanF16, RefusesEachBrokenPrecondition) {
  OpContext context;
  Problem problem(context, {"refused", 2, 3, 4, 2, 1}, Behind::kNormAndGate);
  const auto message = [&](auto change) {
    CrossScanF16Params params = problem.Params();
    change(params);
    const Status status = CrossScanF16(*context, problem.kernels_, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = CrossScanF16Params;
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "CrossScanF16: x is null");
  EXPECT_EQ(message([](P& p) { p.projected = nullptr; }), "CrossScanF16: projected is null");
  EXPECT_EQ(message([](P& p) { p.dt_weight = nullptr; }), "CrossScanF16: dt_weight is null");
  EXPECT_EQ(message([](P& p) { p.dt_bias = nullptr; }), "CrossScanF16: dt_bias is null");
  EXPECT_EQ(message([](P& p) { p.a = nullptr; }), "CrossScanF16: a is null");
  EXPECT_EQ(message([](P& p) { p.d = nullptr; }), "CrossScanF16: d is null");
  EXPECT_EQ(message([](P& p) { p.y = nullptr; }), "CrossScanF16: y is null");
  EXPECT_EQ(message([](P& p) { p.norm_bias = nullptr; }),
            "CrossScanF16: a norm_weight, but norm_bias is null");
  EXPECT_EQ(message([](P& p) { p.norm_weight = nullptr; }),
            "CrossScanF16: a norm_bias, but norm_weight is null");
  EXPECT_EQ(message([](P& p) { p.norm_weight = p.norm_bias = nullptr; }),
            "CrossScanF16: a gate, but no norm");
  EXPECT_EQ(message([](P& p) { p.height = 0; }), "CrossScanF16: height 0 not in 1..65536");
  EXPECT_EQ(message([](P& p) { p.width = -1; }), "CrossScanF16: width -1 not in 1..65536");
  EXPECT_EQ(message([](P& p) { p.height = p.width = 1 << 13; }),
            "CrossScanF16: tokens 67108864 not in 1..16777216");
  EXPECT_EQ(message([](P& p) { p.channels = 0; }), "CrossScanF16: channels 0 not in 1..65536");
  EXPECT_EQ(message([](P& p) { p.height = 1, p.width = 1 << 16, p.channels = 4097; }),
            "CrossScanF16: width x channels 268500992 not in 1..268435456");
  EXPECT_EQ(message([](P& p) { p.rank = 4097; }), "CrossScanF16: rank 4097 not in 1..4096");
  EXPECT_EQ(message([](P& p) { p.state = 33; }), "CrossScanF16: state 33 not in 1..32");
  EXPECT_EQ(message([](P& p) { p.epsilon = INFINITY; }),
            "CrossScanF16: epsilon inf is not finite and >= 0");
  EXPECT_EQ(message([](P& p) { p.dt_weight += 1; }),
            "CrossScanF16: dt_weight is not aligned to 16 bytes");
  EXPECT_EQ(message([](P& p) { p.projected += 1; }),
            "CrossScanF16: projected, y or gate is not aligned to 4 bytes");
  EXPECT_EQ(message([](P& p) { p.y = const_cast<half*>(p.x); }), "CrossScanF16: y is x");
  EXPECT_EQ(message([](P& p) { p.y = const_cast<half*>(p.gate); }), "CrossScanF16: y is gate");
}

}  // namespace
}  // namespace mk
