#!/usr/bin/env bash
# avx512.sh [--no-install]: the AVX-512 loops on a CPU that has it not, in emulation (libsimde-dev). Compiles the vectors'
# own test and the ops' tests, with every instruction set, outside of Bazel; on demand, a few minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
work=${MK_AVX512_FOLDER:-${TMPDIR:-/var/tmp}/mk-avx512}
mkdir -p "$work/objects" "$work/tests"
if [[ ${1-} == --no-install ]]; then
  shift
elif ! dpkg -s libsimde-dev >/dev/null 2>&1; then
  apt-get -qq install -y --no-install-recommends libsimde-dev >"$work/apt.log" 2>&1
fi
compile=(g++ -std=c++17 -O2 -Wall -Wextra -fno-math-errno -fno-trapping-math -ffp-contract=off -DMK_SIMD_EMULATED_AVX512 -I.)
link=(-lgmock_main -lgmock -lgtest -ldnnl -ljpeg -lpng -lz -lcrypto -ldl -pthread)
for name in statusor status cord strings strings_internal str_format_internal throw_delegate raw_logging_internal int128 \
  synchronization time time_zone base hash city low_level_hash raw_hash_set bad_optional_access bad_variant_access; do
  link+=("-labsl_$name")
done

# object SOURCE FLAG...: kept by the checksum of what the compiler saw.
object() {
  local key out
  key=$({ echo "$*"; "${compile[@]}" "${@:2}" -E "$1"; } | sha256sum)
  out=$work/objects/${key%% *}.o
  [[ -e $out ]] || { "${compile[@]}" "${@:2}" -c "$1" -o "$out.new" && mv "$out.new" "$out"; }
  echo "$out"
}

passed=0 failed=0
read -ra targets <<<"${*:-$(bazel query 'kind(cc_test, rdeps(//kernels/..., //kernels/simd:isas))' 2>/dev/null | sort | tr '\n' ' ')}"
for target in "${targets[@]}"; do
  name=${target##*:}
  objects=()
  while read -r source; do
    source=${source#//}
    source=${source/://}
    if [[ $source == *_simd.cc ]]; then
      objects+=("$(object "$source" -DMK_SIMD_ISA=base)" "$(object "$source" -DMK_SIMD_ISA=avx2 -mavx2 -mfma)")
      # Without -mavx512f, which this CPU could not run. vec.h takes the emulated vectors by the namespace's name.
      objects+=("$(object "$source" -DMK_SIMD_ISA=avx512 -DMK_SIMD_USE_AVX512 -mavx2 -mfma -Wno-psabi)")
    else
      objects+=("$(object "$source")")
    fi
  done < <(bazel query "kind('source file', deps($target))" 2>/dev/null | grep -E '^//.*\.cc$' | sort)
  # A run counts when it ran tests on AVX-512: without sources, gtest's own main passes with none.
  ran=0
  if ((${#objects[@]})) && g++ -o "$work/tests/$name" "${objects[@]}" "${link[@]}" &&
    "$work/tests/$name" >"$work/tests/$name.log" 2>&1; then
    ran=$(grep -cE '^\[       OK \].*AVX512' "$work/tests/$name.log" || true)
  fi
  if ((ran > 0)); then
    echo "ok      $target: $ran tests on AVX-512"
    passed=$((passed + 1))
  else
    echo "FAILED  $target: $work/tests/$name.log"
    grep -E 'Failure|FAILED' "$work/tests/$name.log" 2>/dev/null | head -10 || true
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
