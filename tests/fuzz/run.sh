#!/usr/bin/env bash
# Fuzzes what reads bytes from outside: libFuzzer under ASan+UBSan, each target for so many seconds.
#   tests/fuzz/run.sh [--seconds N] [--corpus FOLDER] [TARGET]...
# TARGET is a name such as wire_request_fuzz; default: all. What was found is kept in FOLDER/TARGET, and the next run
# goes on from there; a finding stays in FOLDER/findings, and `bazel run //ROOM:TARGET_replay FILE` repeats it.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=60 corpus=$PWD/run/fuzz wanted=()
while (($#)); do
  case $1 in
    --seconds) seconds=${2:?--seconds needs a number}; shift ;;
    --corpus) corpus=${2:?--corpus needs a folder}; shift ;;
    --help | -h) sed -n '2,5s/^# //p' "$0"; exit 0 ;;
    -*) echo "tests/fuzz/run.sh: unknown option $1" >&2; exit 2 ;;
    *) wanted+=("$1") ;;
  esac
  shift
done

deploy/install-packages.sh tests/fuzz/packages.txt
compiler=$(command -v clang-14 || command -v clang || command -v clang-19)
# An output base of its own: another compiler would throw away what g++ has built.
base=$HOME/.cache/mergekernel-fuzz
bazel=(bazel --output_base="$base")
# Not //...: that would follow the link to the outputs of the usual output base.
packages=$(git grep -l '^mk_fuzz(' -- '*/BUILD' | sed 's|^\(.*\)/BUILD$|//\1:all|')
mapfile -t targets < <("${bazel[@]}" query "filter('_libfuzzer$', set($(echo $packages)))" 2>/dev/null)
((${#targets[@]})) || { echo "tests/fuzz/run.sh: no target found"; exit 1; }
replays=("${targets[@]/%_libfuzzer/_replay}")
CC=$compiler "${bazel[@]}" build --config=fuzz --experimental_convenience_symlinks=ignore --repo_env=CC="$compiler" --noshow_progress "${targets[@]}" "${replays[@]}"
bin=$("${bazel[@]}" info --config=fuzz --repo_env=CC="$compiler" bazel-bin 2>/dev/null)

mkdir -p "$corpus/findings"
ran=0 failed=0
for target in "${targets[@]}"; do
  path=${target#//}
  path=${path/:/\/}
  name=$(basename "${path%_libfuzzer}")
  if ((${#wanted[@]})) && [[ " ${wanted[*]} " != *" $name "* ]]; then continue; fi
  ran=$((ran + 1))
  mkdir -p "$corpus/$name"
  "$bin/${path%_libfuzzer}_replay" --dump "$corpus/$name"
  log=$corpus/findings/$name.log
  if "$bin/$path" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=16384 -print_final_stats=1 \
    -artifact_prefix="$corpus/findings/$name-" "$corpus/$name" >"$log" 2>&1; then
    printf '%-24s %12s executions, no finding\n' "$name" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  else
    failed=$((failed + 1))
    printf '%-24s FINDING, see %s\n' "$name" "$log"
    tail -n 40 "$log"
  fi
done
((ran)) || { echo "tests/fuzz/run.sh: no target called ${wanted[*]}" >&2; exit 2; }
echo "$ran targets, $failed with findings"
((failed == 0))
