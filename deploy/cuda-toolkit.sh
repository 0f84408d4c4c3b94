#!/usr/bin/env bash
# cuda-toolkit.sh [--force]: assembles a CUDA compiler (nvcc 13.0) from the Python package index, without root, into
# ${XDG_CACHE_HOME:-~/.cache}/mergekernel-cuda, where the build finds it (third_party/cuda.bzl). Does nothing where a
# toolkit is already at hand. About 300 MB; no driver and no GPU are needed. Beside a toolkit that is newer, also NVRTC of
# CUDA 12.6, into .../mergekernel-nvrtc: it makes the code that the drivers of JetPack 6 read. About 50 MB.
# Exit code 0: there is a toolkit (without NVRTC packs have no code for JetPack 6, which is said). 1: none could be had, and why.
set -euo pipefail

# NVIDIA's own packages, pinned together: the compiler, its optimiser, its headers.
packages=(
  nvidia-cuda-nvcc==13.0.88
  nvidia-nvvm==13.0.88
  nvidia-cuda-crt==13.0.88
  nvidia-cuda-runtime==13.0.96
  nvidia-cuda-cccl==13.0.85
)
nvrtc_package=nvidia-cuda-nvrtc-cu12==12.6.85  # as in third_party/cuda.bzl
nvrtc_cache=${XDG_CACHE_HOME:-$HOME/.cache}/mergekernel-nvrtc
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mergekernel-cuda
toolkit=$cache/toolkit

die() { echo "cuda-toolkit: $*" >&2; exit 1; }

# Compiles a kernel, which takes every part of the toolkit; prints the release.
works() {
  local nvcc=$1/bin/nvcc log
  [[ -x $nvcc ]] || return 1
  log=$(mktemp -d)
  echo 'extern "C" __global__ void probe(float* p) { p[threadIdx.x] = 1.0f; }' >"$log/probe.cu"
  if "$nvcc" -cubin -arch=sm_87 -o "$log/probe.cubin" "$log/probe.cu" >"$log/out" 2>&1 && [[ -s $log/probe.cubin ]]; then
    "$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'
    rm -rf "$log"
    return 0
  fi
  rm -rf "$log"
  return 1
}

# pip_target FOLDER LOG PACKAGE...: unpacks them below FOLDER.
pip_target() {
  local target=$1 log=$2 venv
  shift 2
  command -v python3 >/dev/null || { echo "python3 is missing" >"$log"; return 1; }
  venv=$(mktemp -d)
  { python3 -m venv "$venv" && "$venv/bin/pip" install --disable-pip-version-check --no-deps --quiet --target "$target" "$@"; } >"$log" 2>&1
  local code=$?
  rm -rf "$venv"
  return $code
}

older() {
  local folder=$nvrtc_cache/${nvrtc_package/==/-} fresh
  if [[ -d $folder/nvidia ]]; then echo "cuda-toolkit: NVRTC of CUDA 12.6 at $folder"; return; fi
  mkdir -p "$nvrtc_cache"
  fresh=$(mktemp -d "$nvrtc_cache/new.XXXXXX")
  echo "cuda-toolkit: fetching $nvrtc_package"
  if pip_target "$fresh/packages" "$fresh/log" "$nvrtc_package"; then
    mv "$fresh/packages" "$folder"
    echo "cuda-toolkit: NVRTC of CUDA 12.6 at $folder"
  else
    tail -n 3 "$fresh/log" >&2
    echo "cuda-toolkit: without NVRTC of CUDA 12.6 packs have no code that drivers of JetPack 6 read" >&2
  fi
  rm -rf "$fresh"
}

if [[ ${1-} != --force ]]; then
  for home in "${MK_CUDA_HOME:-}" /usr/local/cuda "$toolkit"; do
    if [[ -n $home ]] && release=$(works "$home"); then
      echo "cuda-toolkit: CUDA $release at $home"
      [[ ${release%%.*} -lt 13 ]] || older
      exit 0
    fi
  done
fi

command -v python3 >/dev/null || die "python3 is missing"
python3 -m venv --help >/dev/null 2>&1 || die "python3-venv is missing"
case $(uname -m) in
  x86_64 | aarch64) ;;
  *) die "no such packages for $(uname -m)" ;;
esac

mkdir -p "$cache"
work=$(mktemp -d "$cache/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "cuda-toolkit: fetching ${packages[*]}"
pip_target "$work/packages" "$work/log" "${packages[@]}" ||
  { tail -n 20 "$work/log" >&2; die "the packages could not be had; the build leaves images for GPUs out"; }
home=$work/packages/nvidia/cu13
[[ -d $home/bin ]] || die "the packages have another layout than expected: no nvidia/cu13/bin"
# Archives drop permissions in some versions of pip.
chmod -R u+x "$home/bin" "$home/nvvm/bin" 2>/dev/null || true
release=$(works "$home") || die "the compiler from the packages does not run here"
rm -rf "$toolkit.old"
[[ ! -e $toolkit ]] || mv "$toolkit" "$toolkit.old"
mv "$home" "$toolkit"
rm -rf "$toolkit.old"
works "$toolkit" >/dev/null || die "the compiler does not run from $toolkit"
echo "cuda-toolkit: CUDA $release at $toolkit"
older
