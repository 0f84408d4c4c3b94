"""The models of level 1 in PyTorch: how each is made, fed and exported. One entry a model; imported by torch_child.py."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import torch

from tensors import Tensor, floats, read

TREE = Path(__file__).absolute().parent.parent.parent


@dataclass
class Model:
    """`prepare`: the golden's inputs to the network's; `run`: inputs by name to outputs by name."""

    prepare: Callable[[dict[str, Tensor]], dict[str, Tensor]]
    run: Callable
    module: torch.nn.Module
    output: str
    scope: str  # what a timed pass holds


def _pico_input(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """UINT8 [28,28,1] to [1,1,32,32]: packs/vmamba/train/preprocess.py for a picture that needs no resize."""
    image = inputs["image"]
    if image.shape != (28, 28, 1):
        raise ValueError(f"image {list(image.shape)}: level 1 takes [28, 28, 1]")
    pixels = torch.frombuffer(bytearray(image.data), dtype=torch.uint8).reshape(28, 28).float()
    padded = torch.nn.functional.pad(pixels, (2, 2, 2, 2)) / 255
    scaled = (padded - torch.tensor(0.2860)) / torch.tensor(0.3530)
    return {"input": floats((1, 1, 32, 32), scaled.flatten().tolist())}


def _vmamba_pico(configuration: str, device: str) -> Model:
    sys.path[:0] = [str(TREE / "packs/vmamba/train"), str(TREE / "packs/vmamba/bench")]
    import scans
    from vmamba import VMamba, VMambaConfig

    kind, scan = configuration.split("-")
    tensors, metadata = read(TREE / "packs/vmamba/pico/model.safetensors")
    module = VMamba(VMambaConfig.from_metadata(metadata), getattr(scans, scan))
    state = {n: torch.frombuffer(bytearray(t.data), dtype=torch.float32).reshape(t.shape) for n, t in tensors.items()}
    module.load_state_dict(state, strict=True)
    module = module.eval().to(device)
    if kind == "compile":  # block by block: the unrolled scans of all blocks in one piece compile for minutes
        for layer in module.layers:
            for block in layer.blocks:
                block.compile(dynamic=False)
    return Model(_pico_input, lambda inputs: {"logits": module(inputs["input"])[0]}, module, "logits",
                 "the network, from its prepared input to the logits")  # fmt: skip


MODELS = {"vmamba-pico": _vmamba_pico}


def load(name: str, configuration: str, device: str) -> Model:
    """Raises KeyError for a model that is not here."""
    return MODELS[name](configuration, device)


def export(model: Model, inputs: dict, path: Path) -> None:
    """ONNX by torch's exporter; raises what it raises."""
    names = list(inputs)
    with torch.inference_mode():
        torch.onnx.export(model.module.cpu(), tuple(inputs[n].cpu() for n in names), str(path), input_names=names,
                          output_names=[model.output], opset_version=17, dynamo=False)  # fmt: skip
