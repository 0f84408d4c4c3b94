#include "kernels/scan/cross_scan_f16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/scan/cross_scan.h"
#include "kernels/scan/cross_scan_f16_emulated.h"
#include "kernels/scan/cross_scan_f16_shapes.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/emulated_context.h"
#include "kernels/testing/generator.h"

namespace mk {
namespace {

using device::half;
using emu::DeviceArray;
using testing::EmulatedContext;
using testing::Generate;
using testing::IsNearRelL2;
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
  Problem(EmulatedContext& context, const CrossScanF16Shape& shape, Behind behind)
      : context_(context),
        kernels_(
            *CrossScanF16Kernels::Load(context.host(), context.Module(mk_emulated_cross_scan_f16))),
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

  EmulatedContext& context_;
  const CrossScanF16Kernels kernels_;
  const CrossScanF16Shape s_;
  const Behind behind_;
  Operands host_;
  DeviceArray<half> x_, projected_, dt_weight_;
  DeviceArray<float> dt_bias_, a_, d_, norm_weight_, norm_bias_;
  DeviceArray<half> gate_, y_;
};

TEST(CrossScanF16, TheTwinIsTheCpuOp) {
  for (const CrossScanF16Shape& s : kCrossScanF16RaggedShapes) {
    EmulatedContext context;
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
    EmulatedContext context;
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
    EmulatedContext context;
    Problem problem(context, shape, Behind::kNorm);
    ASSERT_TRUE(problem.Run().ok()) << shape.name << ": " << context.error();
    EXPECT_TRUE(problem.IsTheTwins()) << shape.name;
    EXPECT_EQ(context.launches().size(),
              static_cast<size_t>(PlanCrossScanF16(problem.Params()).launches));
  }
}

}  // namespace
}  // namespace mk
