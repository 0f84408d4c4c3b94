#!/usr/bin/env bash
# arm64.sh [--no-install] [TARGET...]: the kernels' tests on 64-bit Arm, so that the NEON loops are run and not only
# written. Cross-compiled with the distribution's compiler against a sysroot of its arm64 packages, run by qemu. On demand:
# root, the package mirror and about three minutes; default: every test below //kernels.
set -euo pipefail
cd "$(dirname "$0")/.."
install=1
[[ ${1-} == --no-install ]] && { install=0; shift; }
work=${MK_ARM64_FOLDER:-${TMPDIR:-/var/tmp}/mk-arm64}
sysroot=$work/sysroot
mkdir -p "$work"

if ((install)); then
  missing=()
  for package in g++-aarch64-linux-gnu qemu-user-static; do
    dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
  done
  ((${#missing[@]} == 0)) || apt-get -qq install -y --no-install-recommends "${missing[@]}" >"$work/apt.log" 2>&1
fi

# The packages of the other architecture are unpacked beside this system, not installed: their -dev packages do not all
# stand beside its own.
if [[ ! -e $sysroot/.complete ]]; then
  rm -rf "$sysroot"
  mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial" "$sysroot/usr/lib"
  ln -sfn usr/lib "$sysroot/lib"
  : >"$work/apt/status"
  apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$work/apt"
    -o Dir::State::status="$work/apt/status" -o Dir::Cache="$work/apt" -o Dir::Cache::archives="$work/apt/archives")
  "${apt[@]}" update >>"$work/apt.log" 2>&1
  "${apt[@]}" -y -d --no-install-recommends install libc6-dev libstdc++-12-dev libgtest-dev libgmock-dev libabsl-dev \
    libopenblas-pthread-dev libjpeg-dev libpng-dev libssl-dev nlohmann-json3-dev >>"$work/apt.log" 2>&1
  for package in "$work"/apt/archives/*.deb; do dpkg-deb -x "$package" "$sysroot"; done
  touch "$sysroot/.complete"
fi

libraries=$sysroot/usr/lib/aarch64-linux-gnu
compile=(aarch64-linux-gnu-g++ "--sysroot=$sysroot" -std=c++17 -O2 -Wall -Wextra -Werror -fno-math-errno
  -fno-trapping-math -ffp-contract=off -Wno-psabi -I. "-isystem$libraries/openblas-pthread"
  "-isystem$sysroot/usr/include/aarch64-linux-gnu/openblas-pthread")
link=("-L$libraries/openblas-pthread" "-Wl,-rpath-link,$libraries" "-Wl,-rpath-link,$libraries/openblas-pthread"
  -lgmock_main -lgmock -lgtest -lopenblas -ljpeg -lpng -lz -lcrypto -ldl -pthread)
for name in statusor status cord strings strings_internal str_format_internal throw_delegate raw_logging_internal int128 \
  synchronization time time_zone base hash city low_level_hash raw_hash_set bad_optional_access bad_variant_access; do
  link+=("-labsl_$name")
done
read -ra targets <<<"${*:-$(bazel query 'kind(cc_test, //kernels/...)' 2>/dev/null | sort | tr '\n' ' ')}"

# Objects are kept by the checksum of what the compiler saw, so that a second run compiles what changed.
object() {
  local source=$1 define=()
  [[ $source == *_simd.cc ]] && define=(-DMK_SIMD_ISA=base)
  local key
  key=$("${compile[@]}" "${define[@]}" -E "$source" | sha256sum)
  local out=$work/objects/${key%% *}.o
  [[ -e $out ]] || { "${compile[@]}" "${define[@]}" -c "$source" -o "$out.new" && mv "$out.new" "$out"; }
  echo "$out"
}

mkdir -p "$work/objects" "$work/tests"
passed=0 failed=0
for target in "${targets[@]}"; do
  name=${target##*:}
  objects=()
  while read -r source; do
    source=${source#//}
    objects+=("$(object "${source/://}")")
  done < <(bazel query "kind('source file', deps($target))" 2>/dev/null | grep -E '^//.*\.cc$' | sort)
  # A run counts when it ran tests: without sources, gtest's own main passes with none.
  ran=0
  if ((${#objects[@]})) &&
    aarch64-linux-gnu-g++ "--sysroot=$sysroot" -o "$work/tests/$name" "${objects[@]}" "${link[@]}" &&
    qemu-aarch64-static -L "$sysroot" -E "LD_LIBRARY_PATH=$libraries:$libraries/openblas-pthread" "$work/tests/$name" \
      >"$work/tests/$name.log" 2>&1; then
    ran=$(grep -cE '^\[       OK \]' "$work/tests/$name.log" || true)
  fi
  if ((ran > 0)); then
    echo "ok      $target: $ran tests"
    passed=$((passed + 1))
  else
    echo "FAILED  $target: $work/tests/$name.log"
    tail -n 20 "$work/tests/$name.log" 2>/dev/null || true
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
