"""The steps of one run of `mk verify`, each kept as it ends, so that an interrupted run goes on."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from pathlib import Path

import child
import level_ours
import level_torch
import level_trt
import machine
import timing
from level import Job

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
        self.tool, self.no_tool = level_trt.find(job) if {"L2", "L3"} & set(levels) else ([], "")
        self.trt = ""
        self.inputs: Path | None = Path(job.golden) if job.spec.onnx else None
        configurations = (job.spec.torch or ("compile",)) if "L1" in levels else ()
        steps = len(configurations) + ("L4" in levels) + 1
        steps += len(level_trt.CONFIGURATIONS) * (("L2" in levels) + ("L3" in levels))
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
        if not self.tool:
            for level in ("L2", "L3"):
                if level in self.levels:
                    for name in level_trt.CONFIGURATIONS:
                        self.kept(level, name, lambda level=level, name=name: job.skipped(level, name, "tool-missing", self.no_tool))
            return
        self.trt = level_trt.version(job, self.tool)
        onnx, record = self.onnx()
        if record is not None:
            self.kept("L2", "onnx-export", lambda: record)
            return
        for name in level_trt.CONFIGURATIONS:
            built = self.kept("L2", name, lambda name=name: self.build(name, onnx))
            if "L3" not in self.levels:
                continue
            if built["outcome"] == "ok":
                self.kept("L3", name, lambda name=name: level_trt.accuracy(job, self.tool, self.trt, name, self.inputs))
            elif built["outcome"] == "skipped" and built["reason"]["class"] != "not-in-this-version":
                self.kept("L3", name, lambda name=name, built=built: job.record("L3", name, outcome="skipped", reason=built["reason"],
                                                                               runtime=f"TensorRT {self.trt or 'of a version not told'}"))  # fmt: skip

    def build(self, name: str, onnx: Path) -> dict:
        source = onnx
        if name == "trt-strong" and level_trt.flags(name, self.trt)[0] is not None:
            source, record = level_trt.autocast(self.job, self.python, onnx)
            if record is not None:
                return record
        return level_trt.build(self.job, self.tool, self.trt, name, source)

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
                found[level, name] = level_trt.Engine(self.job, self.tool, name, self.inputs)
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
