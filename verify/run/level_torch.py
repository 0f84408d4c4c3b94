"""Level 1: PyTorch, eager and torch.compile. The runner itself needs no PyTorch; it looks for a Python that has it."""

from __future__ import annotations

from pathlib import Path

import child
from level import HERE, Job, ServerContestant, own_python, program, try_server, why_ended

PROBE = "import torch; print('torch', torch.__version__)"


def find_python(job: Job) -> tuple[str, str]:
    """(a Python with PyTorch, ""), or ("", why there is none). --python names one, else PATH's python3 and the one that
    runs this are asked."""
    wanted = [job.python] if job.python else ["python3", own_python()]
    log = job.folder.log("L1-python")
    for name in wanted:
        path = program(name)
        if not path:
            continue
        ended = child.run([path, "-c", PROBE], child.Caps(seconds=120), log)
        if ended.ok and "\ntorch " in log.read_text(errors="replace"):
            return path, ""
        log.unlink(missing_ok=True)
    return "", f"{' and '.join(wanted)}: no PyTorch there; --python names a Python that has it"


def argv_of(job: Job, python: str, configuration: str) -> list[str]:
    return [python, "-B", str(HERE / "torch_child.py"), "--model", job.spec.torch_model, "--configuration", configuration,
            "--golden", str(job.golden), "--device", job.device, "--threads", str(job.threads)]  # fmt: skip


def try_one(job: Job, configuration: str, python: str, why_not: str) -> dict:
    """One configuration's record."""
    if not job.spec.torch:
        return job.skipped("L1", configuration, "no-pytorch-source", "a bare ONNX file has no PyTorch form to compile")
    if not python:
        return job.skipped("L1", configuration, "no-pytorch", why_not)
    return try_server(job, "L1", configuration, argv_of(job, python, configuration))


def contestant(job: Job, configuration: str, python: str, resident: bool) -> ServerContestant:
    return ServerContestant(job, argv_of(job, python, configuration), job.folder.log(f"L1-{configuration}"), resident)


def export(job: Job, python: str) -> tuple[Path | None, Path | None, dict | None]:
    """(ONNX, inputs, None), or (None, None, the record that says why not): what level 2 begins with."""
    onnx, inputs = job.folder.work("model.onnx"), job.folder.work("inputs.safetensors")
    argv = argv_of(job, python, job.spec.export_configuration)
    argv[argv.index("--device") + 1] = "cpu"
    log = job.folder.log("L2-onnx-export")
    log.unlink(missing_ok=True)
    try:
        server = child.Server([*argv, "--export", str(onnx), "--inputs", str(inputs)], job.caps, log, job.env)
        if server.refusal:
            kind, why = next(iter(server.refusal.items()))
            return None, None, job.record("L2", "onnx-export", outcome=kind, reason=why)
        server.close()
    except child.Gone as gone:
        return None, None, job.record("L2", "onnx-export", outcome="failed", reason=why_ended(gone.ended, log))
    return onnx, inputs, None
