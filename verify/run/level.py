"""What the levels share: records, tools that are there or not, and contestants of the timing.

A level's functions return records; whatever goes wrong in a child becomes a record, never an exception.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import child
import compare
import timing
from models import ModelSpec
from tensors import Malformed, Tensor, cases_of, read

HERE = Path(__file__).absolute().parent
TREE = HERE.parent.parent
RUNTIMES = {"L1": "PyTorch, version not told", "L4": "mergekernel, version not told"}  # where a child did not get to tell


@dataclass
class Job:
    """One run of `mk verify`."""

    spec: ModelSpec
    folder: object  # records.Folder
    about: dict
    caps: child.Caps
    device: str = "cpu"
    threads: int = 1
    python: str = ""  # with PyTorch; "" looks for one
    trtexec: str = ""
    trt_level: int = 5  # trtexec's builderOptimizationLevel
    build_seconds: float = 7200.0
    pack_runner: str = ""
    repository: str = ""
    tick: object = None

    @property
    def env(self) -> dict[str, str]:
        """For children: what compilers cache stays in the folder, so that a first pass is one."""
        return {"TORCHINDUCTOR_CACHE_DIR": str(self.folder.work("inductor").absolute()),
                "CUDA_CACHE_PATH": str(self.folder.work("cuda-cache").absolute())}  # fmt: skip

    @property
    def golden(self) -> Path:
        return TREE / self.spec.golden  # an absolute one stays itself

    def record(self, level: str, configuration: str, **more) -> dict:
        """A record with what all have."""
        keys = ("model", "shapes", "platform", "stack", "commit", "golden_sha256")
        return {"level": level, "configuration": configuration, "outcome": "ok", "reason": None,
                **{key: self.about[key] for key in keys}, "device": self.device, "threads": self.threads,
                "runtime": RUNTIMES.get(level, "TensorRT, version not told"),
                "caps": {"seconds": self.caps.seconds, "memory_bytes": self.caps.memory_bytes,
                         "network": "cut" if self.about["network_cut"] else "open: cannot be cut here"},
                "time": timing.now(), **more}  # fmt: skip

    def skipped(self, level: str, configuration: str, kind: str, text: str) -> dict:
        return self.record(level, configuration, outcome="skipped", reason={"class": kind, "text": text})

    def failed(self, level: str, configuration: str, kind: str, text: str, **more) -> dict:
        return self.record(level, configuration, outcome="failed", reason={"class": kind, "text": text, **more})

    def judge(self, answers: dict[str, Tensor]) -> dict:
        """The accuracy of answers against the golden."""
        golden = cases_of(read(self.golden)[0])
        return compare.compare(golden, answers, compare.limits_of(self.spec.limits), self.spec.task)


def program(name: str, *places: str) -> str:
    """The path of a program: `name` where it has a '/', else the first of PATH and `places`; "" where it is not."""
    if "/" in name:
        return name if os.access(name, os.X_OK) else ""
    return shutil.which(name) or next((place for place in places if os.access(place, os.X_OK)), "")


def why_ended(ended: child.Ended, log: Path) -> dict:
    """The reason of a record for a child that is no TensorRT build."""
    if ended.cause == "timeout":
        return {"class": "timeout", "text": ended.text}
    if ended.cause in ("memory", "floor") or ended.code in (137, -9):
        return {"class": "out-of-memory", "text": ended.text or "killed"}
    if ended.cause == "no-program":
        return {"class": "tool-missing", "text": ended.text}
    last = ""
    try:
        lines = [line for line in log.read_text(errors="replace")[-8192:].splitlines() if line.strip()]
        last = lines[-1].strip()[:300] if lines else ""
    except OSError:
        pass
    kind = "crashed" if ended.cause == "signal" or ended.code >= 128 else "exit-code"
    return {"class": kind, "text": f"{ended.text or f'exit code {ended.code}'}: {last}"}


class ServerContestant:
    """A configuration behind the line protocol. Resident: one process for all blocks; else a fresh one for each."""

    def __init__(self, job: Job, argv: list[str], log: Path, resident: bool):
        self.argv, self.caps, self.env, self.log, self.resident = argv, job.caps, job.env, log, resident
        self.server: child.Server | None = None

    def open(self) -> child.Server:
        server = child.Server(self.argv, self.caps, self.log, self.env)
        if server.refusal:
            raise RuntimeError(str(server.refusal))
        return server

    def __call__(self, passes: int, cold: bool) -> list[float]:
        server = self.server or self.open()
        if self.resident:
            self.server = server
        elif not cold:
            server.ask(f"time {max(1, passes // 10)}", quiet=True)  # it has just been started
        answer = server.ask(f"{'cold' if cold else 'time'} {passes}", quiet=True)
        if not self.resident:
            server.close()
        if "seconds" not in answer:
            raise RuntimeError(str(answer))
        return answer["seconds"]

    def close(self) -> None:
        if self.server:
            self.server.close()
            self.server = None


def try_server(job: Job, level: str, configuration: str, argv: list[str]) -> dict:
    """Starts a server, has it answer the golden's cases, and ends it: one record with accuracy, peak memory, facts."""
    log = job.folder.log(f"{level}-{configuration}")
    log.unlink(missing_ok=True)
    server = None
    try:
        server = child.Server(argv, job.caps, log, job.env)
        if server.refusal:
            kind = "skipped" if "skipped" in server.refusal else "failed"
            why = server.refusal.get(kind) or {"class": "protocol", "text": str(server.refusal)[:300]}
            return job.record(level, configuration, outcome=kind, reason=why, memory=server.child.memory())
        with tempfile.TemporaryDirectory(dir=job.folder.work("")) as place:
            path = Path(place) / "answers.safetensors"
            answer = server.ask(f"answers {path}")
            if "failed" not in answer:
                answers = read(path)[0]
                answer = server.ask("time 2")
        memory = server.close().memory
        if "failed" in answer:
            return job.record(level, configuration, outcome="failed", reason=answer["failed"], memory=memory)
    except child.Gone as gone:
        return job.record(level, configuration, outcome="failed", reason=why_ended(gone.ended, log), memory=gone.ended.memory)
    except (Malformed, OSError) as error:
        return job.failed(level, configuration, "protocol", str(error))
    finally:
        if server:
            server.close()
    facts = server.facts
    return job.record(level, configuration, runtime=facts.get("runtime", "-"), facts=facts, memory=memory,
                      accuracy=job.judge(answers), command=" ".join(argv))  # fmt: skip


def own_python() -> str:
    return sys.executable or "python3"
