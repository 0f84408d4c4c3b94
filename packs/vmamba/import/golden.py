"""Golden vectors for an imported pack, from the same checkpoint by the PyTorch reference.

    python golden.py CHECKPOINT golden.safetensors [--resize 256 --crop 224 --cases 2]
    mk import vmamba CHECKPOINT --repository DIR --golden golden.safetensors

Needs PyTorch and numpy (../train/requirements.txt). The images are made here, from a seed: smooth
colours with noise, of other sizes than the crop, so that the resize is part of what is proven. The
network runs in float64 from the stored weights; logits are rounded once to float32. The daemon
compares with them at every load.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "train"))
from preprocess import PreprocessConfig, preprocess  # noqa: E402
from vmamba import VMamba, VMambaConfig, scan_sequential  # noqa: E402

_FROM_SAFETENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
_TO_SAFETENSORS = {"float32": "F32", "uint8": "U8"}
PREFIXES = ("module.", "_orig_mod.", "model.")


def write_tensors(path: Path, tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """A safetensors file, the same bytes each time."""
    header: dict[str, object] = {"__metadata__": metadata}
    offset = 0
    for name, array in tensors.items():
        span = [offset, offset + array.nbytes]
        header[name] = {"dtype": _TO_SAFETENSORS[array.dtype.name], "shape": list(array.shape)}
        header[name]["data_offsets"] = span
        offset = span[1]
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    data = b"".join(np.ascontiguousarray(array).tobytes() for array in tensors.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_state(path: Path, key: str) -> dict[str, torch.Tensor]:
    """The state dict of a checkpoint, names without the prefixes that an import takes off."""
    raw = path.read_bytes()
    if raw[:4] == b"PK\3\4":
        state = torch.load(path, map_location="cpu", weights_only=True)
        key = key or next((name for name in ("model", "state_dict") if name in state), "")
        state = state[key] if key else state
    else:
        size = struct.unpack("<Q", raw[:8])[0]
        header = json.loads(raw[8 : 8 + size])
        state = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = (8 + size + at for at in entry["data_offsets"])
            if entry["dtype"] == "BF16":
                bits = np.frombuffer(raw[begin:end], "<u2").astype(np.uint32) << 16
                array = bits.view(np.float32)
            else:
                array = np.frombuffer(raw[begin:end], _FROM_SAFETENSORS[entry["dtype"]])
            state[name] = torch.from_numpy(array.reshape(entry["shape"]).copy())
    for prefix in PREFIXES * 2:
        if state and all(name.startswith(prefix) for name in state):
            state = {name[len(prefix) :]: value for name, value in state.items()}
    return dict(state)


def config_of(state: dict[str, torch.Tensor]) -> VMambaConfig:
    """The sizes, by the shapes."""
    blocks = {tuple(name.split(".")[1:4:2]) for name in state if ".blocks." in name}
    depths = [0] * (1 + max(int(stage) for stage, _ in blocks))
    for stage, _ in blocks:
        depths[int(stage)] += 1
    embed = state["patch_embed.5.weight"].shape[0]
    first = "layers.0.blocks.0."
    rank = state[first + "op.dt_projs_weight"].shape[2]
    inner = state[first + "op.conv2d.weight"].shape[0]
    gated = state[first + "op.in_proj.weight"].shape[0] == 2 * inner
    return VMambaConfig(
        in_chans=state["patch_embed.0.weight"].shape[1],
        embed_dim=embed,
        depths=tuple(depths),
        num_classes=state["classifier.head.weight"].shape[0],
        ssm_ratio=inner / embed,
        d_state=state[first + "op.A_logs"].shape[1],
        dt_rank="auto" if rank == -(-embed // 16) else rank,
        mlp_ratio=state[first + "mlp.fc1.weight"].shape[0] / embed,
        forward_type="v05" if gated else "v05_noz",
    )


def picture(height: int, width: int, channels: int, seed: int) -> np.ndarray:
    """[height, width, channels] uint8: waves of colour, and noise."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    layers = []
    for _ in range(channels):
        fy, fx, phase = random.uniform(1, 9, 2).tolist() + [random.uniform(0, 6)]
        layers.append(np.sin(fy * y + fx * x + phase))
    waves = 127.5 + 100 * np.stack(layers, -1) + random.normal(0, 9, (height, width, channels))
    return np.clip(np.rint(waves), 0, 255).astype(np.uint8)


def logits(state: dict[str, torch.Tensor], images: list[np.ndarray], cfg: PreprocessConfig) -> list[np.ndarray]:
    model = VMamba(config_of(state), scan_sequential).double().eval()
    # Linear layers stored as 1x1 convolutions hold the same numbers.
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    model.load_state_dict({name: value.reshape(shapes[name]) for name, value in state.items()}, strict=True)
    answers = []
    for image in images:
        inputs = torch.from_numpy(preprocess(image, cfg))[None].double()
        with torch.no_grad():
            answers.append(model(inputs)[0].numpy().astype(np.float32))
    return answers


def make_golden(state: dict[str, torch.Tensor], images: list[np.ndarray], cfg: PreprocessConfig) -> dict[str, np.ndarray]:
    tensors = {}
    for case, (image, answer) in enumerate(zip(images, logits(state, images, cfg))):
        tensors[f"case{case}.input.image"] = image
        tensors[f"case{case}.output.logits"] = answer
    return tensors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--state-dict", default="")
    parser.add_argument("--resize", type=int, default=256)
    parser.add_argument("--filter", choices=("bicubic", "triangle"), default="bicubic")
    parser.add_argument("--crop", type=int, default=224)
    parser.add_argument("--mean", default="0.485,0.456,0.406")
    parser.add_argument("--std", default="0.229,0.224,0.225")
    parser.add_argument("--cases", type=int, default=2)
    args = parser.parse_args()
    state = read_state(args.checkpoint, args.state_dict)
    channels = state["patch_embed.0.weight"].shape[1]
    mean, std = (tuple(map(float, text.split(","))) for text in (args.mean, args.std))
    cfg = PreprocessConfig(args.resize, args.crop, 0, channels, mean, std, args.filter)
    sides = [(97, 131), (203, 151), (64, 64)]
    images = [picture(*sides[i % 3], channels, seed=i) for i in range(args.cases)]
    write_tensors(args.out, make_golden(state, images, cfg), {"cases": str(args.cases)})
    print(f"{args.out}: {args.cases} cases, {args.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
