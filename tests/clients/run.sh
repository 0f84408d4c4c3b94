#!/usr/bin/env bash
# Stock clients against the real daemon: tritonclient lists, loads, infers and unloads; perf_analyzer profiles. Both come
# from PyPI into a virtual environment; where that cannot be reached, this says `skipped` and passes.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=.venv/clients
if [[ ! -x $venv/bin/python ]] || ! "$venv/bin/python" -c 'import tritonclient.grpc' 2>/dev/null; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q 'tritonclient[grpc]==2.73.0' 'numpy<3' ||
    { echo "skipped: tritonclient cannot be installed from PyPI here"; exit 0; }
fi

# shellcheck source=tests/clients/daemon.sh
source tests/clients/daemon.sh
build_daemon //server/cli:mk
start_daemon --load vmamba-pico --load echo
python3 deploy/fashion_png.py "$work/images" 1 >/dev/null
"$venv/bin/python" tests/clients/stock_client.py "$address" "$bin/server/cli/mk" "$work"/images/00-*.png

code=0
PATH=$PWD/$venv/bin:$PATH tests/clients/get-perf-analyzer.sh "$PWD/.venv/perf-analyzer" >"$work/perf.log" 2>&1 || code=$?
if ((code == 3)); then
  echo "skipped: perf_analyzer cannot be had here: $(tail -n 1 "$work/perf.log")"
elif ((code != 0)); then
  cat "$work/perf.log"
  exit 1
else
  # Of the pack's two ways to send a picture, this one alone: perf_analyzer would make up both.
  python3 -c 'import json; print(json.dumps({"data": [{"image": {"content": [i % 256 for i in range(784)], "shape": [28, 28, 1]}}]}))' \
    >"$work/image.json"
  for concurrency in 1 8; do
    # Counted requests: in its time windows this version keeps a copy of every request.
    .venv/perf-analyzer/perf_analyzer -m vmamba-pico -u "$address" -i grpc --input-data "$work/image.json" \
      --concurrency-range "$concurrency" --request-count 500 -s 999 -r 3 >"$work/perf.log" 2>&1 || { cat "$work/perf.log"; exit 1; }
    grep -E 'Throughput|Avg latency|p99 latency' "$work/perf.log" | sed "s/^ */perf_analyzer, concurrency $concurrency: /"
    grep -q 'Throughput: [1-9]' "$work/perf.log" || { cat "$work/perf.log"; exit 1; }
  done
fi
stop_daemon
