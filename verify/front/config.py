"""What a config.json of transformers says, looked at before transformers does. Standard library only.

Code that comes with a model is never run: where the architecture is in transformers its own class is used, elsewhere the
file is refused. Keys that would load something else (weights of a backbone, kernels, quantization) are taken out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from refused import Refused, line

MAX_BYTES = 16 << 20
STAGE = "reading the config"
DROPPED = {
    "auto_map": "the code that comes with the model is not used",
    "quantization_config": "weights are random and not quantized",
    "compression_config": "weights are random and not compressed",
    "attn_implementation": "", "_attn_implementation": "", "_attn_implementation_internal": "",
    "dtype": "", "torch_dtype": "", "_name_or_path": "", "transformers_weights": "",
}  # fmt: skip
LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers", "num_encoder_layers",
          "num_decoder_layers", "encoder_num_layers", "decoder_num_layers")  # fmt: skip


@dataclass
class Config:
    """`own_code`: the file names code that comes with it."""

    values: dict
    model_type: str
    architectures: list[str]
    own_code: bool
    notes: list[str] = field(default_factory=list)


def drop(values: object, notes: list[str]) -> object:
    """`values` without the keys of DROPPED, at any depth."""
    if isinstance(values, list):
        return [drop(value, notes) for value in values]
    if not isinstance(values, dict):
        return values
    for key in values:
        text = DROPPED.get(key)
        if text and values[key] and f"{key}: {text}" not in notes:
            notes.append(f"{key}: {text}")
    kept = {key: drop(value, notes) for key, value in values.items() if key not in DROPPED}
    return {key: False if key == "use_pretrained_backbone" else value for key, value in kept.items()}


def read(path: Path) -> Config:
    """Raises Refused."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise Refused("no-config", STAGE, f"{path.stat().st_size} bytes, the limit is {MAX_BYTES}")
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Refused("no-config", STAGE, line(error)) from None
    if not isinstance(values, dict):
        raise Refused("no-config", STAGE, "it holds no JSON object")
    model_type = values.get("model_type")
    if not isinstance(model_type, str) or not model_type:
        raise Refused("no-config", STAGE, "it has no model_type, so it is no config.json of transformers")
    architectures = [name for name in values.get("architectures") or [] if isinstance(name, str)]
    own_code, notes = bool(values.get("auto_map")), []
    return Config(drop(values, notes), model_type, architectures, own_code, notes)


def cut_layers(values: dict, count: int) -> list[str]:
    """Sets every depth of more than `count` layers to it, in `values` and the configs inside; the names of what was cut, like
    "text_config.num_hidden_layers 24". Lists of one entry a layer are cut to fit."""
    cut = []
    for key, value in list(values.items()):
        if isinstance(value, dict):
            cut += [f"{key}.{one}" for one in cut_layers(value, count)]
        elif key in LAYERS and "depths" not in values and isinstance(value, int) and not isinstance(value, bool) and value > count:
            values[key] = count
            cut.append(f"{key} {value}")
        elif key == "depths" and isinstance(value, list) and all(isinstance(v, int) for v in value) and max(value, default=0) > count:
            values[key] = [min(v, count) for v in value]
            cut.append(f"depths {'-'.join(map(str, value))}")
        elif key in ("layer_types", "layers_block_type", "mlp_layer_types") and isinstance(value, list) and len(value) > count:
            values[key] = value[:count]
    return cut
