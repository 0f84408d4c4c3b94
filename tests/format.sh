#!/bin/sh
# Formats the tree's C and C++ in place; with --check, fails with a diff where something would change.
set -eu
cd "$(dirname "$0")/.."
# One major version for everyone: newer ones lay out some lines differently.
tool=clang-format-14
command -v "$tool" >/dev/null || { echo "skipped: $tool is not packaged here; Debian 12 has it"; exit 0; }
files=$(git ls-files '*.h' '*.cc' '*.c' '*.cu')
if [ "${1-}" = --check ]; then
  # shellcheck disable=SC2086
  "$tool" --dry-run --Werror $files
else
  # shellcheck disable=SC2086
  "$tool" -i $files
fi
