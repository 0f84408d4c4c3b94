#!/usr/bin/env bash
# Measures `mk import vmamba` at the published sizes. On demand; nothing is asserted.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ ${1-} == --help || ${1-} == -h ]]; then
  cat <<'U'
tests/bench/import.sh [--size tiny|small|base] [--runs N] [--folder DIR]

Builds mk, writes a safetensors file of that size with random weights into DIR (default: a temporary folder, removed at
the end), imports it N times (default 5), and prints for each run the time, the rate, the largest resident memory of mk
and its idle one (that of `mk --help`). The file is in the page cache; what is written is synced to the disk before the
import ends, so the disk counts. A line with the machine's own rates of SHA-256 and of copying stands beside it.
U
  exit 0
fi
flags=()
unshare --user --mount true 2>/dev/null || flags+=(--spawn_strategy=local)
bazel build "${flags[@]}" //server/cli:mk //packs/vmamba:vmamba.so >/dev/null 2>&1 || { echo "the build failed: bazel build //server/cli:mk" >&2; exit 1; }
exec python3 tests/bench/import_bench.py --mk bazel-bin/server/cli/mk --pack bazel-bin/packs/vmamba/vmamba.so "$@"
