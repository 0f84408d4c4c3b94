"""How the cost of a model grows with its input: time per pixel, and scratch beside the first map.

usage: scaling.py [--model tiny] [--sizes 224x224,448x448,1024x1024,512x1024] [--threads 1] [--cpu-time]
"""

from __future__ import annotations

import argparse
import statistics

import peer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--sizes", default="224x224,448x448,512x1024,1024x1024")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpu-time", action="store_true", help="where others use the machine")
    args = parser.parse_args()
    config = peer.CONFIGS[args.model]
    contestants = {}
    for size in args.sizes.split(","):
        height, width = map(int, size.split("x"))
        contestants[size] = peer.Peer(config, height, width, args.threads), height * width
    seconds: dict[str, list[float]] = {size: [] for size in contestants}
    for ours, _ in contestants.values():
        ours.time(1)
    for _ in range(args.rounds):
        for size, (ours, pixels) in contestants.items():
            repeats = max(1, 2 * 224 * 224 * 4 // pixels)
            seconds[size].append(statistics.median(ours.time(repeats, cpu=args.cpu_time)))
    first = None
    for size, (ours, pixels) in contestants.items():
        median = statistics.median(seconds[size])
        first = first or median / pixels
        facts = ours.memory()
        print(
            f"{args.model} {size:>10s}: {median * 1e3:9.2f} ms, {median / pixels * 1e9:7.1f} ns a pixel"
            f" ({median / pixels / first:.2f} of the first), scratch {facts['scratch'] / 1e6:7.2f} MB,"
            f" {facts['scratch'] / facts['map']:.2f} of the first map"
        )
        ours.close()


if __name__ == "__main__":
    main()
