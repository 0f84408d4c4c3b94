"""Levels 2 and 3: a TensorRT engine is built from the ONNX file by trtexec, its answers are held against the golden, and
it is timed. trtexec comes with every JetPack; where it is not there and a Python has `tensorrt`, trt_child.py takes the same options.
Nothing of TensorRT is loaded here. `tool`: the words that start either.

Configurations: trt-fp32; trt-fp16, weak typing, up to TensorRT 10; trt-strong, mixed precision decided beforehand by
ModelOpt's AutoCast in a strongly typed network, from TensorRT 10 on.
"""

from __future__ import annotations

import array
import json
import re
import tempfile
from pathlib import Path

import child
import trtlog
from level import HERE, Job, own_python, program
from tensors import CODES, FLOATS, Malformed, Tensor, cases_of, count_of, floats, read

CONFIGURATIONS = ("trt-fp32", "trt-fp16", "trt-strong")
PLACES = ("/usr/src/tensorrt/bin/trtexec", "/usr/local/tensorrt/bin/trtexec", "/opt/tensorrt/bin/trtexec")
MISSING = "trtexec is neither in PATH nor in /usr/src/tensorrt/bin (--trtexec names one), and {} has no tensorrt to import"
PROBE = "import tensorrt; print('tensorrt', tensorrt.__version__)"


def find(job: Job) -> tuple[list[str], str]:
    """(the tool, ""), or ([], why there is none): trtexec, else the Python API, of --python or else of python3."""
    path = program(job.trtexec or "trtexec", *([] if job.trtexec else PLACES))
    if path:
        return [path], ""
    wanted = [job.python] if job.python else ["python3", own_python()]
    log = job.folder.log("L2-python")
    for name in wanted:
        path = program(name)
        log.unlink(missing_ok=True)
        if path and child.run([path, "-c", PROBE], child.Caps(seconds=120), log).ok and "\ntensorrt " in log.read_text(errors="replace"):
            return [path, "-B", str(HERE / "trt_child.py")], ""
    log.unlink(missing_ok=True)
    return [], MISSING.format(" or ".join(dict.fromkeys(wanted)))


def is_trtexec(tool: list[str]) -> bool:
    return len(tool) == 1


def version(job: Job, tool: list[str]) -> str:
    """As the tool tells it; "" where it does not."""
    log = job.folder.log("L2-version")
    log.unlink(missing_ok=True)
    child.run([*tool, "--help"], child.Caps(seconds=120), log)
    return trtlog.version_of(log.read_text(errors="replace"))


def flags(configuration: str, trt: str) -> tuple[list[str] | None, str]:
    """(flags of a configuration for this version, ""), or (None, why it has none)."""
    major = int(trt.split(".")[0]) if trt else 0
    if configuration == "trt-fp32":
        return [], ""  # TF32 stays on where the board has it, as by default: its accuracy is judged like any other
    if configuration == "trt-fp16":
        return (["--fp16"], "") if major < 11 else (None, f"TensorRT {trt} has no weak fp16: networks are strongly typed")
    return (["--stronglyTyped"] if major < 11 else [], "") if major >= 10 else (None, f"TensorRT {trt or 'of a version not told'} has no strongly typed networks from ONNX")


def autocast(job: Job, python: str, onnx: Path) -> tuple[Path | None, dict | None]:
    """(the ONNX file in mixed precision, None), or (None, the record that says why not)."""
    log = job.folder.log("L2-autocast")
    log.unlink(missing_ok=True)
    out = job.folder.work("model.autocast.onnx")
    if not python or not child.run([python, "-c", "import modelopt.onnx.autocast"], child.Caps(seconds=180), log).ok:
        return None, job.skipped("L2", "trt-strong", "tool-missing", "ModelOpt's AutoCast (nvidia-modelopt[onnx]) is not in the Python of level 1")
    argv = [python, "-m", "modelopt.onnx.autocast", "--onnx_path", str(onnx), "--output_path", str(out), "--low_precision_type", "fp16", "--keep_io_types"]
    ended = child.run(argv, job.caps, log, tick=job.tick)
    if ended.ok and out.exists():
        return out, None
    why = trtlog.classify(log.read_text(errors="replace"), ended.cause, ended.code, ended.text)
    return None, job.record("L2", "trt-strong", outcome="failed", reason={**why.record(), "class": "autocast-" + why.kind})


def build(job: Job, tool: list[str], trt: str, configuration: str, onnx: Path) -> dict:
    """Level 2: the record of one build; the engine is in work/."""
    extra, why_not = flags(configuration, trt)
    if extra is None:
        return job.skipped("L2", configuration, "not-in-this-version", why_not)
    log = job.folder.log(f"L2-{configuration}")
    log.unlink(missing_ok=True)
    engine = engine_of(job, configuration)
    engine.unlink(missing_ok=True)
    only_build = "--buildOnly" if trt.startswith(("8.4", "8.5")) else "--skipInference"
    argv = [*tool, f"--onnx={onnx}", f"--saveEngine={engine}", only_build, f"--builderOptimizationLevel={job.trt_level}", *extra]
    if job.spec.trt_shapes:
        argv.append(f"--shapes={job.spec.trt_shapes}")
    if not is_trtexec(tool):
        argv.append(f"--timingCacheFile={job.folder.work(configuration + '.timing')}")  # trtexec keeps one of its own
    caps = child.Caps(job.build_seconds, job.caps.memory_bytes, job.caps.floor_bytes, job.caps.network)
    ended = child.run(argv, caps, log, tick=job.tick)
    text = log.read_text(errors="replace")
    facts = {"build_seconds": ended.seconds, "notes": list(trtlog.notes_of(text)), "cap_seconds": caps.seconds,
             "tool": "trtexec" if is_trtexec(tool) else "Python API"}  # fmt: skip
    more = {"runtime": f"TensorRT {trt or trtlog.version_of(text) or 'of a version not told'}", "facts": facts,
            "memory": ended.memory, "command": " ".join(argv)}  # fmt: skip
    if ended.ok and engine.exists():
        facts["engine_bytes"] = engine.stat().st_size
        return job.record("L2", configuration, **more)
    why = trtlog.classify(text, ended.cause, ended.code, ended.text)
    kind = "skipped" if why.kind in ("unsupported-device", "device-missing", "flag-unknown") else "failed"
    return job.record("L2", configuration, outcome=kind, reason=why.record(), **more)


def engine_of(job: Job, configuration: str) -> Path:
    return job.folder.work(f"{configuration}.engine")


def read_outputs(path: Path) -> dict[str, Tensor]:
    """trtexec's --exportOutput: [{"name", "dimensions": "1x10", "values": [...]}], six digits a number, and nan and inf as C++
    prints them, which is no JSON. Raises Malformed."""
    try:
        out = {}
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"(?<=[\[, ])-?nan(?=[, \]])", "NaN", re.sub(r"(?<=[\[, -])inf(?=[, \]])", "Infinity", text))
        for one in json.loads(text):
            shape = tuple(int(d) for d in str(one["dimensions"]).split("x") if d)  # "": a scalar
            values = [float(v) for v in one["values"]]
            if count_of(shape) != len(values):
                raise Malformed(f"{path.name}: {len(values)} values for {one['dimensions']}")
            out[one["name"]] = floats(shape, values)
        return out
    except (ValueError, KeyError, TypeError, OSError, OverflowError) as error:
        raise Malformed(f"{path.name}: {error}") from None


def read_times(path: Path) -> list[float]:
    """trtexec's --exportTimes: seconds with the copies in and out. Raises Malformed."""
    try:
        return [float(one["latencyMs"]) / 1e3 for one in json.loads(path.read_text(encoding="utf-8"))]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise Malformed(f"{path.name}: {error}") from None


def as_golden(job: Job, tensor: Tensor, golden: Tensor | None) -> Tensor:
    """Without the leading dims of 1 that the golden has not, and as whole numbers where the golden has such."""
    drop = job.spec.batch_dims
    shape = tensor.shape[drop:] if all(d == 1 for d in tensor.shape[:drop]) else tensor.shape
    values = tensor.values() if golden is not None and golden.dtype not in FLOATS else []
    if values and all(v == v and v.is_integer() and abs(v) < 2**24 for v in values):
        return Tensor(golden.dtype, shape, array.array(CODES[golden.dtype], map(int, values)).tobytes())
    return Tensor(tensor.dtype, shape, tensor.data)


class Engine:
    """An engine that the tool loads and runs; a contestant of the timing. Names of inputs as in the ONNX file."""

    def __init__(self, job: Job, tool: list[str], configuration: str, inputs: Path):
        self.job, self.tool, self.configuration = job, tool, configuration
        self.cases = [case["input"] for case in cases_of(read(inputs)[0])]
        self.log = job.folder.log(f"L3-{configuration}")

    def run(self, case: int, place: Path, *more: str) -> child.Ended:
        loads = []
        for name, tensor in self.cases[case].items():
            path = place / f"{len(loads)}.bin"
            path.write_bytes(tensor.data)
            loads.append(f"{name}:{path}")
        argv = [*self.tool, f"--loadEngine={engine_of(self.job, self.configuration)}", f"--loadInputs={','.join(loads)}", *more]
        if self.job.spec.trt_shapes:
            argv.append(f"--shapes={self.job.spec.trt_shapes}")
        return child.run(argv, self.job.caps, self.log)

    def answers(self) -> tuple[dict[str, Tensor], child.Ended]:
        """The answers to all cases, and how the last run ended (the first that failed)."""
        out, ended = {}, None
        golden = cases_of(read(self.job.golden)[0])
        with tempfile.TemporaryDirectory(dir=self.job.folder.work("")) as place:
            for k in range(len(self.cases)):
                path = Path(place) / "out.json"
                path.unlink(missing_ok=True)
                ended = self.run(k, Path(place), "--iterations=1", "--duration=0", "--warmUp=0", f"--exportOutput={path}")
                if not ended.ok:
                    break
                for name, tensor in read_outputs(path).items():
                    out[f"case{k}.output.{name}"] = as_golden(self.job, tensor, golden[k]["output"].get(name))
        return out, ended

    def __call__(self, passes: int, cold: bool) -> list[float]:
        if cold:
            return []  # the tool does not flush caches between runs
        with tempfile.TemporaryDirectory(dir=self.job.folder.work("")) as place:
            path = Path(place) / "times.json"
            ended = self.run(0, Path(place), f"--iterations={passes}", "--duration=0", "--warmUp=200", "--useCudaGraph",
                             "--useSpinWait", f"--exportTimes={path}")  # fmt: skip
            if not ended.ok:
                raise RuntimeError(ended.text or f"exit code {ended.code}")
            return read_times(path)[-passes:]

    def close(self) -> None:
        pass


def accuracy(job: Job, tool: list[str], trt: str, configuration: str, inputs: Path) -> dict:
    """Level 3: the record of one engine."""
    engine = Engine(job, tool, configuration, inputs)
    engine.log.unlink(missing_ok=True)
    try:
        answers, ended = engine.answers()
    except (Malformed, OverflowError) as error:
        return job.failed("L3", configuration, "output-not-read", str(error))
    more = {"runtime": f"TensorRT {trt or 'of a version not told'}", "memory": ended.memory,
            "facts": {"scope": "the engine with copies in and out, as a CUDA graph", "tool": "trtexec" if is_trtexec(tool) else "Python API"}}  # fmt: skip
    if not ended.ok:
        why = trtlog.classify(engine.log.read_text(errors="replace"), ended.cause, ended.code, ended.text)
        return job.record("L3", configuration, outcome="failed", reason=why.record(), **more)
    return job.record("L3", configuration, accuracy=job.judge(answers), **more)
