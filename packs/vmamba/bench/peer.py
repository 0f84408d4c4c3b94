"""The C++ side of a comparison as a child process: //packs/vmamba/bench:forward."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACK = Path(__file__).resolve().parent.parent
ROOT = PACK.parent.parent
BINARY = ROOT / "bazel-bin/packs/vmamba/bench/forward"
sys.path.insert(0, str(PACK / "train"))

import torch  # noqa: E402

from generator import generate_by_rule  # noqa: E402
from vmamba import Scan, VMamba, VMambaConfig  # noqa: E402

CONFIGS = {
    "pico": VMambaConfig(1, 12, (2, 2, 2, 1), 10),
    "tiny": VMambaConfig(3, 96, (2, 2, 8, 2), 1000),
    "small": VMambaConfig(3, 96, (2, 2, 15, 2), 1000, ssm_ratio=2.0),
    "base": VMambaConfig(3, 128, (2, 2, 15, 2), 1000, ssm_ratio=2.0),
}


class Peer:
    """One model of the pack's, with the generator's weights."""

    def __init__(self, config: VMambaConfig, height: int, width: int, threads: int, seed: int = 1):
        if not BINARY.exists():
            raise SystemExit(f"{BINARY} is missing: bazel build -c opt //packs/vmamba/bench:forward")
        arguments = [f"{key.removeprefix('config.')}={v}" for key, v in config.to_metadata().items()]
        arguments += [f"height={height}", f"width={width}", f"threads={threads}", f"seed={seed}"]
        self.process = subprocess.Popen(
            [str(BINARY), *arguments],
            cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._answer()

    def _answer(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"forward ended with {self.process.wait()}")
        return line.strip()

    def ask(self, command: str) -> str:
        """The answer to one command."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self._answer()

    def time(self, count: int = 1) -> list[float]:
        """Seconds of `count` passes."""
        return [int(ns) * 1e-9 for ns in self.ask(f"time {count}").split()]

    def memory(self) -> dict[str, int]:
        """resident, peak, scratch, weights and map, in bytes."""
        words = self.ask("memory").split()
        return {name: int(value) for name, value in zip(words[::2], words[1::2])}

    def close(self) -> None:
        """Ends the child."""
        self.process.stdin.close()
        self.process.wait()


def reference(config: VMambaConfig, scan: Scan, seed: int = 1) -> VMamba:
    """The PyTorch model with the same weights, in evaluation mode."""
    with torch.device("meta"):
        model = VMamba(config, scan)
    weights = {
        name: torch.from_numpy(generate_by_rule(name, tuple(value.shape), seed))
        for name, value in model.state_dict().items()
    }
    model.load_state_dict(weights, strict=True, assign=True)
    return model.eval()


def generated_input(config: VMambaConfig, height: int, width: int, seed: int = 1) -> torch.Tensor:
    """[1, in_chans, height, width], equal to the other side's."""
    return torch.from_numpy(generate_by_rule("input", (config.in_chans, height, width), seed))[None]
