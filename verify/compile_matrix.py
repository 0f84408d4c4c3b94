#!/usr/bin/env python3
"""Every kernel file compiled by every CUDA toolkit that can be had, for every board it can name: pillar P4's evidence.

  verify/compile_matrix.py                 fetches the compilers, compiles, writes results/compile_matrix.csv and .md
  verify/compile_matrix.py --check         the same, and compares with the committed table: exit code 1 where it differs
  verify/compile_matrix.py --toolkits 12.6,13.0 --sms 87 --files 'kernels/linear/*'     a part, to look at; prints

The compilers are NVRTC packages of the Python package index, one a toolkit, kept in
${XDG_CACHE_HOME:-~/.cache}/mergekernel-nvrtc (30 to 110 MB each). No GPU, no driver, no root. Every *.cu below kernels/ is
compiled: a new one needs no entry anywhere. Registers, stack, shared memory and code size are read from the cubin's ELF,
spills from the assembler's words. Standard library only; x86-64 or arm64 Linux.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import io
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).absolute().parent.parent
sys.path[:0] = [str(TREE / "verify"), str(TREE / "kernels")]
from cubin import Malformed, read_cubin, spills_of  # noqa: E402
from nvrtc import Nvrtc  # noqa: E402

# Toolkit -> package. One release of each that boards have met; JetPack 6.1 and 6.2 have 12.6, 7.0 has 13.0, 7.2 has 13.2.
TOOLKITS = {
    "12.4": "nvidia-cuda-nvrtc-cu12==12.4.127",
    "12.6": "nvidia-cuda-nvrtc-cu12==12.6.85",
    "12.8": "nvidia-cuda-nvrtc-cu12==12.8.93",
    "12.9": "nvidia-cuda-nvrtc-cu12==12.9.86",
    "13.0": "nvidia-cuda-nvrtc==13.0.88",
    "13.2": "nvidia-cuda-nvrtc==13.2.86",
    "13.5": "nvidia-cuda-nvrtc==13.5.37",
}
# Orin; a data-centre part, so that the same code is tried on a GPU that is at hand; Thor by its name up to 12.9 (sm_101,
# from 12.8 on) and from 13.0 on (sm_110).
SMS = ("87", "90", "101", "110")
NOT_HERE = "not in this toolkit"
COLUMNS = ("file", "kernel", "sm", "toolkit", "state", "registers", "spill_bytes", "stack_bytes", "shared_bytes", "code_bytes",
           "cubin_bytes", "note")  # fmt: skip


def sms_of(toolkit: str) -> set[str]:
    """The boards of SMS that a toolkit can name."""
    version = tuple(map(int, toolkit.split(".")))
    names = {"87", "90"}
    if (12, 8) <= version < (13, 0):
        names.add("101")
    if version >= (13, 0):
        names.add("110")
    return names


def rows_of(source: str, sm: str, toolkit: str, cubin: bytes, log: str) -> list[dict]:
    """One row a kernel; one for the file where it does not compile."""
    base = dict.fromkeys(COLUMNS, "-") | {"file": source, "sm": sm, "toolkit": toolkit}
    if not cubin:
        first = next((line for line in log.splitlines() if "error" in line), log.strip()[:200] or "no word")
        return [base | {"state": "failed", "note": first.strip().replace(f"{TREE}/", "")[:200]}]
    try:
        kernels, spills = read_cubin(cubin), spills_of(log)
    except Malformed as error:
        return [base | {"state": "failed", "note": f"cubin not read: {error}"}]
    return [
        base | {"kernel": name, "state": "ok", "spill_bytes": spills.get(name, "-"), "cubin_bytes": len(cubin), **facts}
        for name, facts in sorted(kernels.items())
    ]  # fmt: skip


def child(folder: str, toolkit: str, sms: list[str], files: list[str]) -> None:
    """In a process of its own, since two NVRTCs do not go together: rows as JSON lines."""
    nvrtc = Nvrtc(folder)
    for source in files:
        for sm in sms:
            image, log = nvrtc.compile(source, (TREE / source).read_bytes(), f"sm_{sm}", str(TREE))
            for row in rows_of(source, sm, toolkit, image, log):
                print(json.dumps(row), flush=True)


def fetch(toolkit: str) -> tuple[Path | None, str]:
    """(folder of the unpacked package, ""), or (None, why it cannot be had)."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mergekernel-nvrtc"
    folder = cache / TOOLKITS[toolkit].replace("==", "-")
    if not folder.exists():
        fresh = cache / f"new.{os.getpid()}"
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--quiet",
                               "--target", str(fresh), TOOLKITS[toolkit]], capture_output=True, text=True, check=False)  # fmt: skip
        if done.returncode:
            return None, (done.stderr.strip().splitlines() or ["pip failed"])[-1][:200]
        fresh.replace(folder)
    return folder, ""


def sources(pattern: str) -> list[str]:
    """Every device file, by its path in the tree."""
    found = sorted(str(path.relative_to(TREE)) for path in (TREE / "kernels").rglob("*.cu"))
    return [path for path in found if fnmatch.fnmatch(path, pattern)]


def compile_all(toolkits: list[str], sms: list[str], files: list[str]) -> tuple[list[dict], list[str]]:
    """(rows, toolkits that could not be had with the reason)."""
    rows, absent = [], []
    for toolkit in toolkits:
        folder, why = fetch(toolkit)
        if folder is None:
            absent.append(f"{toolkit}: {why}")
            continue
        here = [sm for sm in sms if sm in sms_of(toolkit)]
        argv = [sys.executable, __file__, "--child", str(folder), toolkit, ",".join(here), ",".join(files)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            absent.append(f"{toolkit}: the compiler ended with {done.returncode}: {done.stderr.strip()[-200:]}")
            continue
        rows += [json.loads(line) for line in done.stdout.splitlines()]
        print(f"{toolkit}: {len(files)} files for sm_{', sm_'.join(here)}", file=sys.stderr)
        for sm in sms:
            if sm not in here:
                rows += [dict.fromkeys(COLUMNS, "-") | {"file": f, "sm": sm, "toolkit": toolkit, "state": NOT_HERE} for f in files]
    rows.sort(key=lambda r: (r["file"], r["kernel"], int(r["sm"]), [int(n) for n in r["toolkit"].split(".")]))
    return [{c: str(r[c]) for c in COLUMNS} for r in rows], absent


def csv_text(rows: list[dict]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def spills(row: dict) -> bool:
    """Whether a kernel keeps anything in memory that it has no registers for."""
    return row["spill_bytes"] not in ("0", "-") or row["stack_bytes"] not in ("0", "-")


def cell(row: dict | None) -> str:
    """Registers, what is spilled, and the code in KiB."""
    if row is None:
        return NOT_HERE
    if row["state"] != "ok":
        return row["state"]
    spilled = "" if not spills(row) else f", **spills {row['spill_bytes']}, stack {row['stack_bytes']}**"
    return f"{row['registers']}{spilled}, {int(row['code_bytes']) / 1024:.1f}"


def served_first(key: tuple[str, str]) -> tuple:
    """Sorts the emulator's samples and the tests' kernels behind those that packs use."""
    return ("/samples/" in key[0] or "/testing/" in key[0], *key)


def markdown(rows: list[dict]) -> str:
    """The table for people: a section a board, a row a kernel, a column a toolkit."""
    toolkits = sorted({r["toolkit"] for r in rows}, key=lambda v: [int(n) for n in v.split(".")])
    ok = [r for r in rows if r["state"] == "ok"]
    failed = [r for r in rows if r["state"] == "failed"]
    spilled = [r for r in ok if spills(r)]
    out = [
        "# Every kernel by every toolkit", "",
        "Made by `verify/compile_matrix.py` from the sources of this tree and NVRTC packages of the Python package index; numbers of",
        "every cell are in `compile_matrix.csv`. *measured*, by compiling: no GPU has run this. A cell: registers of a thread, what is",
        "spilled to memory where anything is, KiB of code. A board that a toolkit cannot name says *" + NOT_HERE + "*: Thor is sm_101 from",
        "CUDA 12.8 to 12.9 and sm_110 from 13.0 on, one chip under two names.", "",
        f"{len({r['file'] for r in rows})} files (samples of the emulator and of tests stand last), {len({r['kernel'] for r in ok})} kernels, {len(toolkits)} toolkits: {len(ok)} of "
        f"{len(ok) + len(failed)} compile; {len(spilled)} spill or use a stack.",
    ]  # fmt: skip
    for sm in sorted({r["sm"] for r in rows}, key=int):
        out += ["", f"## sm_{sm}", "", "| kernel | " + " | ".join(toolkits) + " |", "| --- |" + " --- |" * len(toolkits)]
        mine = {(r["file"], r["kernel"], r["toolkit"]): r for r in rows if r["sm"] == sm}
        for file, kernel in sorted({(r["file"], r["kernel"]) for r in rows if r["kernel"] != "-"}, key=served_first):
            cells = []
            for toolkit in toolkits:
                one = mine.get((file, kernel, toolkit)) or mine.get((file, "-", toolkit))
                cells.append(cell(one))
            out.append(f"| `{kernel}` | " + " | ".join(cells) + " |")
    if spilled:
        out += ["", "## What spills", "", "Bytes in the spill stores and loads of the code, and bytes of stack.", ""]
        out += [f"- `{r['kernel']}`, sm_{r['sm']}, {r['toolkit']}: {r['spill_bytes']}, stack {r['stack_bytes']}" for r in spilled]
    out += ["", "## Drift", "", *drift(ok), ""]
    if failed:
        out += ["## What does not compile", ""] + [f"- `{r['file']}`, sm_{r['sm']}, {r['toolkit']}: {r['note']}" for r in failed] + [""]
    return "\n".join(out)


def drift(ok: list[dict]) -> list[str]:
    """What changes from toolkit to toolkit, kernel by kernel, where it is more than a tenth."""
    out = []
    for kernel, sm in sorted({(r["kernel"], r["sm"]) for r in ok}, key=lambda k: (k[0], int(k[1]))):
        own = [r for r in ok if (r["kernel"], r["sm"]) == (kernel, sm)]
        for what, name, least in (("registers", "registers", 8), ("code_bytes", "bytes of code", 512)):
            values = [(int(r[what]), r["toolkit"]) for r in own]
            low, high = min(values), max(values)
            if len(values) > 1 and high[0] > 1.1 * low[0] and high[0] - low[0] >= least:
                steps = [f"{v} ({t})" for i, (v, t) in enumerate(values) if i == 0 or v != values[i - 1][0]]
                out.append(f"- `{kernel}`, sm_{sm}: {name} {', '.join(steps)}")
    return out or ["None over a tenth."]


def main() -> int:
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        folder, toolkit, sms, files = sys.argv[2:6]
        child(folder, toolkit, sms.split(","), files.split(","))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed table")
    parser.add_argument("--toolkits", help="some of " + ", ".join(TOOLKITS))
    parser.add_argument("--sms", help="some of " + ", ".join(SMS))
    parser.add_argument("--files", default="*", help="pattern of paths below the tree")
    args = parser.parse_args()
    toolkits = args.toolkits.split(",") if args.toolkits else list(TOOLKITS)
    sms = args.sms.split(",") if args.sms else list(SMS)
    for value, known in [(t, TOOLKITS) for t in toolkits] + [(s, SMS) for s in sms]:
        if value not in known:
            parser.error(f"{value!r}: must be one of {', '.join(known)}")
    if platform.machine() not in ("x86_64", "aarch64"):
        print(f"skipped: no such compilers for {platform.machine()}")
        return 0
    files = sources(args.files)
    if not files:
        parser.error(f"no *.cu below kernels/ fits {args.files!r}")
    rows, absent = compile_all(toolkits, sms, files)
    for line in absent:
        print(f"skipped: CUDA {line}", file=sys.stderr)
    part = args.toolkits or args.sms or args.files != "*" or absent
    csv_file, md_file = TREE / "results/compile_matrix.csv", TREE / "results/compile_matrix.md"
    if args.check:
        had = set(csv_file.read_text(encoding="utf-8").splitlines()) if csv_file.exists() else set()
        have = set(csv_text(rows).splitlines())
        wanted = {line for line in had if not part or line in have}
        differ = sorted(have - had) + sorted(wanted - have)
        print("\n".join(differ + [f"compile matrix: {len(rows)} rows, {len(differ)} differ from the committed table"]))
        return 1 if differ or not rows else 0
    if part:
        print(csv_text(rows), end="")
        return 0 if rows else 1
    csv_file.write_text(csv_text(rows), encoding="utf-8")
    md_file.write_text(markdown(rows), encoding="utf-8")
    failed = sum(row["state"] == "failed" for row in rows)
    print(f"results/compile_matrix.csv, .md: {len(rows)} rows, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
