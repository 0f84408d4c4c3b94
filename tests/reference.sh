#!/usr/bin/env bash
# Regenerates every golden with PyTorch (packs/vmamba/train) and compares with the committed files; then every stage of
# VMamba Tiny at full size, square and not, against the reference.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${MK_REFERENCE_VENV:-.venv/reference}
if [[ ! -x $venv/bin/python ]]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q -r packs/vmamba/train/requirements.txt
fi
"$venv/bin/python" packs/vmamba/train/self_test.py
"$venv/bin/python" packs/vmamba/train/golden.py --check
bazel build -c opt //packs/vmamba/bench:forward
"$venv/bin/python" packs/vmamba/bench/parity.py
