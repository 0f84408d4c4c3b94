#!/usr/bin/env bash
# 1,000 cycles of load, infer and unload through a daemon that it starts; fails when the daemon grew.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ ${1-} == --help || ${1-} == -h ]]; then
  cat <<'U'
tests/soak/run.sh [FLAG]...    does a daemon that loads and unloads packs stay as it is?

Builds, starts a daemon on a free port of the loopback, and loads, uses and unloads the packs echo and vmamba-pico in
each cycle. Prints resident memory, descriptors, threads, mappings and child processes at first (after the tenth cycle)
and at the end, their slopes, and how much they grew over the second half, which decides: exit code 1 when that is more
than allowed. About 80 seconds for 1,000 cycles.

  tests/soak/run.sh                              1,000 cycles
  tests/soak/run.sh --cycles 50                  a short one
  tests/soak/run.sh --packs echo --csv soak.csv  one pack, and every reading as CSV

All flags: bazel run //tests/soak:soak -- --help
U
  exit 0
fi

# shellcheck source=tests/clients/daemon.sh
source tests/clients/daemon.sh
build_daemon //tests/soak:soak
# The hundreds of lines a thousand loads log are of no use here.
start_daemon --log-level warning
"$bin/tests/soak/soak" --ready-file "$work/ready.json" "$@"
stop_daemon
