// A problem of a norm of channel-first maps on the device and in its twin, for the tests of
// GroupNormF16 and ChannelNormF16. `Op` names the types and functions of the one that is tried:
//
//   struct GroupNorm {
//     using Shape = GroupNormF16Shape;  // name, images, channels, positions
//     using Params = GroupNormF16Params;
//     using Kernels = GroupNormF16Kernels;
//     static const DeviceModule& Module(OpContext& context);
//     static Status Run(Context& context, const Kernels& kernels, const Params& params);
//     static void Cpu(const Params& params);
//     static void SetRest(const Shape& shape, Params* params);  // beside those three sizes
//   };
#ifndef MERGEKERNEL_KERNELS_NORM_TESTING_CHANNEL_FIRST_CASE_H_
#define MERGEKERNEL_KERNELS_NORM_TESTING_CHANNEL_FIRST_CASE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/math/activation_params.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/op_context.h"

namespace mk::testing {

enum class Sum { kNoResidual, kUnwanted, kWanted };

struct Fused {
  Sum sum = Sum::kNoResidual;
  Activation activation = Activation::kNone;
  bool in_place = false;
  bool bias = true;
};

template <class Op>
class ChannelFirstCase {
 public:
  using Shape = typename Op::Shape;
  using Params = typename Op::Params;

  ChannelFirstCase(OpContext& context, const Shape& shape, const Fused& fused = {}, float low = -1,
                   float high = 1)
      : context_(context),
        kernels_(*Op::Kernels::Load(context.host(), Op::Module(context))),
        shape_(shape),
        fused_(fused),
        count_(static_cast<size_t>(shape.images * shape.channels * shape.positions)),
        x_(ToHalves(Generate(std::string(shape.name) + "/x", 1, Count(), low, high))),
        residual_(ToHalves(Generate("residual", 1, Count(), -1, 1))),
        weight_(Generate("weight", 1, shape.channels, 0.5f, 1.5f)),
        bias_(Generate("bias", 1, shape.channels, -1, 1)),
        x_device_(&context.memory(), "x", x_),
        residual_device_(&context.memory(), "residual", residual_),
        sum_device_(&context.memory(), "sum", count_),
        weight_device_(&context.memory(), "weight", weight_),
        bias_device_(&context.memory(), "bias", bias_),
        y_device_(&context.memory(), "y", count_) {}

  int64_t Count() const { return static_cast<int64_t>(count_); }
  bool has_residual() const { return fused_.sum != Sum::kNoResidual; }
  bool has_sum() const { return fused_.sum == Sum::kWanted; }

  Params MakeParams() {
    Params p = {};
    p.x = x_device_.device();
    p.residual = has_residual() ? residual_device_.device() : nullptr;
    p.sum = has_sum() ? sum_device_.device() : nullptr;
    p.weight = weight_device_.device();
    p.bias = fused_.bias ? bias_device_.device() : nullptr;
    p.y = fused_.in_place ? x_device_.device() : y_device_.device();
    p.images = shape_.images;
    p.channels = shape_.channels;
    p.positions = shape_.positions;
    p.epsilon = 1e-5f;
    p.activation = fused_.activation;
    Op::SetRest(shape_, &p);
    return p;
  }
  Status Run() {
    x_device_.Set(x_);
    return Op::Run(*context_, kernels_, MakeParams());
  }
  emu::LaunchFunction Launch() {
    return context_.LaunchFunction([this] {
      y_device_.Reset();
      sum_device_.Reset();
      return Run();
    });
  }
  std::string Outputs() {
    return BytesOf(fused_.in_place ? x_device_ : y_device_)() +
           (has_sum() ? BytesOf(sum_device_)() : "");
  }
  std::vector<float> Result() { return ToFloats((fused_.in_place ? x_device_ : y_device_).Host()); }

  // Half an ulp of fp16 each, which is one, 2^-10 of the value, where the two round apart; the
  // absolute term is fp32's.
  void ExpectTheTwins(double absolute = 3e-6) {
    std::vector<device::half> want_sum(count_), want(count_);
    Params p = MakeParams();
    p.x = x_.data();
    p.residual = has_residual() ? residual_.data() : nullptr;
    p.sum = has_sum() ? want_sum.data() : nullptr;
    p.weight = weight_.data();
    p.bias = fused_.bias ? bias_.data() : nullptr;
    p.y = want.data();
    Op::Cpu(p);
    const std::vector<float> floats = ToFloats(want);
    EXPECT_TRUE(IsNear(Result(), {floats.begin(), floats.end()}, absolute, 0x1p-10,
                       {shape_.images, shape_.channels, shape_.positions}))
        << shape_.name;
    if (!has_sum()) return;
    const std::vector<float> sums = ToFloats(want_sum);
    EXPECT_TRUE(IsNear(ToFloats(sum_device_.Host()), {sums.begin(), sums.end()}, 0, 0))
        << shape_.name;
  }

  OpContext& context_;
  const typename Op::Kernels kernels_;
  const Shape shape_;
  const Fused fused_;
  const size_t count_;
  std::vector<device::half> x_, residual_;
  const std::vector<float> weight_, bias_;
  emu::DeviceArray<device::half> x_device_, residual_device_, sum_device_;
  emu::DeviceArray<float> weight_device_, bias_device_;
  emu::DeviceArray<device::half> y_device_;
};

template <class Op, size_t kCount>
void ExpectTheTwinsWithEachFusedPart(const typename Op::Shape (&shapes)[kCount]) {
  for (const auto& shape : shapes) {
    for (const Fused& fused : {Fused{Sum::kUnwanted},
                               {Sum::kWanted, Activation::kSilu, true},
                               {Sum::kNoResidual, Activation::kGelu},
                               {Sum::kNoResidual, Activation::kSilu},
                               {Sum::kNoResidual, Activation::kNone, true, false}}) {
      OpContext context;
      ChannelFirstCase<Op> problem(context, shape, fused);
      ASSERT_TRUE(problem.Run().ok()) << context.error();
      problem.ExpectTheTwins();
    }
  }
}

template <class Op, size_t kCount>
void ExpectTheTwins(const typename Op::Shape (&shapes)[kCount]) {
  for (const auto& shape : shapes) {
    OpContext context;
    ChannelFirstCase<Op> problem(context, shape);
    ASSERT_TRUE(problem.Run().ok()) << shape.name << ": " << context.error();
    problem.ExpectTheTwins();
  }
}

template <class Op, size_t kCount>
void ExpectTheTwinsWhereTheSumIsXAndTheResultTheResidual(
    const typename Op::Shape (&shapes)[kCount]) {
  for (const auto& shape : shapes) {
    OpContext context;
    ChannelFirstCase<Op> problem(context, shape, {Sum::kWanted});
    typename Op::Params params = problem.MakeParams();
    params.sum = problem.x_device_.device();
    params.y = problem.residual_device_.device();
    ASSERT_TRUE(Op::Run(*context, problem.kernels_, params).ok()) << context.error();
    problem.sum_device_.Set(problem.x_device_.Host());
    problem.y_device_.Set(problem.residual_device_.Host());
    problem.ExpectTheTwins();
  }
}

}  // namespace mk::testing

#endif  // MERGEKERNEL_KERNELS_NORM_TESTING_CHANNEL_FIRST_CASE_H_
