"""The folder of one run: what it was asked, its records, logs, and rows for results/verdict.csv. Standard library only.

  run.json       model, options, fingerprint: a folder is continued only by the same
  records.json   one record a level and configuration; rewritten whole, in one step, after each
  logs/          what every child said
  rows.csv       in the format of results/verdict.csv
  summary.txt    for people
  work/          ONNX, engines, answers: large, not to be sent
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import schema  # results/

TREE = Path(__file__).absolute().parent.parent.parent
SAME = ("model", "shapes", "platform", "stack", "device", "threads", "golden_sha256", "commit")


class Refused(ValueError):
    """Why a folder cannot be used."""


class Folder:
    """Opens or continues `path`. `about` holds at least the keys of SAME."""

    def __init__(self, path: Path, about: dict):
        self.path, self.about = path, about
        self.records: list[dict] = []
        known = path / "run.json"
        if known.exists():
            before = json.loads(known.read_text(encoding="utf-8"))
            differ = [key for key in SAME if before.get(key) != about.get(key)]
            if differ:
                what = ", ".join(f"{key} {before.get(key)!r} there, {about.get(key)!r} now" for key in differ)
                raise Refused(f"{path} was begun by another run ({what}); take another --out")
            if (path / "records.json").exists():
                self.records = json.loads((path / "records.json").read_text(encoding="utf-8"))
        elif path.exists() and any(path.iterdir()):
            raise Refused(f"{path} has files in it that are no run of this; take another --out")
        for name in ("", "logs", "work"):
            (path / name).mkdir(parents=True, exist_ok=True)
        self._replace("run.json", about)

    def log(self, name: str) -> Path:
        return self.path / "logs" / f"{name}.log"

    def work(self, name: str) -> Path:
        return self.path / "work" / name

    def find(self, level: str, configuration: str) -> dict | None:
        """The record of an earlier run."""
        for record in self.records:
            if (record["level"], record["configuration"]) == (level, configuration):
                return record
        return None

    def keep(self, record: dict) -> dict:
        """Adds a record, instead of one of the same level and configuration, and writes all."""
        key = (record["level"], record["configuration"])
        self.records = [r for r in self.records if (r["level"], r["configuration"]) != key] + [record]
        self.records.sort(key=lambda r: (r["level"], r["configuration"]))
        self._replace("records.json", self.records)
        return record

    def forget(self, level: str) -> None:
        """Drops the records of a level."""
        self.records = [r for r in self.records if r["level"] != level]

    def _replace(self, name: str, value) -> None:
        fresh = self.path / (name + ".new")
        fresh.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
        fresh.replace(self.path / name)


def name_of(about: dict) -> str:
    """A name for the evidence of a run that no other machine, software or commit has."""
    told = json.dumps([about[key] for key in SAME], sort_keys=True)
    return f"{about['model']}-{about['platform']}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"


def scrub(folder: Path) -> None:
    """Takes the places of this machine out of everything that is sent back: its tree and its users' folders."""
    for path in [*folder.glob("*.json"), *folder.glob("*.txt"), *folder.glob("logs/*.log")]:
        text = path.read_text(encoding="utf-8", errors="replace")
        clean = re.sub(r"/(?:home/[^/\s\"']+|root)(?=[/\s\"':]|$)", "~", text.replace(str(TREE) + "/", ""))
        if clean != text:
            path.write_text(clean, encoding="utf-8")


def digest(path: Path | None) -> str:
    """SHA-256 of a file; "" for none."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else ""


def stack_of(facts: dict) -> str:
    """The software a word holds for: JetPack (or L4T, or the system), CUDA, TensorRT, of a fingerprint."""
    system = f"JetPack {facts['jetpack']}" if facts.get("jetpack") else f"L4T {facts['l4t']}" if facts.get("l4t") else facts["os"]
    parts = [system or "system not told"]
    for key, name in (("cuda", "CUDA"), ("tensorrt", "TensorRT")):
        if facts.get(key):
            parts.append(f"{name} {facts[key]}")
    return ", ".join(parts)


def _cell(value) -> str:
    text = " ".join(str(value).split())
    return text[: schema.MAX_CELL] if text else "-"


def _number(value) -> str:
    return "-" if not value else f"{value:.4g}"


def row(record: dict, word: dict | None, about: dict) -> dict[str, str]:
    """One record as a row of verdict.csv; `word`: of verdict.judge, None for L4."""
    facts = about["fingerprint"]
    speed, accuracy, memory = (record.get(k) or {} for k in ("speed", "accuracy", "memory"))
    why = (word or {}).get("reason", "")
    if word is None and record["outcome"] != "ok":
        why = f"{record['outcome']}: {(record.get('reason') or {}).get('class', '')}"
    out = {
        "platform": about["platform"], "model": about["model"], "level": record["level"],
        "configuration": record["configuration"], "source": "measured", "verdict": (word or {}).get("verdict", "-"),
        "reason": _cell(why), "latency_ms": _number(speed.get("p50_ms")), "statistic": "p50" if speed else "-",
        "p99_ms": _number(speed.get("p99_ms")), "per_second": "-",
        "peak_memory_mib": _number((memory.get("peak_resident_bytes") or 0) / 2**20),
        "accuracy_metric": "rel_l2" if "rel_l2" in accuracy else "-",
        "accuracy_value": f"{accuracy['rel_l2']:.3g}" if "rel_l2" in accuracy else "-",
        "shapes": _cell(about["shapes"]), "runtime": _cell(record.get("runtime") or "-"),
        "jetpack": _system(facts), "cuda": _cell(facts.get("cuda") or "-") if record.get("device") != "cpu" else "-",
        "power_mode": _cell(facts["state"].get("power_mode") or "-"), "date": record["time"][:10],
        "commit": about["commit"] or "-", "evidence": "results/evidence/" + about["name"],
        "note": _cell(_note(record)),
    }  # fmt: skip
    return out


def _system(facts: dict) -> str:
    if facts.get("jetpack"):
        return "JetPack " + facts["jetpack"]
    return "L4T " + facts["l4t"] if facts.get("l4t") else "-"


def _note(record: dict) -> str:
    facts = record.get("facts") or {}
    parts = []
    if record.get("threads") and record.get("device") == "cpu":
        parts.append(f"{record['threads']} thread" + ("s" if record["threads"] > 1 else ""))
    if facts.get("includes"):
        parts.append("includes " + facts["includes"])
    if record.get("speed", {}).get("cold_p50_ms"):
        parts.append(f"cold {record['speed']['cold_p50_ms']:.3g} ms")
    if facts.get("build_seconds"):
        parts.append(f"made ready in {facts['build_seconds']:.3g} s")
    return "; ".join(parts)


def rows(records: list[dict], judged: dict, about: dict) -> list[dict[str, str]]:
    """The rows of a run, the official one last. What was skipped is no row: the official word tells of it."""
    words = {(w["level"], w["configuration"]): w for w in judged["words"]}
    tried = [r for r in records if r["outcome"] != "skipped"]
    out = [row(r, words.get((r["level"], r["configuration"])), about) for r in tried]
    official = judged["official"]
    base = {"level": "official", "configuration": "all", "outcome": "ok", "time": max(r["time"] for r in records),
            "runtime": "-", "device": about["device"]}  # fmt: skip
    out.append(row(base, official, about))
    return out


def summary(records: list[dict], judged: dict, about: dict, machine: str) -> str:
    """The run as a table for people."""
    words = {(w["level"], w["configuration"]): w for w in judged["words"]}
    lines = [("LEVEL", "CONFIGURATION", "OUTCOME", "P50", "P99", "PEAK", "REL_L2", "WORD")]
    for record in records:
        speed, accuracy, memory = (record.get(k) or {} for k in ("speed", "accuracy", "memory"))
        word = words.get((record["level"], record["configuration"]))
        text = f"{word['verdict']}: {word['reason']}" if word else ""
        if not word and record["outcome"] != "ok":
            text = f"{record['reason']['class']}: {record['reason']['text']}"
        lines.append((
            record["level"], record["configuration"], record["outcome"],
            f"{speed['p50_ms']:.3g} ms" if speed else "", f"{speed['p99_ms']:.3g} ms" if speed else "",
            f"{memory['peak_resident_bytes'] / 2**20:.0f} MiB" if memory.get("peak_resident_bytes") else "",
            f"{accuracy['rel_l2']:.2g}" if "rel_l2" in accuracy else "", text,
        ))  # fmt: skip
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    table = "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
    official = judged["official"]
    return (f"{about['model']} ({about['shapes']}) on {machine}, device {about['device']}\n\n{table}\n\n"
            f"official path: {official['verdict']}: {official['reason']}\n")  # fmt: skip
