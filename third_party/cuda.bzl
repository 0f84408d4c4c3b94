"""Finds a CUDA toolkit on this machine. Nothing fails where there is none: device images are then left out, aloud.

Looked for, in this order: $MK_CUDA_HOME, /usr/local/cuda, and what deploy/cuda-toolkit.sh assembles below ~/.cache.
MK_CUDA_HOME=none stands for a machine without one.
The repository has a wrapper that runs the toolkit's nvcc where it stands, and `toolkit.bzl` with its version.

Beside a toolkit of 13.0 or newer, an older one makes code that older drivers read (those of JetPack 6 support CUDA 12.6): the
compiler library NVRTC, in $MK_NVRTC_HOME or where deploy/cuda-toolkit.sh puts it. Its images are left out where there is none.
"""

_LEAST = (12, 6)
_NVRTC = "nvidia-cuda-nvrtc-cu12-12.6.85"  # as in deploy/cuda-toolkit.sh
_NVRTC_VERSION = (12, 6)

def _version(ctx, home):
    """(major, minor) of the toolkit at `home`, or None."""
    if not ctx.path(home + "/bin/nvcc").exists:
        return None
    result = ctx.execute([home + "/bin/nvcc", "--version"])
    if result.return_code != 0:
        return None
    for line in result.stdout.splitlines():
        if "release " in line:
            numbers = line.split("release ")[1].split(",")[0].split(".")
            return (int(numbers[0]), int(numbers[1]))
    return None

def _cuda_toolkit_impl(ctx):
    env = ctx.os.environ
    cache = env.get("XDG_CACHE_HOME") or env.get("HOME", "/nonexistent") + "/.cache"
    homes = [env.get("MK_CUDA_HOME"), "/usr/local/cuda", cache + "/mergekernel-cuda/toolkit"]
    if env.get("MK_CUDA_HOME") == "none":
        homes = []
    found, version = "", (0, 0)
    for home in homes:
        if home and not found:
            v = _version(ctx, home)
            if v and v >= _LEAST:
                found, version = str(ctx.path(home).realpath), v
    if found:
        script = "#!/bin/sh\nexec '{}/bin/nvcc' \"$@\"\n".format(found)
    else:
        # buildifier: disable=print
        print("skipped: no CUDA toolkit of {}.{} or newer; images for GPUs are left out. deploy/cuda-toolkit.sh assembles one".format(*_LEAST))
        script = "#!/bin/sh\necho 'no CUDA toolkit was found' >&2\nexit 1\n"
    nvrtc = env.get("MK_NVRTC_HOME") or cache + "/mergekernel-nvrtc/" + _NVRTC
    if version <= _NVRTC_VERSION or not nvrtc.startswith("/") or not ctx.path(nvrtc + "/nvidia").exists:
        nvrtc = ""
    ctx.file("nvcc.sh", script, executable = True)
    ctx.file("toolkit.bzl", """CUDA_VERSION = {}  # (0, 0): none
NVRTC = {}  # the older toolkit's folder; "": none
NVRTC_VERSION = {}
""".format(repr(version), repr(nvrtc), repr(_NVRTC_VERSION if nvrtc else (0, 0))))
    ctx.file("BUILD", 'exports_files(["nvcc.sh"], visibility = ["//visibility:public"])\n')

cuda_toolkit = repository_rule(
    implementation = _cuda_toolkit_impl,
    environ = ["MK_CUDA_HOME", "MK_NVRTC_HOME", "HOME", "XDG_CACHE_HOME"],
    local = True,
)
