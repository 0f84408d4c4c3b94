"""A model of transformers from a config, with weights that are random, or zeros that take no memory where random ones would
not fit. No code, no weights and no files but the config are loaded. Needs PyTorch and transformers.
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import math
from dataclasses import dataclass
from pathlib import Path

import config as configs
import inputs as examples
from refused import Refused, line

STAGE = "building the model"
SHARE = 4  # an export holds weights this many times at most


@dataclass
class Made:
    """`inputs`: as text, for the report."""

    model: object
    tensors: tuple
    names: list[str]
    inputs: str
    kind: str
    notes: list[str]


def _config_of(transformers, given: configs.Config, layers: int, notes: list[str]):
    """transformers' own object."""
    mapping = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    if given.model_type not in mapping:
        if given.own_code:
            raise Refused("needs-remote-code", STAGE, f"model_type {line(given.model_type, 60)!r} is not in transformers {transformers.__version__}; "
                          "its code comes with the model, and such code is not run",
                          "Export it yourself, where you trust it, and scan the ONNX file or the .pt2.")  # fmt: skip
        near = difflib.get_close_matches(given.model_type, list(mapping.keys()), 3)
        raise Refused("unknown-architecture", STAGE, f"model_type {line(given.model_type, 60)!r} is not in transformers {transformers.__version__}",
                      f"Near: {', '.join(near)}." if near else "A newer transformers may have it.")  # fmt: skip
    kind = mapping[given.model_type]
    try:
        made = kind.from_dict(given.values)
        if layers:
            values = configs.drop(made.to_dict(), [])
            cut = configs.cut_layers(values, layers)
            notes.append(f"depth cut to {layers}: it was {', '.join(cut)}" if cut else f"no depth is above {layers}: nothing was cut")
            made = kind.from_dict(values)
    except Refused:
        raise
    except Exception as error:  # noqa: BLE001, strict classes refuse in their own words
        raise Refused("no-config", STAGE, f"{type(error).__name__}: {line(error)}",
                      "--layers N must leave what out_features and the like name." if layers else "") from None  # fmt: skip
    for part in _parts(made):
        for name, value in (("use_pretrained_backbone", False), ("use_cache", False)):
            if hasattr(part, name):
                with contextlib.suppress(Exception):
                    setattr(part, name, value)
    return made


def _parts(made):
    """A config and those inside."""
    yield made
    for value in vars(made).values():
        if hasattr(value, "to_dict") and hasattr(value, "model_type"):
            yield from _parts(value)


def _class_of(transformers, made, names: list[str]):
    """The class of `architectures` where transformers has it for this config, else the model that the config stands for."""
    for name in names:
        found = getattr(transformers, name, None) if name.isidentifier() else None
        if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel) and found.config_class is type(made):
            return found
    auto = transformers.models.auto.modeling_auto
    mappings = ["MODEL_MAPPING", *sorted(n for n in dir(auto) if n.startswith("MODEL_FOR_") and n.endswith("_MAPPING"))]
    for name in mappings:
        with contextlib.suppress(KeyError):
            found = getattr(auto, name)[type(made)]
            return found[0] if isinstance(found, (tuple, list)) else found
    raise Refused("unknown-architecture", STAGE, f"transformers {transformers.__version__} names no model for {type(made).__name__}")


@contextlib.contextmanager
def _weights_on_meta(torch, sizes: list[int]):
    """Parameters are made without memory; buffers (tables of places) stay real. `sizes`: bytes, at least."""
    register = torch.nn.Module.register_parameter

    def without(module, name, parameter):
        if parameter is not None and parameter.device.type != "meta":
            sizes.append(parameter.numel() * parameter.element_size())
            parameter = torch.nn.Parameter(parameter.to("meta"), requires_grad=False)
        register(module, name, parameter)

    torch.nn.Module.register_parameter = without
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register


def _zeros(torch, model) -> None:
    """Every parameter a view of a single zero."""
    made = {}
    for module in model.modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is not None:
                if id(parameter) not in made:
                    zero = torch.zeros((), dtype=parameter.dtype).expand(parameter.shape)
                    made[id(parameter)] = torch.nn.Parameter(zero, requires_grad=False)
                module._parameters[name] = made[id(parameter)]


def _bytes_of(torch, kind, made) -> int:
    """Of the weights; builds the model without memory."""
    with torch.device("meta"):
        model = kind(made)
    return sum(p.numel() * p.element_size() for p in model.parameters())


def _model(torch, kind, made, memory_bytes: int, notes: list[str]):
    size = 0
    with contextlib.suppress(Exception):  # some cannot be built there; then the cap decides
        size = _bytes_of(torch, kind, made)
    if not memory_bytes or size * SHARE <= memory_bytes:
        model = kind(made)
        count = sum(p.numel() for p in model.parameters())
        notes.append(f"{count:,} parameters, random")
    else:
        with _weights_on_meta(torch, []):
            model = kind(made)
        _zeros(torch, model)
        notes.append(f"weights are zeros without memory: {size >> 20} MiB of random ones, held {SHARE} times, pass the cap of {memory_bytes >> 20} MiB")
    return model.eval().requires_grad_(False)


def _wrapped(torch, model, names: list[str], parameters: list[str]):
    """A module from tensors to a tuple of tensors."""
    more = {name: value for name, value in (("use_cache", False), ("return_dict", True)) if name in parameters}

    def flat(value, out: list) -> list:
        if isinstance(value, torch.Tensor):
            if not any(value is one for one in out):
                out.append(value)
        elif isinstance(value, dict):
            for one in value.values():
                flat(one, out)
        elif isinstance(value, (list, tuple)):
            for one in value:
                flat(one, out)
        return out

    class Exported(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *tensors):
            return tuple(flat(self.model(**dict(zip(names, tensors)), **more), []))

    return Exported().eval()


def _tensor(torch, one: examples.Input):
    if one.high == 0:
        return torch.randn(one.shape) * 0.5
    if one.high == 1:
        return torch.ones(one.shape, dtype=torch.int64)
    return torch.randint(1 if one.high > 2 else 0, one.high, one.shape)


def build(torch, request: dict) -> Made:
    """Raises Refused, or what transformers raises."""
    import transformers

    transformers.logging.set_verbosity_error()
    given = configs.read(Path(request["path"]))
    notes = list(given.notes)
    made = _config_of(transformers, given, request["layers"], notes)
    kind = _class_of(transformers, made, given.architectures)
    model = _model(torch, kind, made, request["memory_bytes"], notes)
    parameters = [(p.name, p.default is p.empty) for p in inspect.signature(model.forward).parameters.values()
                  if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]  # fmt: skip
    chosen, more = examples.make(parameters, made.to_dict(), model.main_input_name, request["shapes"])
    names = [one.name for one in chosen]
    text = ", ".join(one.text() for one in chosen)
    for one in chosen:
        if math.prod(one.shape) > 1 << 30:
            raise Refused("example-inputs", STAGE, f"{one.text()}: over 2^30 elements")
    wrapped = _wrapped(torch, model, names, [name for name, _ in parameters])
    tensors = tuple(_tensor(torch, one) for one in chosen)
    return Made(wrapped, tensors, names, text, f"transformers config, {kind.__name__} of transformers {transformers.__version__}", notes + more)
