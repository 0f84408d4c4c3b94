#!/usr/bin/env bash
# fresh-machine.sh SUITE [FOLDER]: types both commands of the README in a fresh debootstrap root (bookworm, trixie), on a
# clone of what is committed. Needs root. --quickstart-only as third argument leaves the tests out.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${1:?usage: fresh-machine.sh SUITE [FOLDER] [--quickstart-only]}
folder=${2:-$(mktemp -d /var/tmp/mk-fresh-XXXXXX)}
((EUID == 0)) || { echo "fresh-machine: needs root"; exit 1; }
command -v debootstrap >/dev/null || apt-get -qq install -y --no-install-recommends debootstrap
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -1 | tr -d ' ') || true
: "${mirror:?no Debian mirror was found in the apt sources}"

mkdir -p "$folder"
root=$folder/$suite
# The mounts go first, always: a folder removed with /proc still bound would take the machine's with it.
cleanup() {
  chroot "$root" /bin/sh -c 'cd /src 2>/dev/null && command -v bazel >/dev/null && bazel shutdown' >/dev/null 2>&1 || true
  for mount in dev proc; do umount -l "$root/$mount" 2>/dev/null || true; done
  if ! grep -q " $root/" /proc/mounts; then rm -rf --one-file-system "$root"; fi
}
trap cleanup EXIT
debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$folder/debootstrap-$suite.log" 2>&1 ||
  { tail -n 20 "$folder/debootstrap-$suite.log"; exit 1; }
# A real machine has the distribution's own sources; here they and the way to them are the host's.
cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
# Authorities of the host's own, where its way to the network needs them; the package ca-certificates takes them up.
mkdir -p "$root/usr/local/share/ca-certificates"
cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
mount --bind /proc "$root/proc"
mount --bind /dev "$root/dev"
git clone -q . "$root/src"
inside() { chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$@"; }

echo "== $suite: deploy/quickstart.sh"
inside bash -c 'cd /src && deploy/quickstart.sh'
if [[ ${3-} != --quickstart-only ]]; then
  echo "== $suite: tests/run.sh"
  inside bash -c 'cd /src && apt-get -qq install -y --no-install-recommends git >/dev/null && tests/run.sh'
fi
