#!/bin/sh
# standalone.sh [DIRECTORY]: builds and runs the README's example with nothing but g++ and Boost.Context, in a directory of
# its own. Prints what the launch moved.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
work=${1:-$(mktemp -d)}
mkdir -p "$work"
cd "$work"

cat >add.h <<'END'
struct AddParams { const float* x; float* y; int n; };
END
cat >add.cu <<'END'
#include "add.h"
#include "kernels/device/memory.h"
extern "C" __global__ void add(const AddParams p) {
  using namespace mk::device;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < p.n) Store(p.y + i, Load(p.x + i) + 1.0f);
}
END
cat >add_emulated.cc <<'END'
#include "add.cu"
MK_EMULATED_MODULE(mk_emulated_add, "add", MK_EMULATED_KERNEL(add))
END
cat >add_test.cc <<'END'
#include <cstdio>
#include <vector>

#include "add.h"
#include "kernels/emulator/emulator.h"
using namespace mk::emu;
extern "C" const Module mk_emulated_add;
int main() {
  Emulator emulator;
  DeviceArray<float> x(&emulator.memory(), "x", std::vector<float>(1000, 1.0f));
  DeviceArray<float> y(&emulator.memory(), "y", 1000);
  const Report report = emulator.Run(mk_emulated_add, "add", {{4}, {256}}, AddParams{x.device(), y.device(), 1000});
  std::printf("%s%s", report.Text().c_str(), report.counts.Text().c_str());
  return report.ok() && y.Host()[999] == 2.0f ? 0 : 1;
}
END

flags="-std=c++17 -O2 -I$root -I."
objects=
for source in "$root"/kernels/emulator/*.cc; do
  case $source in *_test.cc | *_bench.cc | *_check.cc) continue ;; esac
  object=$(basename "$source" .cc).o
  [ "$object" -nt "$source" ] || g++ $flags -ffp-contract=off -c "$source" -o "$object"
  objects="$objects $object"
done
g++ $flags -DMK_EMULATED -c add_emulated.cc
# shellcheck disable=SC2086
g++ $flags add_test.cc add_emulated.o $objects -lboost_context -o add_test
./add_test
