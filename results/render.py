#!/usr/bin/env python3
"""mk results: the verdict matrix of results/verdict.csv, as Markdown for the README and as one page with plots.

  mk results                        the matrix
  mk results --models 'sam3*'       the rows of the file for some models, as a table
  mk results --html results.html    one self-contained page: matrix, plots, every row with its source
  mk results --readme               write the matrix between the markers of README.md and README.zh-CN.md
  mk results --check                is verdict.csv in its format, and do the READMEs show what it says? (0 yes, 1 no)
  mk results --add FOLDER           take over the rows and the records of a folder that `mk verify` made
  mk results --predict FILE         take over what `mk --json explain PACK --board ...` printed, as predicted rows

Standard library only.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from pathlib import Path

ROOT = Path(__file__).absolute().parent.parent  # not resolved: a test's copy stays one
sys.path.insert(0, str(ROOT / "results"))

import page  # noqa: E402
import predict  # noqa: E402
import schema  # noqa: E402
import take  # noqa: E402
from matrix import markdown  # noqa: E402

BEGIN, END = "<!-- verdict matrix: made by `mk results --readme` -->", "<!-- end of the verdict matrix -->"
READMES = ("README.md", "README.zh-CN.md")


def between(text: str) -> str | None:
    """What stands between the markers of a page; None where they do not stand once each, in order."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        return None
    return text[text.index(BEGIN) + len(BEGIN) : text.index(END)].strip("\n") + "\n"


def put_between(text: str, table: str) -> str:
    """The page with `table` between its markers. REQUIRES: between(text) is not None."""
    return text[: text.index(BEGIN) + len(BEGIN)] + "\n\n" + table + "\n" + text[text.index(END) :]


def readme_breaches(root: Path, table: str) -> list[str]:
    """What the READMEs show otherwise than the file. A README without markers shows no matrix, which README.md must."""
    found = []
    for name in READMES:
        path = root / name
        if not path.exists():
            continue
        shown = between(path.read_text(encoding="utf-8"))
        if shown is None:
            found.append(f"{name}: the markers of the verdict matrix do not stand there once each")
        elif shown.strip() != table.strip():
            found.append(f"{name}: the matrix is not that of results/verdict.csv; run `mk results --readme`")
    return found


def load(root: Path) -> tuple[list[dict[str, str]], list[str]]:
    """The rows, and every breach of the format as a line."""
    path = root / "results/verdict.csv"
    rows, found = schema.read(path)
    found = found or schema.breaches(rows, root)
    return rows, [f"results/verdict.csv: {breach}" for breach in found]


def listing(rows: list[dict[str, str]]) -> str:
    """The rows one by one."""
    columns = ("platform", "model", "level", "configuration", "source", "verdict", "latency_ms", "runtime", "evidence")
    cells = [[c.upper() for c in columns]] + [[row[c] for c in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in cells) + "\n"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mk results", description=__doc__.splitlines()[0], epilog=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--html", type=Path, metavar="FILE", help="write one self-contained page")
    parser.add_argument("--readme", action="store_true", help="write the matrix into the READMEs")
    parser.add_argument("--check", action="store_true", help="check the format and the READMEs")
    parser.add_argument("--add", type=Path, metavar="FOLDER", help="take over what `mk verify` made")
    parser.add_argument("--predict", type=Path, metavar="FILE", help="take over what `mk --json explain` printed")
    parser.add_argument("--note", default="", metavar="TEXT", help="what else there is to say of --predict")
    parser.add_argument("--models", metavar="PATTERN", help="list the rows of these models")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    rows, found = load(args.root)
    if found:
        print("\n".join(found), file=sys.stderr)
        return 1
    if args.add or args.predict:
        try:
            rows = take.add(args.root, args.add, rows) if args.add else rows
            rows = predict.add(args.root, args.predict, rows, args.note) if args.predict else rows
        except (take.Refused, predict.Refused) as why:
            print(f"mk results: {args.add or args.predict}: {why}", file=sys.stderr)
            return 1
        print(f"results/verdict.csv has {len(rows)} rows now; `mk results --readme` shows them")
    table = markdown(rows)
    if args.readme:
        for name in READMES:
            path = args.root / name
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            if between(text) is None:
                print(f"{name}: no markers, left as it is", file=sys.stderr)
                continue
            path.write_text(put_between(text, table), encoding="utf-8")
    if args.html:
        args.html.write_text(page.html(rows, table), encoding="utf-8")
        print(f"wrote {args.html}", file=sys.stderr)
    if args.check:
        problems = readme_breaches(args.root, table)
        print("\n".join(problems + [f"results: {len(rows)} rows, {len(problems)} breaches"]))
        return 1 if problems else 0
    if args.models:
        rows = [row for row in rows if fnmatch.fnmatch(row["model"], args.models)]
    if args.json:
        print(json.dumps(rows, indent=1))
    elif args.models:
        print(listing(rows), end="")
    elif not (args.readme or args.html or args.add or args.predict):
        print(table, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
