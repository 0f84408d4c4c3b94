"""Level 1, and the export for level 2, in a process of its own: answers JSON lines (verify/run/README.md).

  torch_child.py --model NAME --configuration eager-...|compile-... --golden FILE --device cpu|cuda [--threads N]
  torch_child.py ... --export FILE.onnx --inputs FILE.safetensors    writes both and ends

Needs PyTorch. Everything that is printed but the answers goes to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path

HERE = Path(__file__).absolute().parent
sys.path.insert(0, str(HERE))
OUT = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # a library that prints does not break the protocol


def say(**answer) -> None:
    OUT.write(json.dumps(answer) + "\n")
    OUT.flush()


def stop(kind: str, name: str, text: str) -> None:
    """The last answer: skipped or failed."""
    say(**{kind: {"class": name, "text": " ".join(str(text).split())[:600]}})
    sys.exit(0)


try:
    import torch
except Exception as error:  # noqa: BLE001, a broken installation may fail in any way
    stop("skipped", "no-pytorch", f"torch cannot be imported: {error}")

import torch_models  # noqa: E402
from tensors import Malformed, Tensor, cases_of, floats, read, write  # noqa: E402

COLD_BYTES = 256 << 20  # more than any cache of these machines, twice


def check_device(device: str) -> None:
    """Ends the process where this PyTorch has no kernels for the board: no fault of the model."""
    if device == "cpu":
        return
    if not torch.cuda.is_available():
        stop("skipped", "pytorch-without-cuda", f"PyTorch {torch.__version__} sees no CUDA device")
    major, minor = torch.cuda.get_device_capability()
    archs = torch.cuda.get_arch_list()
    try:
        torch.ones(8, device=device).add_(1).sum().item()
    except Exception as error:  # noqa: BLE001
        stop("skipped", "pytorch-without-kernels-for-this-board",
             f"the board is sm_{major}{minor}, PyTorch {torch.__version__} has {', '.join(archs)}: {error}")  # fmt: skip


def facts_of(args, model) -> dict:
    facts = {"runtime": f"PyTorch {torch.__version__}", "threads": torch.get_num_threads(), "scope": model.scope}
    if args.device != "cpu":
        facts["arch_list"] = torch.cuda.get_arch_list()
        facts["sm"] = "".join(map(str, torch.cuda.get_device_capability()))
        facts["tf32"] = torch.backends.cuda.matmul.allow_tf32
    else:
        facts["cpu_capability"] = torch.backends.cpu.get_cpu_capability()
    return facts


class Runner:
    """The model with its inputs on the device."""

    def __init__(self, args):
        self.device = args.device
        self.model = torch_models.load(args.model, args.configuration, args.device)
        cases = cases_of(read(args.golden)[0])
        self.inputs = [{n: self._to_torch(t) for n, t in self.model.prepare(c["input"]).items()} for c in cases]
        self.turn = 0

    def _to_torch(self, tensor: Tensor):
        kinds = {"F32": torch.float32, "U8": torch.uint8, "I64": torch.int64, "I32": torch.int32, "F16": torch.float16}
        flat = torch.frombuffer(bytearray(tensor.data), dtype=kinds[tensor.dtype])
        return flat.reshape(tensor.shape).to(self.device)

    def sync(self) -> None:
        if self.device != "cpu":
            torch.cuda.synchronize()

    def answers(self, path: str) -> dict:
        out = {}
        with torch.inference_mode():
            for k, inputs in enumerate(self.inputs):
                for name, value in self.model.run(inputs).items():
                    value = value.detach().float().cpu().contiguous()
                    out[f"case{k}.output.{name}"] = floats(value.shape, value.flatten().tolist())
        write(Path(path), out)
        return {}

    def time(self, count: int, cold: bool) -> dict:
        seconds = []
        sweep = torch.zeros(COLD_BYTES // 4, device=self.device) if cold else None
        with torch.inference_mode():
            for _ in range(count):
                inputs = self.inputs[self.turn % len(self.inputs)]
                self.turn += 1
                if sweep is not None:
                    sweep.add_(1)
                self.sync()
                begin = time.perf_counter()
                self.model.run(inputs)
                self.sync()
                seconds.append(time.perf_counter() - begin)
        return {"seconds": seconds}


def first_pass(runner: Runner) -> dict:
    """The first pass, which compiles; what the compiler said of itself."""
    from torch._dynamo.utils import counters

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.perf_counter()
        runner.time(1, False)
        facts = {"build_seconds": time.perf_counter() - begin}
    texts = [str(w.message) for w in caught]
    sys.stderr.write("".join(text + "\n" for text in texts))
    facts["graph_breaks"] = sum(counters["graph_break"].values())
    fell = next((t for t in texts if "complex operators" in t or "falling back to eager" in t.lower()), None)
    if fell:
        facts["fallback"] = " ".join(fell.split())[:200]
    return facts


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--configuration", required=True)
    parser.add_argument("--golden", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--export", type=Path)
    parser.add_argument("--inputs", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    check_device(args.device)
    try:
        runner = Runner(args)
    except (Malformed, OSError) as error:
        stop("failed", "golden", error)
    if args.export:
        inputs = {f"case{k}.input.{n}": floats(t.shape, t.cpu().flatten().tolist())
                  for k, case in enumerate(runner.inputs) for n, t in case.items()}  # fmt: skip
        write(args.inputs, inputs)
        try:
            torch_models.export(runner.model, runner.inputs[0], args.export)
        except Exception as error:  # noqa: BLE001
            stop("failed", "onnx-export", f"{type(error).__name__}: {error}")
        say(ready={"runtime": f"PyTorch {torch.__version__}"})
        return
    try:
        facts = first_pass(runner)
    except Exception as error:  # noqa: BLE001
        stop("failed", type(error).__name__, error)
    say(ready={**facts_of(args, runner.model), **facts})
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        try:
            say(**(runner.answers(rest) if word == "answers" else runner.time(int(rest), word == "cold")))
        except Exception as error:  # noqa: BLE001
            stop("failed", type(error).__name__, error)


if __name__ == "__main__":
    main()
