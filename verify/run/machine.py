"""The fingerprint of machine and software on every record, on a Jetson and on anything else. Standard library only.

Reads files below `root` and asks programs through `ask`, so that a test can give it a machine of its own. What cannot
be read is None: never guessed. No serial numbers, no host name, no user.
"""

from __future__ import annotations

import glob
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

ENVIRONMENT = re.compile(r"^(CUDA_|OMP_|OPENBLAS_|MKL_|TORCH|PYTORCH_|NVIDIA_|TRT_|MK_(?!PROGRAM))")


def ask(*argv: str) -> str | None:
    """The first 64 KiB of what a program prints; None where it is not there or fails."""
    try:
        done = subprocess.run(argv, capture_output=True, timeout=20, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout[:65536].decode(errors="replace") if done.returncode == 0 else None


def text(root: str, path: str) -> str | None:
    """A small file without zero bytes and spaces at its ends."""
    try:
        with open(root + path, "rb") as file:
            return file.read(65536).decode(errors="replace").replace("\0", " ").strip() or None
    except OSError:
        return None


def number(root: str, path: str) -> int | None:
    found = text(root, path)
    return int(found) if found and re.fullmatch(r"-?\d+", found) else None


def l4t_of(release: str | None) -> str | None:
    """"R36.4.3" of /etc/nv_tegra_release's first line, "# R36 (release), REVISION: 4.3, ..."."""
    found = re.search(r"R(\d+) \(release\), REVISION: ([\d.]+)", release or "")
    return f"R{found[1]}.{found[2]}" if found else None


# L4T -> JetPack, from NVIDIA's release pages. Only what is listed here is named; else L4T's own number stands.
JETPACKS = {
    "R39.2": "7.2", "R38.2": "7.0", "R36.4.4": "6.2.1", "R36.4.3": "6.2", "R36.4": "6.1", "R36.3": "6.0",
    "R35.6": "5.1.4", "R35.5": "5.1.3", "R35.4.1": "5.1.2",
}  # fmt: skip


def jetpack_of(l4t: str | None, package: str | None) -> str | None:
    """JetPack's version: that of the package nvidia-jetpack where it is installed, else by L4T."""
    if package:
        return package.split("+")[0].split("-")[0]
    return JETPACKS.get(re.sub(r"\.0$", "", l4t or "")) or JETPACKS.get(l4t or "")


def power_mode(query: str | None) -> str | None:
    """"MAXN (0)" of `nvpmodel -q`."""
    name = re.search(r"NV Power Mode:\s*(\S+)", query or "")
    ident = re.search(r"^\s*(\d+)\s*$", query or "", re.M)
    return f"{name[1]} ({ident[1]})" if name and ident else name[1] if name else None


def clocks(root: str = "") -> dict[str, int | None]:
    """What runs at how many hertz now: gpu_hz, emc_hz (the memory), cpu_hz (the slowest core). None: not readable."""
    found: dict[str, int | None] = {"gpu_hz": None, "emc_hz": None, "cpu_hz": None}
    for path in sorted(glob.glob(root + "/sys/class/devfreq/*/cur_freq")):
        value = number("", path)
        folder = path.split("/")[-2]
        if re.search(r"\.(ga10b|gb10b|gv11b|gpu|gpu-gpc-0)$|^gpu-gpc-0$|gpu", folder) and "nvd" not in folder:
            found["gpu_hz"] = value if found["gpu_hz"] is None else found["gpu_hz"]
        elif "emc" in folder:
            found["emc_hz"] = value
    if found["emc_hz"] is None:
        found["emc_hz"] = number(root, "/sys/kernel/debug/bpmp/debug/clk/emc/rate")
    if found["gpu_hz"] is None:
        line = ask("nvidia-smi", "--query-gpu=clocks.sm,clocks.mem", "--format=csv,noheader,nounits") if not root else None
        numbers = re.findall(r"\d+", (line or "").splitlines()[0]) if line else []
        if len(numbers) == 2:
            found["gpu_hz"], found["emc_hz"] = int(numbers[0]) * 10**6, int(numbers[1]) * 10**6
    cores = [number("", path) for path in glob.glob(root + "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq")]
    cores = [value * 1000 for value in cores if value]
    found["cpu_hz"] = min(cores) if cores else None
    return found


def pace(repeats: int = 7) -> float:
    """How fast this core works through fixed work just now, in rounds per second: the best of several short loops, so
    that it tells of clocks rather than of the other programs on the machine."""
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        total = 0
        for i in range(20000):
            total += i * i & 7
        best = min(best, time.perf_counter() - begin)
    return 1.0 / best


def temperatures(root: str = "") -> dict[str, float]:
    """Degrees Celsius by zone."""
    out = {}
    for folder in sorted(glob.glob(root + "/sys/class/thermal/thermal_zone*")):
        value, name = number("", folder + "/temp"), text("", folder + "/type")
        if value is not None and name:
            out[name] = value / 1000
    return out


def memory(root: str = "") -> dict[str, int]:
    """MemTotal, MemAvailable, SwapTotal, SwapFree in bytes."""
    lines = (text(root, "/proc/meminfo") or "").splitlines()
    wanted = ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree")
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.split(":")[0] in wanted}


def state(root: str = "", query=ask) -> dict:
    """What may change while levels run; taken before and after each."""
    return {
        "clocks": clocks(root),
        "power_mode": power_mode(query("nvpmodel", "-q")),
        "temperatures": temperatures(root),
        "load": (text(root, "/proc/loadavg") or "").split()[:3],
        "memory": memory(root),
    }


def _package(query, name: str) -> str | None:
    found = query("dpkg-query", "-W", "-f", "${Version}", name)
    return found.strip() if found and found.strip() else None


def _cpu(root: str) -> dict:
    lines = (text(root, "/proc/cpuinfo") or "").splitlines()

    def first(key: str) -> str | None:
        return next((line.split(":", 1)[1].strip() for line in lines if line.split(":")[0].strip() == key), None)

    flags = (first("flags") or first("Features") or "").split()
    known = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "asimdhp", "sve", "sve2", "bf16", "i8mm")
    return {
        "model": first("model name") or first("Model"),
        "part": first("CPU part"),
        "cores": sum(line.startswith("processor") for line in lines),
        "allowed": len(os.sched_getaffinity(0)),
        "flags": [flag for flag in known if flag in flags],
        "governor": text(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "hypervisor": "hypervisor" in flags,
    }


def fingerprint(root: str = "", query=ask, tree: Path | None = None) -> dict:
    """The machine and its software."""
    release = text(root, "/etc/nv_tegra_release")
    l4t = l4t_of(release)
    smi = query("nvidia-smi", "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader")
    gpu = [part.strip() for part in smi.splitlines()[0].split(",")] if smi and smi.strip() else []
    os_release = dict(line.split("=", 1) for line in (text(root, "/etc/os-release") or "").splitlines() if "=" in line)
    jetson_clocks = query("jetson_clocks", "--show")
    return {
        "board": text(root, "/proc/device-tree/model"),
        "compatible": (text(root, "/proc/device-tree/compatible") or "").split() or None,
        "architecture": platform.machine(),
        "os": os_release.get("PRETTY_NAME", "").strip('"') or None,
        "kernel": platform.release(),
        "l4t": l4t,
        "jetpack": jetpack_of(l4t, _package(query, "nvidia-jetpack")),
        "cpu": _cpu(root),
        "gpu": {"name": gpu[0], "sm": gpu[1].replace(".", ""), "driver": gpu[2]} if len(gpu) == 3 else None,
        "cuda": cuda_version(root, query),
        "tensorrt": _package(query, "libnvinfer-bin") or _package(query, "libnvinfer10") or _package(query, "libnvinfer8"),
        "cudnn": _package(query, "libcudnn9-cuda-12") or _package(query, "libcudnn9-cuda-13") or _package(query, "libcudnn8"),
        "jetson_clocks": jetson_clocks[:2000] if jetson_clocks else None,
        "fan": text(root, "/sys/devices/platform/pwm-fan/hwmon/hwmon0/pwm1"),
        "zram": bool(glob.glob(root + "/sys/block/zram*")),
        "container": bool(text(root, "/run/systemd/container")) or os.path.exists(root + "/.dockerenv"),
        "python": sys.version.split()[0],
        "environment": {k: v for k, v in sorted(os.environ.items()) if ENVIRONMENT.match(k)},
        "commit": commit(tree, query) if tree else None,
        "state": state(root, query),
    }


def cuda_version(root: str, query) -> str | None:
    """Of the toolkit or runtime that is installed."""
    for path in ("/usr/local/cuda/version.json",):
        found = re.search(r'"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"([\d.]+)"', text(root, path) or "")
        if found:
            return found[1]
    found = re.search(r"release ([\d.]+)", query("nvcc", "--version") or "")
    return found[1] if found else None


def commit(tree: Path, query=ask) -> str | None:
    """Of the checkout, "-dirty" behind it where tracked files differ."""
    head = query("git", "-C", str(tree), "rev-parse", "--short=12", "HEAD")
    if not head:
        return None
    dirty = query("git", "-C", str(tree), "status", "--porcelain", "--untracked-files=no")
    return head.strip() + ("-dirty" if dirty is None or dirty.strip() else "")


def platform_of(facts: dict, device: str) -> str:
    """The machine's name in verdict.csv (results/schema.py, PLATFORMS)."""
    board = (facts.get("board") or "").lower()
    total = facts["state"]["memory"].get("MemTotal", 0) / 2**30
    if device == "cpu":  # of a Jetson too: its GPU did nothing
        return "x86-64-cpu" if facts["architecture"] == "x86_64" else "aarch64-cpu"
    if "agx orin" in board:
        return "agx-orin-64gb" if total > 40 else "agx-orin"
    if "orin nx" in board:
        return "orin-nx-16gb" if total > 10 else "orin-nx-8gb"
    if "orin nano" in board:
        return "orin-nano-8gb" if total > 5 else "orin-nano"
    if "thor" in board:
        return "thor-t5000" if "t5000" in board or total > 100 else "thor-t4000" if "t4000" in board else "thor"
    if facts.get("gpu") and facts["gpu"]["sm"] == "90":
        return "gpu-sm90"
    return "gpu-other"


def describe(facts: dict) -> str:
    """One line for people."""
    parts = [facts.get("board") or facts["cpu"]["model"] or facts["architecture"]]
    if facts.get("jetpack"):
        parts.append(f"JetPack {facts['jetpack']}")
    elif facts.get("l4t"):
        parts.append(f"L4T {facts['l4t']}")
    if facts.get("gpu"):
        parts.append(facts["gpu"]["name"])
    parts.append(facts["state"]["power_mode"] or "no power modes")
    return ", ".join(parts)
