#!/usr/bin/env python3
"""mk verify: what does the official path make of a model on this machine, and what do we?

  mk verify --list                       the models that are known
  mk verify vmamba-pico                  all four levels; results in verify-out/<model>-<platform>
  mk verify vmamba-pico --python VENV/bin/python      a Python that has PyTorch, for level 1
  mk verify model.onnx --golden golden.safetensors --shapes image=1x3x224x224     levels 2 and 3 of a file of yours
  mk verify vmamba-pico --levels L1,L4   some levels only
  mk verify vmamba-pico --again L4       that level anew; the others stay as they are in the folder

L1 PyTorch (eager, torch.compile)  L2 TensorRT build  L3 TensorRT's answers and speed  L4 ours.
A level whose tool is absent is skipped, with the reason. Continue an interrupted run by the same command.
Exit code 0: the run is complete, whatever the words; 1: nothing could be judged; 2: wrong usage; 130: interrupted.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).absolute().parent
TREE = HERE.parent.parent
sys.path[:0] = [str(HERE), str(TREE / "results")]

import child  # noqa: E402
import machine  # noqa: E402
import models  # noqa: E402
import records  # noqa: E402
import schema  # noqa: E402
import tensors  # noqa: E402
import timing  # noqa: E402
import verdict  # noqa: E402
from level import Job  # noqa: E402
from steps import LEVELS, Run  # noqa: E402


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mk verify", description=__doc__.splitlines()[0], epilog="\n".join(__doc__.splitlines()[2:]),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("model", nargs="?", metavar="MODEL", help="a name of --list, or an .onnx file")
    parser.add_argument("--list", action="store_true", help="the models that are known")
    parser.add_argument("--out", type=Path, help="folder of the run (default: verify-out/<model>-<platform>)")
    parser.add_argument("--levels", default=",".join(LEVELS), help="which of L1,L2,L3,L4")
    parser.add_argument("--again", default="", metavar="LEVELS", help="do these anew in a folder that has them")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda on a Jetson and where nvidia-smi finds a GPU")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of levels 1 and 4 (default 1)")
    parser.add_argument("--python", default="", help="a Python with PyTorch, and where trtexec is not there with tensorrt (default: python3)")
    parser.add_argument("--trtexec", default="", help="TensorRT's trtexec (default: of PATH or JetPack, else the Python API of --python)")
    parser.add_argument("--trt-level", type=int, default=5, help="its builderOptimizationLevel (default 5)")
    parser.add_argument("--golden", type=Path, help="for an .onnx file: case<k>.input.* and case<k>.output.* as safetensors")
    parser.add_argument("--shapes", action="append", default=[], metavar="NAME=1x3x224x224", help="for free dims of an .onnx file")
    parser.add_argument("--time-cap", type=float, default=900, metavar="S", help="seconds of one child (default 900)")
    parser.add_argument("--build-cap", type=float, default=7200, metavar="S", help="seconds of one engine build (default 7200)")
    parser.add_argument("--memory-cap", type=float, default=0, metavar="GIB", help="resident memory of one child (default: all but 256 MiB)")
    parser.add_argument("--network", action="store_true", help="leave the children the network")
    parser.add_argument("--rounds", type=int, default=timing.ROUNDS, help="rounds of the alternation (default 5)")
    parser.add_argument("--passes", type=int, default=timing.PASSES, help="timed passes of each configuration (default 100)")
    parser.add_argument("--budget", type=float, default=40, metavar="S", help="seconds of timed passes of each (default 40)")
    parser.add_argument("--alternate", choices=("auto", "resident", "process"), default="auto",
                        help="keep all loaded while they are timed in turn, or start each anew")  # fmt: skip
    parser.add_argument("--pack-runner", default="", help=argparse.SUPPRESS)
    parser.add_argument("--repository", default="", help="folder with the pack (default: the built one)")
    parser.add_argument("--json", action="store_true", help="the words as JSON on standard output")
    args = parser.parse_args(argv)
    args.levels = [level.strip() for level in args.levels.split(",")]
    args.again = [level.strip() for level in args.again.split(",") if level.strip()]
    for level in args.levels + args.again:
        if level not in LEVELS:
            parser.error(f"level {level!r}: must be one of {', '.join(LEVELS)}")
    if not args.list and not args.model:
        parser.error("a MODEL is missing; --list shows the names")
    for name, least in (("threads", 1), ("rounds", 1), ("passes", 1)):
        if getattr(args, name) < least:
            parser.error(f"--{name} {getattr(args, name)}: must be at least {least}")
    return args


def scan(path: Path) -> dict:
    """What mk scan says of an ONNX file."""
    mk = os.environ.get("MK_PROGRAM") or "mk"
    try:
        done = subprocess.run([mk, "scan", "--json", str(path)], capture_output=True, check=False, timeout=600)
        report = json.loads(done.stdout or b"null")
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise models.Refused(f"{path}: mk scan, which tells the inputs, failed: {error}") from None
    if not report:
        raise models.Refused(f"{path}: {done.stderr.decode(errors='replace').strip()[:300]}")
    return report[0] if isinstance(report, list) else report


def spec_of(args: argparse.Namespace) -> models.ModelSpec:
    """The model asked for. Raises models.Refused."""
    if args.model in models.MODELS:
        return models.MODELS[args.model]
    path = Path(args.model)
    if path.suffix != ".onnx":
        raise models.Refused(f"{args.model!r} is no known model ({', '.join(models.MODELS)}) and no .onnx file")
    if not path.is_file():
        raise models.Refused(f"{path} is not there")
    if not args.golden or not args.golden.is_file():
        raise models.Refused("an .onnx file needs --golden: inputs of your own data and the answers of your reference")
    report = scan(path)
    inputs = report["inputs"]
    shapes = models.fill_shapes(inputs, models.parse_shapes(args.shapes))
    free = any(not dim.strip().isdigit() for one in inputs for dim in one["shape"].strip("[]").split(",") if dim.strip())
    names = models.value_inputs(report)
    try:
        values = models.fill_values(names, tensors.cases_of(tensors.read(args.golden)[0])) if names else {}
    except tensors.Malformed as error:
        raise models.Refused(f"{args.golden}: {error}") from None
    return models.of_onnx(path, shapes, args.golden, free, values)  # trtexec refuses shapes for a model that has none free


def begin(args: argparse.Namespace, spec: models.ModelSpec) -> Job:
    """Fingerprint and folder. Raises records.Refused."""
    facts = machine.fingerprint(tree=TREE)
    device = args.device or ("cuda" if facts["l4t"] or facts["gpu"] else "cpu")
    platform = machine.platform_of(facts, device)
    out = args.out or Path("verify-out") / f"{spec.name}-{platform}"
    about = {
        "model": spec.name, "shapes": spec.shapes, "platform": platform, "device": device,
        "stack": records.stack_of(facts), "threads": args.threads, "commit": facts["commit"],
        "golden_sha256": records.digest(TREE / spec.golden), "network_cut": not args.network and child.network_can_be_cut(),
        "command": " ".join(["mk", "verify", *sys.argv[1:]]), "fingerprint": facts,
    }  # fmt: skip
    about["name"] = records.name_of(about)
    folder = records.Folder(out, about)
    for level in args.again:
        folder.forget(level)
    caps = child.Caps(args.time_cap, int(args.memory_cap * 2**30), network=args.network)
    return Job(spec, folder, about, caps, device, args.threads, args.python, args.trtexec, args.trt_level, args.build_cap,
               args.pack_runner, args.repository)  # fmt: skip


def finish(job: Job, as_json: bool) -> int:
    """Words, rows and summary from the records."""
    kept = job.folder.records
    judged = verdict.judge(kept)
    rows = records.rows(kept, judged, job.about)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(schema.COLUMNS)
    writer.writerows([row[column] for column in schema.COLUMNS] for row in rows)
    (job.folder.path / "rows.csv").write_text(text.getvalue(), encoding="utf-8")
    summary = records.summary(kept, judged, job.about, machine.describe(job.about["fingerprint"]))
    (job.folder.path / "summary.txt").write_text(summary, encoding="utf-8")
    records.scrub(job.folder.path)
    print(json.dumps(judged, indent=1) if as_json else summary, end="\n" if as_json else "")
    print(f"\n{job.folder.path}: records.json, logs/, rows.csv, summary.txt", file=sys.stderr)
    for breach in schema.breaches(rows):
        print(f"mk verify: rows.csv: {breach}", file=sys.stderr)
    return 0 if any(record["outcome"] != "skipped" for record in kept) else 1


def main(argv: list[str]) -> int:
    args = arguments(argv)
    if args.list:
        for spec in models.MODELS.values():
            print(f"{spec.name}: {spec.shapes}; L1 {', '.join(spec.torch)}; L4 pack {spec.pack}")
        return 0
    try:
        job = begin(args, spec_of(args))
    except (models.Refused, records.Refused, OSError) as error:
        print(f"mk verify: {error}", file=sys.stderr)
        return 2
    plan = timing.Plan(args.rounds, args.passes, budget_seconds=args.budget)
    print(f"{job.spec.name} on {machine.describe(job.about['fingerprint'])}, device {job.device}", file=sys.stderr)
    try:
        Run(job, args.levels, plan, args.alternate).all()
        return finish(job, args.json)
    except KeyboardInterrupt:
        print(f"\nmk verify: interrupted; the same command goes on from {job.folder.path}", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
