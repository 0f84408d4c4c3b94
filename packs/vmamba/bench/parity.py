"""Every stage of full-size models against the PyTorch reference, with generated weights.

usage: parity.py [--models tiny,small,base] [--sizes 224x224,160x288] [--threads 2]

Exit status 1 when a stage's rel_l2 passes 1e-5. PyTorch runs in float32 with the whole-tensor scan;
the difference is therefore that of two float32 computations.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import peer  # first: it adds the reference's folder to the path
import torch

from tensor_file import read_tensors
from vmamba import scan_whole_tensor

MAX_REL_L2 = 1e-5


def check(name: str, height: int, width: int, threads: int) -> bool:
    """One model at one size; prints a line a stage."""
    config = peer.CONFIGS[name]
    model = peer.reference(config, scan_whole_tensor)
    taps: dict[str, torch.Tensor] = {}
    with torch.inference_mode():
        model(peer.generated_input(config, height, width), taps)
    with tempfile.TemporaryDirectory() as folder:
        ours = peer.Peer(config, height, width, threads)
        isa = ours.ask("isa")
        tensors, _ = read_tensors(Path(ours.ask(f"dump {folder}/steps.safetensors")))
        ours.close()
    good = tensors.keys() == taps.keys()
    worst = 0.0
    for step, want in taps.items():
        got = torch.from_numpy(tensors[step]).double().reshape(-1)
        want = want[0].double().reshape(-1)
        error = float((got - want).norm() / want.norm())
        worst = max(worst, error)
        good = good and error <= MAX_REL_L2  # false for NaN
        kept = "blocks" not in step or step.endswith(f".{config.depths[int(step.split('.')[1])] - 1}")
        if kept:
            print(f"{name} {height}x{width} {isa} {step}: rel_l2 {error:.2e}")
    print(f"{'ok  ' if good else 'FAIL'} {name} {height}x{width}: {len(taps)} steps, worst {worst:.2e}")
    return good


def main() -> int:
    """Exit status 1 on a mismatch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="tiny")
    parser.add_argument("--sizes", default="224x224,160x288")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    results = [
        check(name, *map(int, size.split("x")), args.threads)
        for name in args.models.split(",")
        for size in args.sizes.split(",")
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
