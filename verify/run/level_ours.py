"""Level 4: the pack, in a process of its own that runs it as the daemon does (verify/pack/pack_runner.cc)."""

from __future__ import annotations

import os
from pathlib import Path

from level import TREE, Job, ServerContestant, program, try_server

CONFIGURATION = "pack"


def find_runner(job: Job) -> str:
    """--pack-runner, else the one that was built, else one beside mk; "" where there is none."""
    if job.pack_runner:
        return program(os.path.abspath(job.pack_runner))
    beside = Path(os.environ.get("MK_PROGRAM", "/")).parent / "pack_runner"
    return next((str(p) for p in (TREE / "bazel-bin/verify/pack/pack_runner", beside) if os.access(p, os.X_OK)), "")


def find_repository(job: Job) -> str:
    """--repository, else the one that was built, else the quick start's; "" where none has the pack."""
    given = [Path(job.repository)] if job.repository else [TREE / "bazel-bin" / job.spec.pack_repository, TREE / "run/packs"]
    return next((str(place.absolute()) for place in given if (place / job.spec.pack).is_dir()), "")


def argv_of(job: Job) -> list[str]:
    return [find_runner(job), find_repository(job), job.spec.pack, str(job.golden), job.device, str(job.threads)]


def try_pack(job: Job) -> dict:
    """The record of level 4."""
    if not job.spec.pack:
        return job.skipped("L4", CONFIGURATION, "no-pack", "there is no pack of this model")
    if not find_runner(job):
        return job.skipped("L4", CONFIGURATION, "not-built", "bazel build //verify/pack:pack_runner makes it")
    if not find_repository(job):
        return job.skipped("L4", CONFIGURATION, "not-built", f"bazel build {job.spec.pack_target} makes the pack")
    return try_server(job, "L4", CONFIGURATION, argv_of(job))


def contestant(job: Job, resident: bool) -> ServerContestant:
    return ServerContestant(job, argv_of(job), job.folder.log("L4-pack"), resident)
