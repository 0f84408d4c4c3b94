#!/usr/bin/env bash
# unpack-newer-libraries.sh FOLDER: the run-time libraries of Debian 13 that perf_analyzer needs, unpacked into FOLDER.
# Installs nothing and leaves the system's apt as it is: lists, cache and sources are all below FOLDER. They come from
# the mirror that this machine's own sources name, checked against Debian's archive keys.
set -euo pipefail

release=trixie
packages=(libc6 libstdc++6 libgcc-s1 libssl3t64 zlib1g libzstd1)
folder=$(realpath -m "${1:?usage: unpack-newer-libraries.sh FOLDER}")
keys=/usr/share/keyrings/debian-archive-keyring.gpg

mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
  grep -v '^[[:space:]]*#' | grep -oE '(https?|mirror\+file|file):[^ ]*/debian/?( |$)' | head -1 | tr -d ' ') || true
[[ -n $mirror ]] || { echo "this machine's apt sources name no Debian mirror"; exit 3; }
[[ -r $keys ]] || { echo "the Debian archive keys are not installed (debian-archive-keyring)"; exit 3; }

apt_folder=$folder/apt
mkdir -p "$apt_folder/lists/partial" "$apt_folder/cache/archives/partial"
echo "deb [signed-by=$keys] $mirror $release main" >"$apt_folder/sources.list"
apt=(apt-get -qq
  -o "Dir::Etc::SourceList=$apt_folder/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o "Dir::State::Lists=$apt_folder/lists" -o "Dir::Cache=$apt_folder/cache" -o "APT::Sandbox::User=$(id -un)")
"${apt[@]}" update || { echo "the mirror's lists of $release cannot be read"; exit 3; }
(cd "$apt_folder" && "${apt[@]}" download "${packages[@]}") || { echo "libraries cannot be downloaded"; exit 3; }
for package in "$apt_folder"/*.deb; do dpkg-deb -x "$package" "$folder"; done
rm -rf "$apt_folder"
