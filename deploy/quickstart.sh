#!/usr/bin/env bash
# From a fresh Debian 12/13 or Ubuntu 24.04 to real answers: see --help.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'U'
deploy/quickstart.sh [--keep] [--dir FOLDER] [--no-install]

Installs what is missing (apt), builds the daemon, starts it on free ports with the trained pack vmamba-pico on the CPU,
sends it real photographs over gRPC, prints answers, latency and memory peak, and stops it.

  --keep         leave the daemon running; its addresses and how to stop it are printed
  --dir FOLDER   where programs, packs and pictures go (default: run)
  --no-install   install nothing; say what is missing
U
}

keep=0 dir=run install=1
while (($#)); do
  case $1 in
    --keep) keep=1 ;;
    --dir) dir=${2:?--dir needs a folder}; shift ;;
    --no-install) install=0 ;;
    --help | -h) usage; exit 0 ;;
    *) echo "quickstart: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

step() { printf '\n== %s\n' "$*"; }
pid=
stop_daemon() {
  [[ -n $pid ]] || return 0
  kill -TERM "$pid" 2>/dev/null || true
  local code=0
  wait "$pid" || code=$?
  pid=
  return "$code"
}
on_exit() {
  local code=$?
  if [[ -n $pid ]]; then stop_daemon || true; fi
  if ((code != 0)); then
    echo "quickstart: failed (code $code)" >&2
    if [[ -s $dir/daemon.log ]]; then
      echo "The end of the daemon's log:" >&2
      tail -n 15 "$dir/daemon.log" >&2
    fi
  fi
}
trap on_exit EXIT

if ((install)); then
  step "Packages"
  deploy/install-packages.sh deploy/packages.txt
  echo "all there"
fi

# Without it the packs carry no device code; they run on the CPU all the same, and the build says so.
step "CUDA compiler, for the packs' device code (no GPU is needed)"
if ((install)); then
  deploy/cuda-toolkit.sh || echo "left out: these packs will run on the CPU alone"
else
  echo "not looked for"
fi

step "Build (the first one takes several minutes)"
export HOME=${HOME:-/root}
flags=()
# Where the kernel lets no sandbox be made (a chroot, some containers), Bazel runs its actions without one.
unshare --user --mount true 2>/dev/null || flags+=(--spawn_strategy=local)
targets=(//server/main:mergekerneld //server/cli:mk //core/loader:mergekernel-probe
  //packs/vmamba:repository //packs/echo:repository)
started=$SECONDS
mkdir -p "$dir"
bazel build "${flags[@]}" "${targets[@]}" >"$dir/build.log" 2>&1 &
build=$!
while kill -0 "$build" 2>/dev/null; do
  if [[ -t 1 ]]; then printf '\r  building, %d s ' $((SECONDS - started)); fi
  sleep 1
done
wait "$build" || { tail -n 40 "$dir/build.log" >&2; exit 1; }
printf '\rbuilt in %d s        \n' $((SECONDS - started))

mkdir -p "$dir/bin" "$dir/packs"
install -m 0755 bazel-bin/server/main/mergekerneld bazel-bin/server/cli/mk bazel-bin/core/loader/mergekernel-probe "$dir/bin/"
for pack in vmamba/repository/vmamba-pico echo/repository/echo; do
  name=${pack##*/}
  rm -rf "$dir/packs/$name"
  cp -rL "bazel-bin/packs/$pack" "$dir/packs/$name"
  chmod -R u+w "$dir/packs/$name"
done

step "Start the daemon on free ports, CPU device"
rm -f "$dir/ready.json"
"$dir/bin/mergekerneld" --repository "$dir/packs" --load vmamba-pico --device cpu \
  --grpc-address 127.0.0.1:0 --metrics-address 127.0.0.1:0 --ready-file "$dir/ready.json" >"$dir/daemon.log" 2>&1 &
pid=$!
for ((i = 0; i < 600; ++i)); do
  [[ -s $dir/ready.json ]] && break
  kill -0 "$pid" 2>/dev/null || { pid=; echo "the daemon ended" >&2; exit 1; }
  sleep 0.1
done
[[ -s $dir/ready.json ]] || { echo "the daemon was not ready within 60 s" >&2; exit 1; }
read -r grpc metrics < <(python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print(d["grpc"], d["metrics"])' "$dir/ready.json")
mk() { "$dir/bin/mk" --address "$grpc" "$@"; }
mk status
mk packs

step "Classify ten real photographs (Fashion-MNIST test images; the file names tell what they are)"
python3 deploy/fashion_png.py "$dir/images" 10 >"$dir/images.txt"
mk infer vmamba-pico "$dir"/images/*.png --top 3

step "Latency and memory (measured here, on this CPU)"
mk bench vmamba-pico --shape image=28,28,1 --concurrency 1 --requests 500
python3 deploy/metrics_summary.py "$metrics" vmamba-pico

step "Next"
if ((keep)); then
  cat <<N
The daemon runs (process $pid): gRPC $grpc, metrics http://$metrics/metrics. Stop it with: kill $pid
  export MK_ADDRESS=$grpc
  $dir/bin/mk packs
  $dir/bin/mk infer vmamba-pico $dir/images/00-*.png
  $dir/bin/mk load echo && $dir/bin/mk bench echo --shape INPUT0=1024 --concurrency 1,8
N
  disown "$pid"
  pid=
else
  stop_daemon || { echo "the daemon did not stop cleanly" >&2; exit 1; }
  cat <<N
The daemon has stopped cleanly. What to type next:
  deploy/quickstart.sh --keep                        leave it running
  $dir/bin/mk --help                                 everything mk can do
  $dir/bin/mk doctor                                 this machine, checked
  $dir/bin/mergekerneld --help                       start one yourself
  docs/write-a-pack.md                               serve a model of your own
N
fi
