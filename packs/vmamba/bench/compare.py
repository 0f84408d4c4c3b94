"""Latency and memory of the pack beside PyTorch on the CPU: one run, the two in turn.

usage: compare.py [--models pico,tiny] [--size 224x224] [--threads 1,2] [--rounds 15]

Batch 1, generated weights, the same on both sides. PyTorch runs the pack's reference model in
inference mode with each of the scans of scans.py, and the two that are made of few operations also
compiled by torch.compile (the whole model, static shapes). In every round each contestant runs
once, in a new order; medians over the rounds are printed, and how many times faster the pack is.
The share of the roof is the model's multiply-adds over what the same threads reach in registers.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import time
from typing import Callable

import peer  # first: it adds the reference's folder to the path
import torch
from torch import nn

import scans

EAGER = {
    "eager, steps": scans.steps,
    "eager, chunked": scans.chunked,
    "eager, associative": scans.associative,
}
COMPILED = {"compiled, chunked": scans.chunked, "compiled, associative": scans.associative}


def flops(model: nn.Module, inputs: torch.Tensor) -> int:
    """2 x the multiply-adds of every Linear and convolution, and of the scan's projections."""
    total = 0

    def count(module: nn.Module, args: tuple, out: torch.Tensor) -> None:
        nonlocal total
        rows = out.numel() // out.shape[-1]  # all are channel-last here
        if isinstance(module, nn.Linear):
            total += 2 * rows * module.in_features * module.out_features
        elif isinstance(module, nn.Conv2d):
            total += 2 * rows * module.weight.numel()
        elif hasattr(module, "x_proj_weight"):
            rows = args[0].numel() // args[0].shape[-1]
            total += 2 * rows * (module.x_proj_weight.numel() + module.dt_projs_weight.numel())

    hooks = [m.register_forward_hook(count) for m in model.modules()]
    with torch.inference_mode():
        model(inputs)
    for hook in hooks:
        hook.remove()
    return total


def contestant(name: str, config, inputs: torch.Tensor) -> Callable[[], float] | None:
    """A function that runs once and returns seconds; None where it does not work here."""
    scan = {**EAGER, **COMPILED}[name]
    model: Callable = peer.reference(config, scan)
    if name in COMPILED:
        torch._dynamo.reset()
        torch._dynamo.config.cache_size_limit = 64
        model = torch.compile(model, dynamic=False)

    def run() -> float:
        with torch.inference_mode():
            begin = time.perf_counter()
            model(inputs)
            return time.perf_counter() - begin

    try:
        begin = time.perf_counter()
        run()
        print(f"  {name}: first pass {time.perf_counter() - begin:.1f} s", flush=True)
        run()
    except Exception as error:  # noqa: BLE001, a compiler may fail in any way
        print(f"  {name}: does not work here: {type(error).__name__}: {str(error).splitlines()[0]}")
        return None
    return run


def status_bytes(key: str) -> int:
    """A line of this process's status."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key))


def child_peak(model: str, size: str, threads: int, name: str) -> int:
    """Peak resident bytes of a process that loads one contestant and runs it three times."""
    arguments = ["--peak-of", name, "--models", model, "--size", size, "--threads", str(threads)]
    lines = subprocess.run(
        [sys.executable, __file__, *arguments], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return int(lines[-1])


def compare(name: str, height: int, width: int, threads: int, rounds: int, memory: bool) -> None:
    """One model at one size on one number of threads."""
    config = peer.CONFIGS[name]
    torch.set_num_threads(threads)
    inputs = peer.generated_input(config, height, width)
    ours = peer.Peer(config, height, width, threads)
    roof = float(ours.ask("roof"))
    print(f"{name} {height}x{width}, threads {threads}, kernels {ours.ask('isa')}", flush=True)
    ours.time(3)
    runs: dict[str, Callable[[], float]] = {"pack": lambda: ours.time()[0]}
    for label in [*EAGER, *COMPILED]:
        run = contestant(label, config, inputs)
        if run is not None:
            runs[label] = run
    seconds: dict[str, list[float]] = {label: [] for label in runs}
    order = list(runs)
    for _ in range(rounds):
        random.shuffle(order)
        for label in order:
            seconds[label].append(runs[label]())
    medians = {label: statistics.median(values) for label, values in seconds.items()}
    work = flops(peer.reference(config, scans.associative), inputs)
    for label, median in medians.items():
        low, high = min(seconds[label]), max(seconds[label])
        ratio = "" if label == "pack" else f"  pack is {median / medians['pack']:6.2f} x faster"
        print(
            f"  {label:22s} median {median * 1e3:9.3f} ms (min {low * 1e3:.3f}, max {high * 1e3:.3f})"
            f"{ratio}"
        )
    share = work / medians["pack"] / roof
    print(f"  {work / 1e9:.3f} GFLOP; roof {roof / 1e9:.1f} GFLOP/s; the pack reaches {share:.1%}")
    if memory:
        facts = ours.memory()
        print(f"  pack: peak resident {facts['peak'] / 1e6:.0f} MB, weights {facts['weights'] / 1e6:.1f}"
              f" MB, scratch {facts['scratch'] / 1e6:.2f} MB, first map {facts['map'] / 1e6:.2f} MB")
        for label in [label for label in runs if label != "pack"]:
            peak = child_peak(name, f"{height}x{width}", threads, label)
            print(f"  {label}: peak resident {peak / 1e6:.0f} MB")
    ours.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="pico,tiny")
    parser.add_argument("--size", default="224x224")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-memory", action="store_true", help="leave the peaks out")
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    args = parser.parse_args()
    height, width = map(int, args.size.split("x"))
    if args.peak_of:
        config = peer.CONFIGS[args.models]
        torch.set_num_threads(int(args.threads))
        run = contestant(args.peak_of, config, peer.generated_input(config, height, width))
        run()
        print(status_bytes("VmHWM:"))
        return
    print(f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}")
    for name in args.models.split(","):
        for threads in args.threads.split(","):
            compare(name, height, width, int(threads), args.rounds, not args.no_memory)


if __name__ == "__main__":
    main()
