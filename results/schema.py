"""The format of verdict.csv: docs/HANDOFF.md section 4 as code. Standard library only.

One row per platform x model x level x configuration (and per stack, where a platform has several). Every cell is
filled; "-" says that it does not apply, "unknown" that a reported source does not tell.
"""

from __future__ import annotations

import csv
import datetime
import math
import re
from dataclasses import dataclass
from pathlib import Path

COLUMNS = (
    "platform", "model", "level", "configuration", "source", "verdict", "reason", "latency_ms", "statistic", "p99_ms",
    "per_second", "peak_memory_mib", "accuracy_metric", "accuracy_value", "shapes", "runtime", "jetpack", "cuda",
    "power_mode", "date", "commit", "evidence", "note",
)  # fmt: skip

# slug -> (name for people, SM or "-" where no GPU computes, whether it is one of this project's boards)
PLATFORMS = {
    "agx-orin-64gb": ("AGX Orin 64GB", "87", True),
    "agx-orin": ("AGX Orin, memory not told", "87", True),
    "orin-nx-16gb": ("Orin NX 16GB", "87", True),
    "orin-nx-8gb": ("Orin NX 8GB", "87", True),
    "orin-nx": ("Orin NX, memory not told", "87", True),
    "orin-nano-8gb": ("Orin Nano 8GB", "87", True),
    "orin-nano": ("Orin Nano, memory not told", "87", True),
    "orin": ("Orin, board not told", "87", True),
    "thor-t5000": ("Thor T5000", "110", True),
    "thor-t4000": ("Thor T4000", "110", True),
    "thor": ("Thor, module not told", "110", True),
    "x86-64-cpu": ("x86-64, CPU", "-", True),
    "aarch64-cpu": ("Arm, CPU", "-", True),
    "l4": ("L4", "89", False),
    "a100": ("A100", "80", False),
    "h100-sxm": ("H100 SXM", "90", False),
    "h200": ("H200", "90", False),
    "gh200": ("GH200", "90", False),
    "b200": ("B200", "100", False),
    "dgx-spark": ("DGX Spark", "121", False),
    "rtx-3080-laptop": ("RTX 3080 laptop", "86", False),
    "rtx-3090": ("RTX 3090", "86", False),
    "rtx-4090": ("RTX 4090", "89", False),
    "rtx-5070-ti": ("RTX 5070 Ti", "120", False),
    "rtx-5090": ("RTX 5090", "120", False),
    "gpu-sm90": ("a GPU of SM 9.0", "90", False),
    "gpu-other": ("another GPU", "-", False),
}
# What a level is; `official` is the word over L1 to L3 together.
LEVELS = {
    "L1": "PyTorch: eager and torch.compile",
    "L2": "TensorRT: does an engine get built",
    "L3": "TensorRT: is it right, and how fast",
    "L4": "ours",
    "official": "L1 to L3 together",
}
SOURCES = ("measured", "reported", "predicted")
VERDICTS = ("unsupported", "degraded", "competitive", "inconclusive", "-")
STATISTICS = ("p50", "mean", "unknown", "roofline", "-")
NUMBERS = ("latency_ms", "p99_ms", "per_second", "peak_memory_mib")
SLUG = re.compile(r"[a-z0-9][a-z0-9.+-]*")
COMMIT = re.compile(r"[0-9a-f]{7,40}(-dirty)?")
KEY = ("platform", "model", "level", "configuration", "source", "shapes", "runtime", "jetpack", "power_mode")
MAX_CELL = 400


@dataclass(frozen=True)
class Breach:
    """A rule that a cell breaks; `line` is the line of the file, 1 being the head."""

    line: int
    column: str
    value: str
    rule: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}, value {self.value!r}: {self.rule}"


def number_rule(value: str) -> str | None:
    """None, or why `value` is no number of this file: "-" or a finite decimal above zero."""
    if value == "-":
        return None
    try:
        number = float(value)
    except ValueError:
        return "must be a number or '-'"
    return None if math.isfinite(number) and number > 0 else "must be finite and above 0, or '-'"


def date_rule(value: str) -> str | None:
    """None, or why `value` is no date: YYYY-MM-DD, YYYY-MM or YYYY."""
    if re.fullmatch(r"\d{4}(-\d\d)?", value):
        return None if value[4:] == "" or 1 <= int(value[5:]) <= 12 else "must be a date"
    try:
        datetime.date.fromisoformat(value)
    except ValueError:
        return "must be YYYY-MM-DD, YYYY-MM or YYYY"
    return None


def _one_of(allowed) -> str:
    return "must be one of " + ", ".join(allowed)


def cell_rules(row: dict[str, str], root: Path | None):
    """(column, rule) of every cell of `row` that breaks one by itself. `root`: of the tree, for evidence paths."""
    for column in COLUMNS:
        value = row[column]
        if value == "" or value != value.strip():
            yield column, "must be filled, without spaces around it ('-' where it does not apply)"
        elif len(value) > MAX_CELL:
            yield column, f"must have at most {MAX_CELL} characters"
        elif any(ord(c) < 32 for c in value):
            yield column, "must be one line of printable text"
    for column, allowed in (("platform", PLATFORMS), ("level", LEVELS), ("source", SOURCES), ("verdict", VERDICTS),
                            ("statistic", STATISTICS)):  # fmt: skip
        if row[column] not in allowed:
            yield column, _one_of(allowed)
    for column in ("model", "configuration"):
        if not SLUG.fullmatch(row[column]):
            yield column, "must be lower-case letters, digits, '.', '+' and '-'"
    for column in NUMBERS:
        if (why := number_rule(row[column])) is not None:
            yield column, why
    if row["date"] != "unknown" and (why := date_rule(row["date"])) is not None:
        yield "date", why
    if row["commit"] != "-" and not COMMIT.fullmatch(row["commit"]):
        yield "commit", "must be 7 to 40 hexadecimal digits, '-dirty' behind them where files differed, or '-'"
    if row["source"] in ("measured", "predicted"):
        path = row["evidence"]
        if not re.fullmatch(r"results/evidence/[A-Za-z0-9._/-]+", path) or ".." in path:
            yield "evidence", f"must be a path below results/evidence/ for a {row['source']} row"
        elif root is not None and not (root / path).exists():
            yield "evidence", "must be there"


def row_rules(row: dict[str, str]):
    """(column, rule) where cells of one row do not go together."""
    if (row["latency_ms"] == "-") != (row["statistic"] == "-"):
        yield "statistic", "must say what latency_ms is, and be '-' where there is none"
    if (row["accuracy_metric"] == "-") != (row["accuracy_value"] == "-"):
        yield "accuracy_value", "must stand exactly where accuracy_metric stands"
    if row["level"] == "L4" and row["verdict"] != "-":
        yield "verdict", "must be '-' for L4: the words judge the official path"
    if row["verdict"] in ("unsupported", "degraded", "inconclusive") and row["reason"] == "-":
        yield "reason", f"must be given for {row['verdict']}"
    if row["level"] in ("L2", "L3") and "TensorRT" not in row["runtime"]:
        yield "runtime", "must name TensorRT and its version ('TensorRT unknown' where a report does not)"
    if row["source"] == "measured":
        for column in ("shapes", "runtime", "jetpack", "cuda", "power_mode", "date"):
            if "unknown" in row[column]:
                yield column, "must be known for a measured row"
        if row["commit"] == "-":
            yield "commit", "must be given for a measured row"
        if row["latency_ms"] != "-" and row["statistic"] != "p50":
            yield "statistic", "must be p50 for a measured row"
    elif row["source"] == "reported":
        if row["evidence"] == "-":
            yield "evidence", "must name the source of a reported row"
    elif row["source"] == "predicted":
        if row["verdict"] != "-":
            yield "verdict", "must be '-' for a predicted row: nothing was tried"
        if row["latency_ms"] != "-" and row["statistic"] != "roofline":
            yield "statistic", "must be roofline for a predicted row"
    if row["statistic"] == "roofline" and row["source"] != "predicted":
        yield "statistic", "must not be roofline where something ran"


def breaches(rows: list[dict[str, str]], root: Path | None = None) -> list[Breach]:
    """Every rule that `rows` break; lines are counted from 2, behind the head."""
    found, seen = [], {}
    for line, row in enumerate(rows, 2):
        for column, rule in [*cell_rules(row, root), *row_rules(row)]:
            found.append(Breach(line, column, row[column], rule))
        key = tuple(row[column] for column in KEY)
        if key in seen:
            found.append(Breach(line, "platform", row["platform"], f"must not repeat line {seen[key]}: " + ", ".join(KEY)))
        seen[key] = line
    return found


def read(path: Path) -> tuple[list[dict[str, str]], list[Breach]]:
    """The rows of a file, and what is wrong with its shape. Rows of a wrong length are left out."""
    with open(path, encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    if not lines or tuple(lines[0]) != COLUMNS:
        return [], [Breach(1, "-", ",".join(lines[0]) if lines else "", "must be the head: " + ",".join(COLUMNS))]
    rows, found = [], []
    for number, cells in enumerate(lines[1:], 2):
        if len(cells) == len(COLUMNS):
            rows.append(dict(zip(COLUMNS, cells)))
        else:
            found.append(Breach(number, "-", ",".join(cells), f"must have {len(COLUMNS)} cells, not {len(cells)}"))
    return rows, found


def ordered(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """In the file's order: by platform, model, level, configuration, shapes."""
    order = list(PLATFORMS)
    return sorted(rows, key=lambda r: (order.index(r["platform"]), r["model"], r["level"], r["configuration"], r["shapes"]))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    """Replaces the file by `rows`, in one step."""
    fresh = path.with_name(path.name + ".new")
    with open(fresh, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([row[column] for column in COLUMNS] for row in rows)
    fresh.replace(path)


def put(path: Path, rows: list[dict[str, str]], fresh: list[dict[str, str]]) -> list[dict[str, str]]:
    """Replaces the file by `rows` with `fresh` instead of those that have the same key. Returns all of them, in order."""
    keys = {tuple(row[column] for column in KEY) for row in fresh}
    merged = ordered([row for row in rows if tuple(row[column] for column in KEY) not in keys] + fresh)
    write(path, merged)
    return merged
