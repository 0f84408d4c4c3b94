#!/usr/bin/env bash
# Clients that others wrote, unmodified, against a daemon that it starts.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ ${1-} == --help || ${1-} == -h ]]; then
  cat <<'U'
tests/clients/run.sh    do stock clients work?

Builds, starts a daemon on a free port of the loopback, and lets tritonclient.grpc list, load, infer, count and unload,
with the same logits as `mk infer`, and perf_analyzer profile at concurrency 1 and 8. Both come from the Python package
index into .venv/ the first time. Where that cannot be reached it says `skipped` and why, and ends with 0; perf_analyzer
is published for x86-64 alone and skipped elsewhere. Under 90 seconds once built.
U
  exit 0
fi

venv=${MK_CLIENTS_VENV:-.venv/clients}
perf_analyzer=${MK_PERF_ANALYZER_DIR:-.venv/perf-analyzer}
requirements=tests/clients/requirements.txt

# The environment is complete when the requirements it was made from lie in it. 3: no index to be reached.
make_venv() {
  local log code=0
  cmp -s "$requirements" "$venv/made-from.txt" && return
  rm -rf "$venv"
  python3 -m venv "$venv" || return 1
  log=$(mktemp)
  "$venv/bin/pip" install -q --disable-pip-version-check --retries 1 -r "$requirements" >"$log" 2>&1 || code=1
  if ((code == 0)); then
    cp "$requirements" "$venv/made-from.txt"
  else
    cat "$log"
    ! grep -q 'connection broken' "$log" || code=3
  fi
  rm -f "$log"
  return "$code"
}

code=0
make_venv || code=$?
if ((code == 3)); then
  echo "skipped: tritonclient and perf_analyzer: the Python package index cannot be reached"
  exit 0
elif ((code)); then
  echo "FAILED  making the virtual environment $venv (Debian: python3-venv)"
  exit 1
fi

# shellcheck source=tests/clients/daemon.sh
source tests/clients/daemon.sh
build_daemon //server/cli:mk
start_daemon --load echo
failed=0
"$venv/bin/python" -B tests/clients/check_tritonclient.py --address "$address" --mk "$bin/server/cli/mk" \
  --packs "$work/packs" || failed=1

code=0
PYTHON=$venv/bin/python tests/clients/get-perf-analyzer.sh "$perf_analyzer" >"$work/perf-analyzer.log" 2>&1 || code=$?
if ((code == 0)); then
  python3 -B tests/clients/check_perf_analyzer.py --program "$(realpath "$perf_analyzer")/perf_analyzer" \
    --address "$address" || failed=1
elif ((code == 3)); then
  echo "skipped: perf_analyzer: $(tail -n 1 "$work/perf-analyzer.log")"
else
  cat "$work/perf-analyzer.log"
  echo "FAILED  get-perf-analyzer.sh ended with $code"
  failed=1
fi
stop_daemon || failed=1
exit "$failed"
