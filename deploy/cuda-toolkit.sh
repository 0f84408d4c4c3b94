#!/usr/bin/env bash
# cuda-toolkit.sh [--force]: assembles a CUDA compiler (nvcc 13.0) from the Python package index, without root, into
# ${XDG_CACHE_HOME:-~/.cache}/mergekernel-cuda, where the build finds it (third_party/cuda.bzl). Does nothing where a
# toolkit is already at hand. About 300 MB; no driver and no GPU are needed.
# Exit code 0: there is a toolkit. 1: none could be had, and why.
set -euo pipefail

# NVIDIA's own packages, pinned together: the compiler, its optimiser, its headers.
packages=(
  nvidia-cuda-nvcc==13.0.88
  nvidia-nvvm==13.0.88
  nvidia-cuda-crt==13.0.88
  nvidia-cuda-runtime==13.0.96
  nvidia-cuda-cccl==13.0.85
)
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

if [[ ${1-} != --force ]]; then
  for home in "${MK_CUDA_HOME:-}" /usr/local/cuda "$toolkit"; do
    if [[ -n $home ]] && release=$(works "$home"); then
      echo "cuda-toolkit: CUDA $release at $home"
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
python3 -m venv "$work/venv" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; die "no virtual environment could be made"; }
"$work/venv/bin/pip" install --disable-pip-version-check --no-deps --quiet --target "$work/packages" "${packages[@]}" \
  >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; die "the packages could not be had; the build leaves images for GPUs out"; }
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
