#!/usr/bin/env bash
# get-perf-analyzer.sh FOLDER: leaves FOLDER/perf_analyzer, a stock perf_analyzer that starts here. x86-64 only.
#
# Its wheel is built for a C library newer than Debian 12's, and pip would quietly install an empty placeholder instead.
# So the wheel is fetched for the platform that it names, and where this machine's C library is too old, the one of the
# next Debian release is unpacked beside it (never installed) and used for this one program.
set -euo pipefail

version=2.60.0
needs_glibc=2.38
folder=$(realpath -m "${1:?usage: get-perf-analyzer.sh FOLDER}")
here=$(dirname "$(realpath "$0")")
[[ $(uname -m) == x86_64 ]] || { echo "perf_analyzer is published for x86-64 alone"; exit 3; }
[[ -x $folder/perf_analyzer ]] && exec "$folder/perf_analyzer" --version
mkdir -p "$folder"

python3 -m pip download -q --no-deps --only-binary :all: --platform manylinux_2_38_x86_64 -d "$folder" \
  "perf-analyzer==$version" || { echo "perf_analyzer $version cannot be downloaded"; exit 3; }
python3 -m zipfile -e "$folder"/perf_analyzer-"$version"-*.whl "$folder/wheel"
program=$folder/wheel/perf_analyzer/bin/perf_analyzer
chmod +x "$program"

has_glibc=$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)
if [[ $(printf '%s\n' "$needs_glibc" "$has_glibc" | sort -V | head -1) == "$needs_glibc" ]]; then
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$program" >"$folder/perf_analyzer.new"
else
  "$here/unpack-newer-libraries.sh" "$folder/libraries" || exit 3
  libraries=$folder/libraries/usr/lib/x86_64-linux-gnu
  printf '#!/bin/sh\nexec "%s/ld-linux-x86-64.so.2" --library-path "%s" "%s" "$@"\n' "$libraries" "$libraries" "$program" \
    >"$folder/perf_analyzer.new"
fi
chmod +x "$folder/perf_analyzer.new"
"$folder/perf_analyzer.new" --version
# In place only now that it is known to start.
mv "$folder/perf_analyzer.new" "$folder/perf_analyzer"
