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
import time
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).absolute().parent
TREE = HERE.parent.parent
sys.path[:0] = [str(HERE), str(TREE / "results")]

import child  # noqa: E402
import level_ours  # noqa: E402
import level_torch  # noqa: E402
import level_trt  # noqa: E402
import machine  # noqa: E402
import models  # noqa: E402
import records  # noqa: E402
import schema  # noqa: E402
import timing  # noqa: E402
import verdict  # noqa: E402
from level import Job, own_python  # noqa: E402

LEVELS = ("L1", "L2", "L3", "L4")


class Progress:
    """Steps on standard error; on a terminal the time of the running one too."""

    def __init__(self, total: int):
        self.total, self.done, self.began, self.name = total, 0, time.monotonic(), ""
        self.live = sys.stderr.isatty()

    def step(self, name: str) -> None:
        self.done, self.name, self.began = self.done + 1, name, time.monotonic()
        if self.live:
            print(f"\r\x1b[K[{self.done}/{self.total}] {name} ...", end="", file=sys.stderr, flush=True)

    def tick(self, seconds: float) -> None:
        if self.live:
            print(f"\r\x1b[K[{self.done}/{self.total}] {self.name} ... {seconds:.0f} s", end="", file=sys.stderr, flush=True)

    def end(self, outcome: str) -> None:
        took = time.monotonic() - self.began
        print(("\r\x1b[K" if self.live else "") + f"[{self.done}/{self.total}] {self.name}: {outcome} ({took:.1f} s)", file=sys.stderr)


def say_outcome(record: dict) -> str:
    if record["outcome"] != "ok":
        return f"{record['outcome']}: {record['reason']['class']}: {record['reason']['text']}"[:200]
    accuracy = record.get("accuracy")
    if accuracy is None:
        return "ok"
    return "ok" + (f", rel_l2 {accuracy['rel_l2']:.2g}" if "rel_l2" in accuracy else "") + (
        "" if accuracy["pass"] else f", NOT ACCURATE: {accuracy['why']}")  # fmt: skip


class Run:
    """All steps of one run, each kept as it ends."""

    def __init__(self, job: Job, levels: list[str], plan: timing.Plan, alternate: str):
        self.job, self.levels, self.plan, self.alternate = job, levels, plan, alternate
        self.python, self.no_python = "", ""
        self.trtexec = level_trt.find(job)
        self.trt = ""
        self.inputs: Path | None = Path(job.golden) if job.spec.onnx else None
        configurations = (job.spec.torch or ("compile",)) if "L1" in levels else ()
        steps = len(configurations) + ("L4" in levels) + 1
        steps += len(level_trt.CONFIGURATIONS) * (("L2" in levels) + ("L3" in levels)) + (1 if "L2" in levels else 0)
        self.progress = Progress(steps)
        job.tick = self.progress.tick

    def kept(self, level: str, configuration: str, make) -> dict:
        """The record of the folder, or a new one."""
        self.progress.step(f"{level} {configuration}")
        record = self.job.folder.find(level, configuration)
        if record is not None:
            self.progress.end(f"{say_outcome(record)} (from before)")
            return record
        before = machine.state()
        record = make()
        record["state"] = {"before": before, "after": machine.state()}
        self.progress.end(say_outcome(record))
        return self.job.folder.keep(record)

    def level_1(self) -> None:
        if self.job.spec.torch:
            self.python, self.no_python = level_torch.find_python(self.job)
        for name in self.job.spec.torch or ("compile",):
            self.kept("L1", name, lambda name=name: level_torch.try_one(self.job, name, self.python, self.no_python))

    def onnx(self) -> tuple[Path | None, dict | None]:
        """The ONNX file of level 2, or the record that says why there is none."""
        if self.job.spec.onnx:
            return Path(self.job.spec.onnx), None
        if not self.python and not self.no_python:
            self.python, self.no_python = level_torch.find_python(self.job)
        if not self.python:
            return None, self.job.skipped("L2", "onnx-export", "no-pytorch", self.no_python)
        onnx, self.inputs, record = level_torch.export(self.job, self.python)
        return onnx, record

    def levels_2_and_3(self) -> None:
        job = self.job
        if not self.trtexec:
            for level in ("L2", "L3"):
                if level in self.levels:
                    for name in level_trt.CONFIGURATIONS:
                        self.kept(level, name, lambda level=level, name=name: job.skipped(level, name, "tool-missing", level_trt.MISSING))
            return
        self.trt = level_trt.version(job, self.trtexec)
        onnx, record = self.onnx()
        if record is not None:
            self.kept("L2", "onnx-export", lambda: record)
            return
        for name in level_trt.CONFIGURATIONS:
            built = self.kept("L2", name, lambda name=name: self.build(name, onnx))
            if "L3" not in self.levels:
                continue
            if built["outcome"] == "ok":
                self.kept("L3", name, lambda name=name: level_trt.accuracy(job, self.trtexec, self.trt, name, self.inputs))
            elif built["outcome"] == "skipped" and built["reason"]["class"] != "not-in-this-version":
                self.kept("L3", name, lambda name=name, built=built: job.record("L3", name, outcome="skipped", reason=built["reason"],
                                                                               runtime=f"TensorRT {self.trt or 'of a version not told'}"))  # fmt: skip

    def build(self, name: str, onnx: Path) -> dict:
        source = onnx
        if name == "trt-strong" and level_trt.flags(name, self.trt)[0] is not None:
            source, record = level_trt.autocast(self.job, self.python, onnx)
            if record is not None:
                return record
        return level_trt.build(self.job, self.trtexec, self.trt, name, source)

    def contestants(self) -> dict:
        """Everything that ran, by (level, configuration)."""
        found = {}
        done = [r for r in self.job.folder.records if r["outcome"] == "ok" and r["level"] in self.levels]
        resident = self.resident(done)
        for record in done:
            level, name = record["level"], record["configuration"]
            if level == "L1":
                python = self.python or level_torch.find_python(self.job)[0]
                found[level, name] = level_torch.contestant(self.job, name, python, resident)
            elif level == "L3":
                found[level, name] = level_trt.Engine(self.job, self.trtexec, name, self.inputs)
            elif level == "L4":
                found[level, name] = level_ours.contestant(self.job, resident)
        return found

    def resident(self, done: list[dict]) -> bool:
        """Whether all contestants may stay loaded at once: by --alternate, else where half of the memory holds them."""
        if self.alternate != "auto":
            return self.alternate == "resident"
        need = sum((r.get("memory") or {}).get("peak_resident_bytes", 0) for r in done if r["level"] in ("L1", "L4"))
        return need < child.mem_available() / 2

    def speed(self) -> None:
        """Times what ran, in turn; a run whose records all have their speed from one timing keeps it."""
        self.progress.step("timing, in turn")
        done = [r for r in self.job.folder.records if r["outcome"] == "ok" and r["level"] in ("L1", "L3", "L4")]
        stamps = {r.get("timed") for r in done}
        if not done or (len(stamps) == 1 and None not in stamps):
            self.progress.end("nothing to time" if not done else "from before")
            return
        contestants = self.contestants()

        def read() -> dict:
            return {"clocks": machine.clocks(), "pace": machine.pace(), "power_mode": machine.power_mode(machine.ask("nvpmodel", "-q"))}

        began = time.monotonic()
        try:
            series = timing.alternate({k: v.__call__ for k, v in contestants.items()}, self.plan, read,
                                      lambda done, all_: self.progress.tick(time.monotonic() - began))  # fmt: skip
        finally:
            for contestant in contestants.values():
                contestant.close()
        stamp = timing.now()
        for (level, name), own in series.items():
            record = self.job.folder.find(level, name)
            record["timed"] = stamp
            record["protocol"] = {**asdict(self.plan), "alternation": self.alternate, "with": [" ".join(k) for k in contestants]}
            record.pop("speed", None)
            if own.failed or not own.blocks:
                record["speed_failed"] = own.failed
            else:
                record["speed"] = timing.summary(own)
            self.job.folder.keep(record)
        failed = [f"{' '.join(k)}: {v.failed}" for k, v in series.items() if v.failed]
        self.progress.end("; ".join(failed)[:300] if failed else f"{len(series)} contestants, {self.plan.rounds} rounds")

    def all(self) -> None:
        if "L1" in self.levels:
            self.level_1()
        if "L2" in self.levels or "L3" in self.levels:
            self.levels_2_and_3()
        if "L4" in self.levels:
            self.kept("L4", level_ours.CONFIGURATION, lambda: level_ours.try_pack(self.job))
        self.speed()


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
    parser.add_argument("--python", default="", help="a Python with PyTorch (default: python3)")
    parser.add_argument("--trtexec", default="", help="TensorRT's trtexec")
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


def scan_inputs(path: Path) -> list[dict]:
    """The inputs of an ONNX file, by mk scan."""
    mk = os.environ.get("MK_PROGRAM") or "mk"
    try:
        done = subprocess.run([mk, "scan", "--json", str(path)], capture_output=True, check=False, timeout=600)
        report = json.loads(done.stdout or b"null")
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise models.Refused(f"{path}: mk scan, which tells the inputs, failed: {error}") from None
    if not report:
        raise models.Refused(f"{path}: {done.stderr.decode(errors='replace').strip()[:300]}")
    return (report[0] if isinstance(report, list) else report)["inputs"]


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
    inputs = scan_inputs(path)
    shapes = models.fill_shapes(inputs, models.parse_shapes(args.shapes))
    free = any(not dim.strip().isdigit() for one in inputs for dim in one["shape"].strip("[]").split(",") if dim.strip())
    return models.of_onnx(path, shapes, args.golden, free)  # trtexec refuses shapes for a model that has none free


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
