#!/usr/bin/env bash
# get-perf-analyzer.sh FOLDER: leaves FOLDER/perf_analyzer, a stock perf_analyzer that starts here. x86-64 only.
#
# Its wheel is built for a C library newer than Debian 12's, and pip would quietly install an empty placeholder instead.
# So the wheel is fetched for the platform that it names, and where this machine's C library is too old, the one of the
# next Debian release is unpacked beside it (never installed) and used for this one program.
#
# PYTHON: one that has pip; default python3. Exit code 3, the reason in the last line: it cannot be had here.
set -euo pipefail

version=2.60.0
needs_glibc=2.38
python=${PYTHON:-python3}
folder=$(realpath -m "${1:?usage: get-perf-analyzer.sh FOLDER}")
here=$(dirname "$(realpath "$0")")
[[ $(uname -m) == x86_64 ]] || { echo "perf_analyzer is published for x86-64 alone"; exit 3; }
[[ -x $folder/perf_analyzer ]] && exec "$folder/perf_analyzer" --version
mkdir -p "$folder"

if ! "$python" -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: \
  --platform manylinux_2_38_x86_64 -d "$folder" "perf-analyzer==$version" >"$folder/pip.log" 2>&1; then
  cat "$folder/pip.log"
  grep -q 'connection broken' "$folder/pip.log" || exit 1
  echo "the Python package index cannot be reached"
  exit 3
fi
"$python" -m zipfile -e "$folder"/perf_analyzer-"$version"-*.whl "$folder/wheel"
program=wheel/perf_analyzer/bin/perf_analyzer
chmod +x "$folder/$program"

has_glibc=$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)
if [[ $(printf '%s\n' "$needs_glibc" "$has_glibc" | sort -V | head -1) == "$needs_glibc" ]]; then
  start="\"\$here/$program\""
else
  "$here/unpack-newer-libraries.sh" "$folder/libraries"
  libraries=libraries/usr/lib/x86_64-linux-gnu
  start="\"\$here/$libraries/ld-linux-x86-64.so.2\" --library-path \"\$here/$libraries\" \"\$here/$program\""
fi
# It finds its parts by where it lies, so that the folder can be moved.
cat >"$folder/perf_analyzer.new" <<W
#!/bin/sh
here=\$(dirname "\$(realpath "\$0")")
exec $start "\$@"
W
chmod +x "$folder/perf_analyzer.new"
"$folder/perf_analyzer.new" --version
# In place only now that it is known to start.
mv "$folder/perf_analyzer.new" "$folder/perf_analyzer"
