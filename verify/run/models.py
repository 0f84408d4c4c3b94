"""What `mk verify` knows about each model: inputs, golden, bounds, and how each level gets it. Data; pure.

A model that is no entry here can be judged as a bare ONNX file (levels 2 and 3), with a golden of one's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class ModelSpec:
    """One model. Paths are relative to the tree."""

    name: str
    shapes: str  # of the inputs, as every record states them
    golden: str  # safetensors, tensors.cases_of
    limits: dict = field(default_factory=dict)  # compare.Limits
    task: dict | None = None  # compare.task_score, with "output" and "least"
    torch: tuple[str, ...] = ()  # configurations of level 1: eager-... and compile-...
    torch_model: str = ""  # its entry in torch_models.MODELS
    export_configuration: str = ""  # which of them is exported to ONNX
    onnx: str = ""  # a ready file, where there is one
    trt_shapes: str = ""  # trtexec's --shapes, where the ONNX has free dims
    batch_dims: int = 0  # leading dims of 1 that a network's outputs have and the golden's have not
    pack: str = ""  # its name in a repository
    pack_repository: str = ""  # below bazel-bin
    pack_target: str = ""  # what builds it


VMAMBA_PICO = ModelSpec(
    name="vmamba-pico",
    shapes="image 28x28x1 (network input 1x1x32x32)",
    golden="packs/vmamba/pico/golden.safetensors",
    limits={"rel_l2": 1e-3, "max_rel": 1e-2, "floor": 1e-6},
    task={"kind": "top-k", "output": "logits", "k": 1, "least": 1.0},
    torch=("eager-public", "eager-associative", "compile-chunked"),
    torch_model="vmamba-pico",
    export_configuration="eager-associative",
    batch_dims=1,
    pack="vmamba-pico",
    pack_repository="packs/vmamba/repository",
    pack_target="//packs/vmamba:repository",
)
MODELS = {spec.name: spec for spec in (VMAMBA_PICO,)}


class Refused(ValueError):
    """Why a model cannot be judged as it was given."""


def parse_shapes(texts: list[str]) -> dict[str, list[int]]:
    """NAME=1x3x224x224 each. Raises Refused."""
    out = {}
    for text in texts:
        name, equals, dims = text.partition("=")
        parts = dims.split("x")
        if not equals or not name or not all(part.isdigit() and 0 < int(part) < 1 << 31 for part in parts):
            raise Refused(f"--shapes {text!r}: must read NAME=1x3x224x224")
        out[name] = [int(part) for part in parts]
    return out


def fill_shapes(inputs: list[dict], given: dict[str, list[int]]) -> dict[str, list[int]]:
    """The shapes of all inputs of an ONNX file (`mk scan --json`: name, shape as "[1, 3, H, W]"), free dims filled from
    `given`. Never guesses: raises Refused naming what is needed, or what does not fit."""
    out, missing = {}, []
    for one in inputs:
        dims = [dim.strip() for dim in one["shape"].strip("[]").split(",") if dim.strip()]
        name = one["name"]
        if name in given:
            if len(given[name]) != len(dims):
                raise Refused(f"--shapes {name}: {len(given[name])} dims, the model has {len(dims)}")
            for have, want in zip(given[name], dims):
                if want.isdigit() and int(want) != have:
                    raise Refused(f"--shapes {name}: {have} where the model says {want}")
            out[name] = given[name]
        elif all(d.isdigit() for d in dims):
            out[name] = [int(d) for d in dims]
        else:
            missing.append(f"{name} ({', '.join(d for d in dims if not d.isdigit())} of {'x'.join(dims)})")
    if missing:
        raise Refused("shapes needed for " + "; ".join(missing) + ": give --shapes NAME=1x3x224x224 for each")
    unknown = sorted(set(given) - {one["name"] for one in inputs})
    if unknown:
        raise Refused(f"--shapes {unknown[0]}: the model has no such input")
    return out


def shapes_text(shapes: dict[str, list[int]]) -> str:
    """"image 1x3x224x224, text 1x16" for records; trtexec wants ":" and no spaces."""
    return ", ".join(f"{name} {'x'.join(map(str, dims))}" for name, dims in shapes.items())


VALUE_NOTE = re.compile(r"the shape follows from what '(.*)' holds", re.S)  # of mk scan
MOST_VALUES = 16


def value_inputs(report: dict) -> list[str]:
    """The inputs whose value becomes a shape (`mk scan --json`): whole numbers, of one dim at most."""
    whole = {one["name"] for one in report["inputs"] if one["type"] in ("int32", "int64") and one["shape"].count(",") == 0}
    structures = next((spot["structures"] for spot in report.get("spots", []) if spot["id"] == "S1"), [])
    found = (VALUE_NOTE.fullmatch(one["note"]) for one in structures if one["kind"] == "a value becomes a shape")
    return sorted({one[1] for one in found if one} & whole)


def fill_values(names: list[str], cases: list[dict]) -> dict[str, list[int]]:
    """The values of such inputs, from the golden: an engine is built for them. Raises Refused."""
    out = {}
    for name in names:
        given = [case["input"].get(name) for case in cases]
        if not given or any(one is None for one in given):
            raise Refused(f"input {name!r} becomes a shape, and the golden has no value for it (case<k>.input.{name})")
        values = [[int(v) for v in one.values()] for one in given]
        if any(one != values[0] for one in values):
            raise Refused(f"input {name!r} becomes a shape, and the golden's cases give it several values ({values[0]}, "
                          f"{next(one for one in values if one != values[0])}): an engine is built for one; split the golden")  # fmt: skip
        if len(values[0]) > MOST_VALUES or not values[0] or not all(0 <= v < 1 << 31 for v in values[0]):
            raise Refused(f"input {name!r} becomes a shape, and {values[0][:MOST_VALUES]} is none: 1 to {MOST_VALUES} numbers from 0 on")
        out[name] = values[0]
    return out


def of_onnx(path: Path, shapes: dict[str, list[int]], golden: Path, free: bool, values: dict[str, list[int]] | None = None) -> ModelSpec:
    """A bare ONNX file as a model; `free`: it has free dims, so trtexec is told the shapes. `values`: of inputs that become a shape,
    which it takes in the place of their shapes."""
    values = values or {}
    name = "".join(c if c.isalnum() or c in ".+-" else "-" for c in path.stem.lower()).strip("-.+") or "model"
    told = {**(shapes if free else {}), **values}
    told = ",".join(f"{n}:{'x'.join(map(str, d))}" for n, d in told.items())
    text = shapes_text(shapes) + "".join(f", {n} = {'x'.join(map(str, v))}" for n, v in values.items())
    return ModelSpec(name=name, shapes=text, golden=str(golden.absolute()), onnx=str(path.absolute()),
                     trt_shapes=told)  # fmt: skip
