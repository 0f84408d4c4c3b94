#!/usr/bin/env bash
# The one command for a board: see --help.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'U'
verify/verify_official.sh [OPTION]... [MODEL]...

What does the official path (torch.compile, TensorRT) make of the models on this board, and what do ours? Builds what is
missing, runs `mk verify` for each MODEL (default: all that are known), and packs what is to be sent back. Interrupted, it goes
on where it was: type the same command again. Changes nothing on the board but below --out and this folder's build.

  --out DIR          results (default: verify-out)
  --python PROGRAM   a Python that has PyTorch, for level 1 (default: python3)
  --trtexec PROGRAM  TensorRT's trtexec (default: PATH, then /usr/src/tensorrt/bin)
  --device cpu|cuda  (default: cuda on a Jetson)
  --levels L1,L4     some levels only
  --no-build         use what is built
  --clocks           lock the clocks first (sudo jetson_clocks) and give them back afterwards
  --dry-run          print the steps, do nothing
U
}

out=verify-out build=1 clocks=0 dry=0 models=() more=()
while (($#)); do
  case $1 in
    --out) out=${2:?--out needs a folder}; shift ;;
    --python | --trtexec | --device | --levels) more+=("$1" "${2:?$1 needs a value}"); shift ;;
    --no-build) build=0 ;;
    --clocks) clocks=1 ;;
    --dry-run) dry=1 ;;
    --help | -h) usage; exit 0 ;;
    -*) echo "verify_official: unknown option $1" >&2; usage >&2; exit 2 ;;
    *) models+=("$1") ;;
  esac
  shift
done

total=0 done_steps=0 started=$SECONDS
step() {
  done_steps=$((done_steps + 1))
  printf '\n== %d/%d  %s  (%d min so far)\n' "$done_steps" "$total" "$1" $(((SECONDS - started) / 60))
}
run() {
  if ((dry)); then printf 'would run: %s\n' "$*"; else "$@"; fi
}

command -v python3 >/dev/null || { echo "verify_official: python3 is missing" >&2; exit 1; }
if ((${#models[@]} == 0)); then
  mapfile -t models < <(python3 -B verify/run/main.py --list | cut -d: -f1)
fi
total=$((${#models[@]} + build + clocks + 1))

stored=$out/clocks.before
give_clocks_back() {
  if ((clocks && !dry)) && [[ -s $stored ]]; then sudo jetson_clocks --restore "$stored" || true; fi
}
trap give_clocks_back EXIT
mkdir -p "$out"

if ((build)); then
  step "Build (the first one takes long on a board; it goes on where it was)"
  flags=()
  unshare --user --mount true 2>/dev/null || flags+=(--spawn_strategy=local)
  run bazel build "${flags[@]}" //verify/pack:pack_runner //server/cli:mk //packs/vmamba:repository
fi

if ((clocks)); then
  step "Lock the clocks"
  if command -v jetson_clocks >/dev/null; then
    run sudo jetson_clocks --store "$stored"
    run sudo jetson_clocks
  else
    echo "skipped: there is no jetson_clocks here"
  fi
elif command -v jetson_clocks >/dev/null; then
  echo "note: clocks are left as they are; --clocks locks them, and without that the words may be 'inconclusive'"
fi

failed=()
for model in "${models[@]}"; do
  step "$model"
  code=0
  MK_PROGRAM=$PWD/bazel-bin/server/cli/mk run python3 -B verify/run/main.py "$model" --out "$out/$model" "${more[@]}" || code=$?
  if ((code == 130)); then
    echo "verify_official: interrupted; the same command goes on"
    exit 130
  fi
  ((code == 0)) || failed+=("$model (exit code $code)")
done

step "Pack what is to be sent back"
archive=$out/send-back.tar.gz
present=()
for model in "${models[@]}"; do
  [[ -d $out/$model ]] && present+=("$model")
done
if ((dry)); then
  echo "would write: $archive"
elif ((${#present[@]})); then
  tar -C "$out" --exclude=work -czf "$archive.new" "${present[@]}"
  mv "$archive.new" "$archive"
  printf '%s: %s, without engines and weights. Look into it before you send it: it names the board, its software and clocks,\n' \
    "$archive" "$(du -h "$archive" | cut -f1)"
  echo "and no serial number, host name or user. Where to: docs/HANDOFF.md, section 5."
fi
if ((${#failed[@]})); then
  printf 'not judged: %s\n' "${failed[@]}"
  exit 1
fi
