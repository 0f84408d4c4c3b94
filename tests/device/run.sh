#!/usr/bin/env bash
# Everything that a GPU can say about this project, in one short run: see --help.
set -euo pipefail
cd "$(dirname "$0")/../.."

usage() {
  cat <<'U'
tests/device/run.sh [OPTION]...    run the op tests, models and measurements on a real GPU

Builds a bundle (a folder that needs nothing but a driver, glibc and python3), and runs it here where there is a GPU. On a
board that cannot build, or a machine that is lent for minutes: build the bundle elsewhere with --bundle-only, copy the
folder over, and start its go.sh. Six minutes at most; what it finds is in one folder that can be sent back.

  --bundle DIR       where the bundle goes (default: device-bundle)
  --bundle-only      build it, run nothing
  --pack DIR         also take along this pack (REPOSITORY/NAME); repeatable: larger models that were imported
  --board NAME       what the GPU is, as `mk explain --boards` names it; with it every launch is held against its prediction
  --gputest          also machine code for sm_90 (H100, H200), beside that for the boards
  --out DIR          results (default: device-out)
  --device NAME      cuda (default), cuda:1, or emulated: the same steps without a GPU, timings left out
U
}

bundle=device-bundle out=device-out only=0 packs=() flags=() board= device=cuda
while (($#)); do
  case $1 in
    --bundle) bundle=${2:?--bundle needs a folder}; shift ;;
    --bundle-only) only=1 ;;
    --pack) packs+=("${2:?--pack needs a folder}"); shift ;;
    --board) board=${2:?--board needs a name}; shift ;;
    --gputest) flags+=(--config=gputest) ;;
    --out) out=${2:?--out needs a folder}; shift ;;
    --device) device=${2:?--device needs a name}; shift ;;
    --help | -h) usage; exit 0 ;;
    *) echo "device: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
for pack in "${packs[@]}"; do
  compgen -G "$pack/*/manifest.textproto" >/dev/null || { echo "device: '$pack' is no pack's folder" >&2; exit 2; }
done

deploy/cuda-toolkit.sh
unshare --user --mount true 2>/dev/null || flags+=(--spawn_strategy=local)
echo "device: building"
mapfile -t tests < <(bazel query --noshow_progress 'kind(cc_test, rdeps(//kernels/..., //kernels/testing:op_context, 1))' 2>/dev/null |
  grep -v ':op_context_test$')
((${#tests[@]})) || { echo "device: no op tests were found" >&2; exit 1; }
programs=(//server/cli:mk //core/loader:mergekernel-probe //verify/pack:pack_runner)
bazel build "${flags[@]}" "${tests[@]}" "${programs[@]}" //packs/roof:repository //packs/vmamba:repository

rm -rf "$bundle"
mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/repository" "$bundle/golden" "$bundle/packs/vmamba/golden"
take() {  # a program and the libraries it needs, the C library's own apart
  install -m 0755 "$1" "$bundle/bin/"
  strip "$bundle/bin/${1##*/}"
  ldd "$1" | awk '$3 ~ "^/" {print $1, $3}' | while read -r name path; do
    case $name in
      libc.so* | libm.so* | libdl.so* | librt.so* | libpthread.so* | libresolv.so*) continue ;;
    esac
    [[ -e $bundle/lib/$name ]] || { install -m 0644 "$(readlink -f "$path")" "$bundle/lib/$name"; strip --strip-unneeded "$bundle/lib/$name"; }
  done
}
for target in "${tests[@]}" "${programs[@]}"; do
  path=${target#//}
  take "bazel-bin/${path/://}"
done
for pack in bazel-bin/packs/roof/repository/roof bazel-bin/packs/vmamba/repository/vmamba-pico "${packs[@]}"; do
  cp -rL "$pack" "$bundle/repository/"
done
chmod -R u+w "$bundle"
cp packs/vmamba/golden/ops.safetensors "$bundle/packs/vmamba/golden/"  # where the op tests look for it
cp packs/vmamba/pico/golden.safetensors "$bundle/golden/vmamba-pico.safetensors"
cp tests/device/go.sh tests/device/report.py tests/device/torch_bench.py verify/run/tensors.py verify/run/compare.py verify/run/machine.py "$bundle/"
{ git rev-parse HEAD 2>/dev/null || echo unknown; git status --porcelain 2>/dev/null | sed 's/^/changed: /' | head -n 20; } >"$bundle/commit.txt"
echo "device: $bundle, $(du -sh "$bundle" | cut -f1)"
((only)) && exit 0
exec "$bundle/go.sh" --out "$out" --device "$device" ${board:+--board "$board"}
