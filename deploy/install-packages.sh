#!/usr/bin/env bash
# install-packages.sh LIST...: installs what of the lists (see deploy/packages.txt) is missing, with apt. Says what it does.
set -euo pipefail

command -v apt-get >/dev/null || {
  echo "install-packages: this is no Debian or Ubuntu (no apt-get). Install by hand what these files list: $*" >&2
  exit 1
}

installed() { [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }
known() { [[ -n $(apt-cache policy "$1" 2>/dev/null | awk '/Candidate:/ && $2 != "(none)"') ]]; }

case $(dpkg --print-architecture) in
  amd64) skip=libopenblas-dev ;;  # oneDNN is the SGEMM there
  *) skip=libdnnl-dev ;;
esac

missing=()
while read -r entry _; do
  entry=${entry%%#*}
  [[ -n $entry && ${entry%\?} != "$skip" ]] || continue
  found=
  IFS='|' read -ra names <<<"${entry%\?}"
  for name in "${names[@]}"; do
    if installed "$name"; then found=yes; fi
  done
  [[ -n $found ]] || missing+=("$entry")
done < <(cat "$@")
((${#missing[@]})) || exit 0

root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || {
    echo "install-packages: missing: ${missing[*]}; run this as root, or install sudo" >&2
    exit 1
  }
  root=(sudo)
fi
echo "Installing with apt: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() {
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    echo "install-packages: '$*' failed" >&2
    exit 1
  }
}
run apt-get -qq update
chosen=()
for entry in "${missing[@]}"; do
  IFS='|' read -ra names <<<"${entry%\?}"
  pick=
  for name in "${names[@]}"; do
    if [[ -z $pick ]] && known "$name"; then pick=$name; fi
  done
  if [[ -n $pick ]]; then
    chosen+=("$pick")
  elif [[ $entry == *\? ]]; then
    echo "skipped: ${entry%\?} is not packaged for this distribution"
  else
    echo "install-packages: this distribution has no package $entry (Debian 12, 13 and Ubuntu 24.04 do)" >&2
    exit 1
  fi
done
((${#chosen[@]} == 0)) || run apt-get -qq install -y --no-install-recommends "${chosen[@]}"
