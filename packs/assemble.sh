#!/bin/sh
# assemble.sh FOLDER LIBRARY MANIFEST [FILE...] -- [WEIGHTS...]
# Puts a pack's files into FOLDER and appends one `files` entry with its digest per file to the manifest.
set -eu
folder=$1 library=$2 manifest=$3
shift 3
mkdir -p "$folder"
out=$folder/manifest.textproto
cat "$manifest" > "$out"

# add SOURCE NAME KIND
add() {
  cp -f "$1" "$folder/$2"
  chmod 0644 "$folder/$2"
  digest=$(sha256sum "$folder/$2")
  printf 'files { name: "%s" sha256: "%s" kind: %s }\n' "$2" "${digest%% *}" "$3" >> "$out"
}

add "$library" pack.so SMALL
kind=SMALL
for file in "$@"; do
  if [ "$file" = -- ]; then
    kind=WEIGHTS
  else
    add "$file" "$(basename "$file")" "$kind"
  fi
done
