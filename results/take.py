"""Takes the rows and records of a folder that `mk verify` made over into results/. Standard library only."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import schema

FILES = ("run.json", "records.json", "rows.csv")  # and summary.txt, logs/
MAX_BYTES = 1_500_000


class Refused(Exception):
    """Why a folder is not taken."""


def add(root: Path, folder: Path, rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Copies `folder` to results/evidence/<name of the run> and puts its rows into verdict.csv, instead of rows with the same
    key. Returns all rows. Raises Refused and changes nothing where the folder is not fit."""
    for name in FILES:
        if not (folder / name).is_file():
            raise Refused(f"{name} is not there; was this made by `mk verify`, and did it end?")
    try:
        json.loads((folder / "records.json").read_text(encoding="utf-8"))
        name = json.loads((folder / "run.json").read_text(encoding="utf-8"))["name"]
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"records.json or run.json: {error}") from None
    if not isinstance(name, str) or not schema.SLUG.fullmatch(name):
        raise Refused(f"run.json: name {name!r} must be lower-case letters, digits, '.', '+' and '-'")
    place = f"results/evidence/{name}"
    fresh, found = schema.read(folder / "rows.csv")
    for row in fresh:
        row["evidence"] = place
    found = found or schema.breaches(fresh)
    if found:
        raise Refused("; ".join(f"rows.csv {breach}" for breach in found))
    if not fresh:
        raise Refused("rows.csv has no rows")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and _kept(folder, path))
    if size > MAX_BYTES:
        raise Refused(f"{size} bytes of records and logs, at most {MAX_BYTES} are kept in the repository")
    target = root / place
    if target.exists():
        shutil.rmtree(target)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and _kept(folder, path):
            copy = target / path.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    return schema.put(root / "results/verdict.csv", rows, fresh)


def _kept(folder: Path, path: Path) -> bool:
    part = path.relative_to(folder).parts
    return part[0] in FILES or part[0] == "logs" or part[0] == "summary.txt"
