// Where the numbers are from. SM counts, clocks and pin rates: NVIDIA's data sheets of the modules,
// through the pages named. Rates called reported: github.com/infinigence/ApxInf pull 74 and 78 (AGX
// Orin: 152.8 GB/s read, 33.4 TFLOPS BF16 GEMM; Thor: 257 GB/s, 135 TFLOPS). Scaled ones take from
// these two what a board reaches of its sheet: Orin 0.746 of the pin rate and 0.784 of the tensor
// peak, Thor 0.941 and, of the tensor peak, 0.523.
#include "core/device/planning/board.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/text.h"

namespace mk {
namespace {

constexpr uint64_t kKib = 1024, kMib = 1024 * kKib, kGib = 1024 * kMib;

// CUDA 13.0's own occupancy table.
constexpr SmLimits kSm87 = {87, 48, 16, 65536, 164 * kKib, 163 * kKib};
constexpr SmLimits kSm90 = {90, 64, 32, 65536, 228 * kKib, 227 * kKib};
constexpr SmLimits kSm110 = {110, 48, 24, 65536, 228 * kKib, 227 * kKib};

constexpr double kOrinTensorShare = 33.4 / 42.6, kOrinDramShare = 152.8 / 204.8;

// 2048 FLOP a clock and SM on the tensor cores, 128 FMA lanes.
constexpr Rate OrinTensor(int sms, double clock) {
  return {sms * clock * 2048 * kOrinTensorShare, RateBasis::kScaled};
}
constexpr Rate Fp32(int sms, double clock) { return {sms * clock * 256, RateBasis::kSheet}; }
constexpr Rate OrinDram(double pin) { return {pin * kOrinDramShare, RateBasis::kScaled}; }

constexpr char kOrinSheet[] =
    "NVIDIA data sheet of the module; super modes: JetPack 6.2 and later; rates scaled from AGX "
    "Orin";

constexpr Board Orin(const char* name, const char* title, int sms, double clock, double pin,
                     uint64_t memory) {
  return {name,          title, &kSm87, sms,       clock, OrinTensor(sms, clock), Fp32(sms, clock),
          OrinDram(pin), 0,     memory, kOrinSheet};
}

constexpr Board kBoards[] = {
    {"agx-orin-64gb",
     "Jetson AGX Orin 64GB",
     &kSm87,
     16,
     1.30e9,
     {33.4e12, RateBasis::kReported},
     Fp32(16, 1.30e9),
     {152.8e9, RateBasis::kReported},
     4 * kMib,
     64 * kGib,
     "ApxInf pull 74 and 78 (rates); NVIDIA technical brief (SMs, clock, L2)"},
    {"agx-orin-32gb", "Jetson AGX Orin 32GB", &kSm87, 14, 0.93e9, OrinTensor(14, 0.93e9),
     Fp32(14, 0.93e9), OrinDram(204.8e9), 4 * kMib, 32 * kGib, kOrinSheet},
    Orin("orin-nx-16gb", "Jetson Orin NX 16GB", 8, 0.918e9, 102.4e9, 16 * kGib),
    Orin("orin-nx-16gb-super", "Jetson Orin NX 16GB, super mode", 8, 1.173e9, 102.4e9, 16 * kGib),
    Orin("orin-nx-8gb", "Jetson Orin NX 8GB", 8, 0.765e9, 102.4e9, 8 * kGib),
    Orin("orin-nx-8gb-super", "Jetson Orin NX 8GB, super mode", 8, 1.173e9, 102.4e9, 8 * kGib),
    Orin("orin-nano-8gb", "Jetson Orin Nano 8GB", 8, 0.625e9, 68e9, 8 * kGib),
    Orin("orin-nano-8gb-super", "Jetson Orin Nano 8GB, super mode", 8, 1.020e9, 102e9, 8 * kGib),
    Orin("orin-nano-4gb", "Jetson Orin Nano 4GB", 4, 0.625e9, 34e9, 4 * kGib),
    Orin("orin-nano-4gb-super", "Jetson Orin Nano 4GB, super mode", 4, 1.020e9, 51e9, 4 * kGib),
    {"thor-t5000",
     "Jetson Thor T5000",
     &kSm110,
     20,
     1.575e9,
     {135e12, RateBasis::kReported},
     Fp32(20, 1.575e9),
     {257e9, RateBasis::kReported},
     32 * kMib,
     128 * kGib,
     "ApxInf pull 74 and 78 (rates; the tensor rate is that of tcgen05, and what mma.sync reaches "
     "on this chip is not published); forums.developer.nvidia.com 356355 (SMs, L2)"},
    {"thor-t4000",
     "Jetson Thor T4000",
     &kSm110,
     12,
     1.53e9,
     {12 * 1.53e9 * 8192 * (135.0 / 258.0), RateBasis::kScaled},
     Fp32(12, 1.53e9),
     {273e9 * (257.0 / 273.0), RateBasis::kScaled},
     0,
     64 * kGib,
     "NVIDIA product page (12 SMs, 64 GB, 273 GB/s); clock and rates scaled from T5000"},
    {"h200",
     "H200",
     &kSm90,
     132,
     1.98e9,
     {989e12 * 0.62, RateBasis::kScaled},
     Fp32(132, 1.98e9),
     {4.8e12, RateBasis::kSheet},
     50 * kMib,
     141 * kGib,
     "NVIDIA data sheet; mma.sync taken as 0.62 of wgmma's peak. Not a board: for kernel work"},
};

}  // namespace

const char* RateBasisName(RateBasis basis) {
  switch (basis) {
    case RateBasis::kReported:
      return "reported";
    case RateBasis::kScaled:
      return "scaled";
    case RateBasis::kSheet:
      return "data sheet";
  }
  return "unknown";
}

absl::Span<const Board> Boards() { return kBoards; }

absl::StatusOr<const Board*> FindBoard(const std::string& name) {
  std::vector<std::string> names;
  for (const Board& board : kBoards) {
    if (name == board.name) return &board;
    names.push_back(board.name);
  }
  const std::string near = Nearest(name, names);
  return absl::NotFoundError(
      absl::StrCat("board '", Printable(name, 80), "' is none of ", absl::StrJoin(names, ", "),
                   near.empty() ? std::string() : absl::StrCat("; did you mean ", near, "?")));
}

}  // namespace mk
