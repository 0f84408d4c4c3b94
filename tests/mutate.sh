#!/usr/bin/env bash
# mutate.sh [PATTERN]: takes every barrier and every wait of the device code away in turn, and tells what noticed it.
# PATTERN: Bazel targets, default //kernels/... ; a test that does this has "Need" in its name. Exit code 1 where a mutant
# survives that its test does not list. The default test run does the same and prints less.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ ${1-} == --help || ${1-} == -h ]]; then sed -n '2,4s/^# //p' "$0"; exit 0; fi
pattern=${1:-//kernels/...}
flags=()
unshare --user --mount true 2>/dev/null || flags+=(--spawn_strategy=local)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
# Filtered to nothing, a test passes: those without mutants only cost their start.
bazel test "${flags[@]}" --test_output=all --test_arg='--gtest_filter=*Need*' --test_lang_filters=cc "$pattern" >"$log" 2>&1 || code=$?
grep -E '^mutant ' "$log" | sed 's/^mutant //' | sort -u -t: -k1,2 || true
mutants=$(grep -cE '^mutant ' "$log" || true)
sites=$(grep -oE '^mutant [^ ]+ in [^ ]+:[0-9]+' "$log" | sort -u | wc -l)
survivors=$(grep -E '^mutant .*: SURVIVES$' "$log" | sort -u | wc -l)
if ((code != 0)); then grep -E 'FAILED|ERROR' "$log" | head -n 20 >&2; fi
if ((mutants == 0)); then echo "mutate: no mutant was made" >&2; tail -n 20 "$log" >&2; exit 1; fi
echo "mutate: $mutants mutants at $sites places, $survivors of the places survive; those are listed in their tests with the reason"
exit $code
