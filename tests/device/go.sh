#!/usr/bin/env bash
# Runs a bundle of tests/device/run.sh: see --help.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)

usage() {
  cat <<'U'
go.sh [--out DIR] [--device cuda|cuda:N|emulated] [--board NAME] [--minutes N]

Op tests on the device; compute-sanitizer over the small ones; whole models against the CPU; what the GPU gives at most, and
each kernel's share of it; PyTorch's operators beside, where a PyTorch with CUDA is. Ends with summary.md and summary.json in
DIR (default: device-out). Exit code 0 when nothing failed; what was left out is told and is no failure.
U
}

out=device-out device=cuda board= minutes=6
while (($#)); do
  case $1 in
    --out) out=${2:?--out needs a folder}; shift ;;
    --device) device=${2:?--device needs a name}; shift ;;
    --board) board=${2:?--board needs a name}; shift ;;
    --minutes) minutes=${2:?--minutes needs a number}; shift ;;
    --help | -h) usage; exit 0 ;;
    *) echo "go: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

mkdir -p "$out/tests" "$out/sanitizer" "$out/explain" || exit 1
out=$(cd "$out" && pwd)
cd "$here" || exit 1
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PATH=$PATH:/usr/local/cuda/bin
steps=$out/steps.tsv  # step, ok|failed|skipped, seconds, why
: >"$steps"
failed=0
left() { echo $((minutes * 60 - SECONDS)); }
note() {  # STEP WORD SECONDS [WHY]
  printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "${4-}" >>"$steps"
  printf '%-8s %s%s\n' "$2" "$1" "${4:+: $4}"
  if [[ $2 == failed ]]; then failed=1; fi
}
# step NAME LIMIT LOG COMMAND...
step() {
  local name=$1 limit=$2 log=$3 begin=$SECONDS
  shift 3
  if (($(left) < 5)); then note "$name" skipped 0 "the $minutes minutes are over"; return 1; fi
  ((limit > $(left))) && limit=$(left)
  timeout -k 5 "$limit" "$@" >"$log" 2>&1
  local code=$?
  if ((code == 0)); then
    note "$name" ok $((SECONDS - begin))
  elif ((code == 124 || code == 137)); then
    note "$name" failed $((SECONDS - begin)) "no end within $limit s"
  else
    note "$name" failed $((SECONDS - begin)) "exit code $code; $(grep -aE 'FAILED|rror|Failure' "$log" | head -n 1 | cut -c1-160)"
  fi
  return $code
}

{
  echo "date: $(date -u +%Y-%m-%dT%H:%MZ)"
  echo "device: $device"
  python3 -B -c 'import json, machine, sys
facts = machine.fingerprint()
print("system:", machine.describe(facts))
json.dump(facts, open(sys.argv[1], "w"), indent=1)' "$out/fingerprint.json"
  command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.limit,temperature.gpu --format=csv
  echo "commit: $(head -n 1 commit.txt)"
} >"$out/facts.txt" 2>/dev/null
cat "$out/facts.txt"
cp commit.txt "$out/"

# The first test tells whether there is a device at all.
export MK_OP_DEVICE=$device
if ! bin/roof_test --gtest_filter='Roof.RefusesByName' >"$out/tests/device.log" 2>&1; then
  cat "$out/tests/device.log" >&2
  echo "go: no device '$device' here; nothing was run" >&2
  exit 1
fi
for test in bin/*_test; do
  name=${test##*/}
  step "$name" 90 "$out/tests/$name.log" "$test"
done

if [[ $device == emulated ]]; then
  note compute-sanitizer skipped 0 "the device is emulated"
elif ! command -v compute-sanitizer >/dev/null; then
  note compute-sanitizer skipped 0 "it is not in PATH nor in /usr/local/cuda/bin"
else
  for tool in memcheck racecheck synccheck initcheck; do
    for name in roof_test softmax_f16_test global_average_pool_f16_test; do
      step "$tool $name" 40 "$out/sanitizer/$tool-$name.log" \
        compute-sanitizer --tool "$tool" --error-exitcode 9 "bin/$name"
    done
  done
fi

if [[ $device == emulated ]]; then
  note "whole models" skipped 0 "the device is emulated; packs/vmamba's device_test runs them there"
  note measurements skipped 0 "the device is emulated: its times say nothing"
else
  for on in cpu "$device"; do
    step "vmamba-pico on $on" 60 "$out/pico-$on.log" bash -c \
      "echo answers '$out/pico-$on.safetensors' | bin/pack_runner repository vmamba-pico golden/vmamba-pico.safetensors '$on' 1 && ! grep -q '\"failed\"' '$out/pico-$on.log'"
  done
  # Without a name for the board the launches are planned for one of about the same kind, and the predictions mean little.
  plan=${board:-h200}
  for pack in repository/*; do
    name=${pack##*/} input=()
    [[ $name == roof ]] && input=(--input X=1)
    step "measure $name" 90 "$out/explain/$name.log" bash -c \
      'bin/mk explain "$1" --board "$2" --measure "$3" --runs 50 --json --html "$4.html" "${@:5}" >"$4.json"' \
      - "$pack" "$plan" "$device" "$out/explain/$name" "${input[@]}"
  done
fi

if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  step "PyTorch beside" 120 "$out/torch.log" python3 torch_bench.py "$out/torch.json"
else
  note "PyTorch beside" skipped 0 "python3 has no PyTorch that sees a GPU"
fi

python3 report.py "$out" || failed=1
exit $failed
