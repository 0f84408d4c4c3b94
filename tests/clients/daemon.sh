# For scripts that need a running daemon; sourced from the top of the tree. Sets `work`, a temporary folder that goes
# when the script ends, and stops the daemon then.
#
#   build_daemon [TARGET]...       builds the daemon, its probe, both packs and the given targets; sets bin
#   start_daemon [FLAG]...         starts it on free ports over a copy of both packs; sets address metrics pid
#   stop_daemon                    SIGTERM; fails when the exit code is not 0
#
# BAZEL: how to call Bazel, for instance with another output base.
# shellcheck shell=bash

read -ra bazel <<<"${BAZEL:-bazel}"
work=$(mktemp -d)
pid=
# shellcheck disable=SC2154  # assigned here, used when the trap runs
trap 'code=$?; [[ -z $pid ]] || { kill "$pid" && wait "$pid"; } 2>/dev/null; rm -rf "$work"; exit $code' EXIT

build_daemon() {
  local sandbox=()
  # Where the kernel lets no sandbox be made (a chroot, some containers), Bazel runs its actions without one.
  unshare --user --mount true 2>/dev/null || sandbox=(--spawn_strategy=local)
  "${bazel[@]}" build --noshow_progress "${sandbox[@]}" //server/main:mergekerneld //core/loader:mergekernel-probe \
    //packs/echo:repository //packs/vmamba:repository "$@" >"$work/build.log" 2>&1 ||
    { cat "$work/build.log" >&2; return 1; }
  bin=$("${bazel[@]}" info bazel-bin 2>/dev/null)
}

start_daemon() {
  mkdir -p "$work/packs"
  # Copies: the build's outputs are read-only, and a repository is a place that changes.
  cp -rL "$bin/packs/echo/repository/echo" "$bin/packs/vmamba/repository/vmamba-pico" "$work/packs"
  chmod -R u+w "$work/packs"
  "$bin/server/main/mergekerneld" --repository "$work/packs" --probe-path "$bin/core/loader/mergekernel-probe" \
    --grpc-address 127.0.0.1:0 --metrics-address 127.0.0.1:0 --ready-file "$work/ready.json" "$@" \
    2>"$work/daemon.log" &
  pid=$!
  local waited
  for ((waited = 0; waited < 300; waited++)); do
    [[ -e $work/ready.json ]] && break
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  [[ -e $work/ready.json ]] || { echo "the daemon did not become ready:"; cat "$work/daemon.log"; return 1; } >&2
  address=$(ready_field grpc)
  # shellcheck disable=SC2034  # for the scripts that source this
  metrics=$(ready_field metrics)
}

ready_field() {
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$work/ready.json" "$1"
}

stop_daemon() {
  local stopped=$pid code=0
  pid=
  kill "$stopped" || true
  wait "$stopped" || code=$?
  ((code == 0)) || { echo "the daemon ended with $code:"; tail -n 30 "$work/daemon.log"; return 1; } >&2
}
