#!/usr/bin/env python3
"""The front of mk scan: a torch.export program (X.pt2) or a config of transformers (config.json) to ONNX.

  main.py SOURCE --out DIR [--exporter auto|new|old] [--layers N] [--shapes NAME=1x3x224x224] [--seconds S] [--memory GIB]

Exports in a child process with caps and without a network, and prints one JSON object:
  {"exported": {"onnx", "kind", "exporter", "inputs", "notes", "hidden", "seconds", "peak_resident_bytes"}} or
  {"refused": {"kind", "stage", "text", "hint", "spot"}, "understood": whether the file, the flags and this Python are right}.
Exit code 0: exported; 1: understood, but not exported; 2: the file, the flags or this Python are wrong; 130: interrupted.
`mk scan` starts it; this Python exports, so it needs PyTorch, onnx and onnxscript, and transformers for a config.
"""

from __future__ import annotations

import argparse
import errno
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).absolute().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "run")]

import child  # noqa: E402
import config  # noqa: E402
import pt2  # noqa: E402
import reasons  # noqa: E402
from models import Refused as BadShapes, parse_shapes  # noqa: E402
from refused import NOT_EXPORTED, Refused, line  # noqa: E402

SHARE = 0.75  # of what the machine could give out: the default cap on memory
KEPT = ("model.onnx", "model.onnx.data")


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="front", description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--exporter", choices=("auto", "new", "old"), default="auto")
    parser.add_argument("--layers", type=int, default=0)
    parser.add_argument("--shapes", action="append", default=[])
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--memory", type=float, default=0, metavar="GIB")
    return parser.parse_args(argv)


def request_of(args: argparse.Namespace) -> dict:
    """What the child is asked for; looks at the source as far as it can be without PyTorch. Raises Refused."""
    try:
        shapes = parse_shapes(args.shapes)
    except BadShapes as error:
        raise Refused("flags", "starting", str(error)) from None
    path = args.source / "config.json" if args.source.is_dir() else args.source
    if not path.is_file():
        raise Refused("no-file", "starting", f"{path} is not there" if args.source.is_dir() else "it is not there, or no plain file")
    memory = int(args.memory * 2**30) or int(child.mem_available() * SHARE)
    request = {"path": str(path.absolute()), "out": str(args.out.absolute()), "exporter": args.exporter, "layers": args.layers,
               "shapes": shapes, "memory_bytes": memory}  # fmt: skip
    if path.suffix == ".json":
        config.read(path)
        return {"kind": "config", **request}
    if args.layers or shapes:
        raise Refused("flags", "starting", "--layers and --shapes are for a config of transformers; a program has its own")
    if args.exporter == "old":
        raise Refused("flags", "starting", "a torch.export program can be exported by the new exporter alone")
    pt2.check(path)
    return {"kind": "program", **request}


def last_lines(log: Path) -> tuple[str, str]:
    """(the stage that a log tells last, its last line)."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, file.seek(0, 2) - 65536))
            lines = [one for one in file.read().decode(errors="replace").splitlines() if one.strip()]
    except OSError:
        return "starting", ""
    stages = [one[7:] for one in lines if one.startswith("@stage ")]
    rest = [one for one in lines if not one.startswith(("@stage ", "$ "))]
    return stages[-1] if stages else "starting", rest[-1].strip() if rest else ""


def tick(seconds: float) -> None:
    if sys.stderr.isatty() and seconds > 1:
        print(f"\r\x1b[Kexporting ... {seconds:.0f} s", end="", file=sys.stderr, flush=True)


def export(args: argparse.Namespace, place: Path) -> dict:
    """Exports into `place`; what the child answered, with how it ended. Raises Refused."""
    request = request_of(args)
    request["out"] = str(place)
    (place / "request.json").write_text(json.dumps(request), encoding="utf-8")
    caps = child.Caps(seconds=args.seconds, memory_bytes=request["memory_bytes"])
    env = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TRANSFORMERS_VERBOSITY": "error", "OMP_NUM_THREADS": "1"}
    argv = [sys.executable, "-B", str(HERE / "export_child.py"), str(place / "request.json")]
    log = args.out / "export.log"
    log.unlink(missing_ok=True)
    ended = child.run(argv, caps, log, env, tick)
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    try:
        answer = json.loads((place / "answer.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        answer = {}
    if "refused" in answer:
        raise Refused(**answer["refused"])
    if "exported" not in answer or not ended.ok:
        stage, last = last_lines(log)
        raise reasons.of_end(stage, ended.cause, ended.code, ended.text, last)
    return {**answer["exported"], "seconds": round(ended.seconds, 1), "peak_resident_bytes": ended.memory["peak_resident_bytes"]}


def refuse(refused: Refused) -> int:
    understood = refused.kind in NOT_EXPORTED
    print(json.dumps({"refused": refused.record(), "understood": understood}))
    return 1 if understood else 2


def main(argv: list[str]) -> int:
    args = arguments(argv)
    try:
        args.out.mkdir(parents=True, exist_ok=True)
        for name in KEPT:
            if (args.out / name).exists():
                raise Refused("flags", "starting", f"{args.out / name} is there already, and is left alone")
        with tempfile.TemporaryDirectory(prefix="export-", dir=args.out) as place:
            made = export(args, Path(place))
            for name in KEPT:
                if (Path(place) / name).exists():
                    (Path(place) / name).rename(args.out / name)
        made["onnx"] = str((args.out / KEPT[0]).absolute())
        print(json.dumps({"exported": made}))
        return 0
    except Refused as refused:
        return refuse(refused)
    except OSError as error:
        return refuse(Refused("no-space" if error.errno == errno.ENOSPC else "files", "starting", line(error)))
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
