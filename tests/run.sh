#!/usr/bin/env bash
# Installs what the tests need, runs them, and closes with the plain line `N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'U'
tests/run.sh [OPTION]...    run mergekernel's tests

With no option: the default run. Unit and end-to-end tests of every room, the rooms check, formatting, stock clients.
It needs no PyTorch and no GPU, and uses Bazel's cached results.

  --sanitizers     also the whole tree under ASan+UBSan, and core/ under TSan
  --clang          also the clang build: layering_check and the thread-safety analysis
  --reference      also regenerate the goldens with PyTorch and compare (makes a virtual environment, 1.3 GB)
  --fresh-machine  also type both commands of the README in fresh debootstrap roots of Debian 12 and 13 (needs root)
  --soak           also 1,000 load/unload cycles of the daemon, with the slope of memory, descriptors and mappings
  --fuzz           also libFuzzer on everything that reads bytes from outside, a minute each (tests/fuzz/run.sh)
  --mutate         also every barrier and wait of the device code taken away in turn, told one by one (tests/mutate.sh)
  --all            all of the above
  --no-install     do not install packages; a missing one fails the test that needs it
  --filter PATTERN only Bazel tests under this pattern (default //...)
  --help           this text

Exit code 0 when nothing failed.
U
}

want() { [[ " ${wanted[*]-} " == *" $1 "* || " ${wanted[*]-} " == *" all "* ]]; }

wanted=() install=1 pattern=//...
while (($#)); do
  case $1 in
    --sanitizers | --clang | --reference | --fresh-machine | --soak | --fuzz | --mutate | --all) wanted+=("${1#--}") ;;
    --no-install) install=0 ;;
    --filter) pattern=${2:?--filter needs a pattern}; shift ;;
    --help | -h) usage; exit 0 ;;
    *) echo "tests/run.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

passed=0 failed=0 failures=()
# check NAME COMMAND...: one test, counted; its output is shown only when it fails.
check() {
  local name=$1 log started=$SECONDS
  shift
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
    printf 'ok      %s (%d s)\n' "$name" $((SECONDS - started))
    grep -E '^skipped' "$log" | sed 's/^/        /' || true  # aloud, also where the rest passed
  else
    failed=$((failed + 1)) failures+=("$name")
    printf 'FAILED  %s (%d s)\n' "$name" $((SECONDS - started))
    sed 's/^/    /' "$log" | tail -n 60
  fi
  rm -f "$log"
}

# bazel_tests NAME [FLAG]... PATTERN...: every Bazel test counts by itself.
bazel_tests() {
  local title=$1 log code
  shift
  log=$(mktemp)
  printf '%s: bazel test %s\n' "$title" "$*"
  bazel test --keep_going --test_summary=short --noshow_progress "${bazel_flags[@]}" "$@" >"$log" 2>&1
  code=$?
  local ok bad
  ok=$(grep -cE '^//[^ ]+ +(\(cached\) )?PASSED' "$log")
  bad=$(grep -cE '^//[^ ]+ +(\(cached\) )?(FAILED|TIMEOUT|NO STATUS|FLAKY)' "$log")
  # Bazel names a few of those that did not build, and counts them all.
  local unbuilt
  unbuilt=$(sed -nE 's/^Executed .* ([0-9]+) fails? to build.*/\1/p' "$log")
  local named
  named=$(grep -cE '^//[^ ]+ +FAILED TO BUILD' "$log")
  if ((${unbuilt:-0} > named)); then bad=$((bad + unbuilt - named)); fi
  # A tree that does not build, or a run that tested nothing, is a failure too (3: some test failed, counted above).
  if ((code != 0 && bad == 0)) || ((ok + bad == 0)); then bad=$((bad + 1)); fi
  passed=$((passed + ok)) failed=$((failed + bad))
  if ((bad)); then
    failures+=("$title")
    grep -vE '^//.*PASSED' "$log" | tail -n 150
  fi
  printf '%s: %d passed, %d failed\n' "$title" "$ok" "$bad"
  rm -f "$log"
}

finish() {
  ((failed == 0)) || printf 'failed: %s\n' "${failures[@]}"
  printf '%d passed, %d failed\n' "$passed" "$failed"
  ((failed == 0)) || exit 1
  exit 0
}

if ((install)); then
  if ! deploy/install-packages.sh deploy/packages.txt tests/packages.txt; then
    failed=1 failures=("installing packages")
    finish
  fi
fi
# The CUDA compiler, so that device code is compiled for its boards; what is left out without it is told.
cuda=$(deploy/cuda-toolkit.sh 2>&1) || cuda="skipped: images for GPUs are not compiled (${cuda##*$'\n'})"
printf '%s\n' "${cuda##*$'\n'}"
# Where the kernel lets no sandbox be made (a chroot, some containers), Bazel runs its actions without one.
bazel_flags=()
unshare --user --mount true 2>/dev/null || bazel_flags+=(--spawn_strategy=local)

check "rooms: includes keep to tests/rooms/rooms.txt" python3 tests/rooms/rooms_test.py .
check "layers: includes keep to direct dependencies" python3 tests/rooms/layers_test.py .
check "format: clang-format changes nothing" tests/format.sh --check
check "repository: the README's links, tables and commands are there" python3 tests/docs/docs_test.py .
bazel_tests "tests" "$pattern"
if [[ $pattern == //... ]]; then
  check "clients: stock tritonclient and perf_analyzer" tests/clients/run.sh
fi
if want sanitizers; then
  bazel_tests "ASan+UBSan" --config=asan "$pattern"
  bazel_tests "TSan" --config=tsan //core/...
fi
if want clang; then check "clang: layering_check and thread safety" tests/clang.sh; fi
if want reference; then check "reference: goldens against PyTorch" tests/reference.sh; fi
if want soak; then check "soak: 1,000 load/unload cycles" tests/soak/run.sh; fi
if want mutate; then check "mutate: each barrier and wait taken away" tests/mutate.sh; fi
if want fuzz; then check "fuzz: a minute each" tests/fuzz/run.sh; fi
if want fresh-machine; then
  check "fresh machine: Debian 12" tests/fresh-machine.sh bookworm
  check "fresh machine: Debian 13" tests/fresh-machine.sh trixie
fi
finish
