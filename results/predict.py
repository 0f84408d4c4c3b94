"""Predictions of `mk --json explain` as rows of verdict.csv, with their evidence. Standard library only; nothing is run here."""

from __future__ import annotations

import datetime
import json
import subprocess
from pathlib import Path

import schema

DIGITS = 2  # of a prediction: more would promise what a roofline does not keep
SUMMED = ("bytes", "flops", "tensor_flops", "predicted_us")
KEPT = ("source", "pack", "board", "inputs", "predicted_us", "roofline_us", "assumed_launch_us", "bytes", "flops", "tensor_flops",
        "weights_bytes", "scratch_peak_bytes", "rates")  # fmt: skip


class Refused(Exception):
    """Why predictions are not taken."""


def commit_of(root: Path) -> str:
    """Of the tree that predicted; "-" where git does not tell."""
    try:
        done = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return "-"
    return done.stdout.strip() if done.returncode == 0 else "-"


def milliseconds(microseconds: float) -> str:
    """Two digits that count: "0.94", "8.0", "12"."""
    value = microseconds / 1e3
    digits = max(0, DIGITS - 1 - int(f"{value:.0e}".partition("e")[2]))
    return f"{value:.{digits}f}"


def per_kernel(launches: list[dict]) -> list[dict]:
    """Sums over the launches of each kernel, the longest first."""
    sums: dict[str, dict] = {}
    for one in launches:
        own = sums.setdefault(one["kernel"], {"kernel": one["kernel"], "launches": 0, **dict.fromkeys(SUMMED, 0)})
        own["launches"] += 1
        for key in SUMMED:
            own[key] += one[key]
    return sorted(sums.values(), key=lambda own: -own["predicted_us"])


def row_of(one: dict, commit: str, evidence: str, note: str) -> dict[str, str]:
    """The row of one board."""
    shapes = ", ".join(f"{i['name']} {'x'.join(map(str, i['shape']))}" for i in one["inputs"])
    launch = one["assumed_launch_us"]
    counted = "launches themselves not counted" if launch == 0 else f"{launch:g} us assumed for each launch"
    basis = " and ".join(f"{name} {one['rates'][name + '_basis']}" for name in ("dram", "tensor"))
    text = (f"roofline of {len(one['launches'])} launches, {counted}; rates: {basis}; weights {one['weights_bytes'] / 2**20:.1f} MiB, scratch "
            f"{one['scratch_peak_bytes'] / 2**20:.1f} MiB")  # fmt: skip
    return {
        "platform": one["board"], "model": one["pack"].split(" ")[0], "level": "L4", "configuration": "pack", "source": "predicted", "verdict": "-",
        "reason": "-", "latency_ms": milliseconds(one["predicted_us"]), "statistic": "roofline", "p99_ms": "-", "per_second": "-",
        "peak_memory_mib": "-", "accuracy_metric": "-", "accuracy_value": "-", "shapes": shapes, "runtime": "mergekernel, no run", "jetpack": "-",
        "cuda": "-", "power_mode": "clocks of mk explain --boards", "date": datetime.date.today().isoformat(), "commit": commit,
        "evidence": evidence, "note": text + (f"; {note}" if note else ""),
    }  # fmt: skip


def add(root: Path, path: Path, rows: list[dict[str, str]], note: str) -> list[dict[str, str]]:
    """Puts the predictions of `path` (what `mk --json explain` printed for one pack and input) into verdict.csv, instead of rows with the same
    key, and what they rest on into results/evidence/. Returns all rows. Raises Refused and changes nothing where they are not fit."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        found = found if isinstance(found, list) else [found]
        if not found or any(one["source"] != "predicted" for one in found):
            raise Refused("it holds no predictions of `mk --json explain`")
        shapes = "-".join("x".join(map(str, i["shape"])) for i in found[0]["inputs"])
        place = f"results/evidence/predicted-{found[0]['pack'].replace(' ', '-')}-{shapes}"
        fresh = [row_of(one, commit_of(root), place, note) for one in found]
        kept = [{**{key: one[key] for key in KEPT}, "kernels": per_kernel(one["launches"])} for one in found]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"it is not what `mk --json explain` prints: {type(error).__name__}: {error}") from None
    if len({(one["pack"], str(one["inputs"])) for one in found}) != 1:
        raise Refused("it holds several packs or inputs")
    breaches = schema.breaches(fresh)
    if breaches:
        raise Refused("; ".join(f"{found[breach.line - 2]['board']}: {breach}" for breach in breaches))
    (root / place).mkdir(parents=True, exist_ok=True)
    (root / place / "explain.json").write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return schema.put(root / "results/verdict.csv", rows, fresh)
