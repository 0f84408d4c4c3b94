#!/usr/bin/env bash
# Measures packs in-process and through a daemon that it starts. On demand; nothing is asserted.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ ${1-} == --help || ${1-} == -h ]]; then
  cat <<'U'
tests/bench/run.sh [FLAG]...    latency and throughput, in-process and over gRPC

Builds, starts a daemon with the packs echo and vmamba-pico on a free port of the loopback, runs serving_bench against
it with the given flags, and stops it. Ends with what the daemon adds to a pack's own latency. About a minute and a half.

  tests/bench/run.sh                                  echo, 1 KiB and 1 MiB, concurrency 1, 8, 32
  tests/bench/run.sh --cases vmamba-pico              images per second
  tests/bench/run.sh --rounds 5 --json figures.json   also as JSON, every round
  tests/bench/run.sh --messages                       the client makes protobuf messages, as ordinary clients do

All flags: bazel run //tests/bench:serving_bench -- --help
U
  exit 0
fi

# shellcheck source=tests/clients/daemon.sh
source tests/clients/daemon.sh
build_daemon //tests/bench:serving_bench
start_daemon --load echo --load vmamba-pico
"$bin/tests/bench/serving_bench" --repository "$work/packs" --ready-file "$work/ready.json" \
  --commit "$(git rev-parse --short HEAD 2>/dev/null || true)" "$@"
stop_daemon
