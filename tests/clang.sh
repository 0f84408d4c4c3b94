#!/usr/bin/env bash
# Builds our own code with clang: -Wthread-safety, and layering_check, which refuses includes of targets that are not
# direct dependencies. clang's sanitizers cannot link packs with -z defs, so nothing is run here.
set -euo pipefail
cd "$(dirname "$0")/.."
compiler=$(command -v clang || command -v clang-19 || command -v clang-14) || {
  echo "clang is not installed (Debian: clang)"; exit 1; }
CC=$compiler bazel build --config=clang --repo_env=CC="$compiler" --noshow_progress -- //core/... //server/... //packs/... //kernels/...
