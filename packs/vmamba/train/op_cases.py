"""Single-operator goldens: inputs from the generator, outputs computed in float64 and rounded once
to float32."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Callable, Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from generator import generate, value_range
from vmamba import LN_EPS, scan_sequential, ss2d_core

SEED = 7
DT_RANGE = (-8.0, 24.0)  # steps from 3e-4 to beyond 20, where softplus(x) is x
SILU_RANGE = (-12.0, 12.0)

Inputs = dict[str, Tensor]


@dataclass(frozen=True)
class OpCase:
    """One operator at one set of shapes. `run` takes the inputs by name, float64, and returns the
    output."""

    op: str
    case: str
    shapes: dict[str, tuple[int, ...]]
    run: Callable[[Inputs], Tensor]
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    attributes: dict[str, object] = field(default_factory=dict)

    def key(self, tensor: str) -> str:
        """`<op>/<case>/<tensor>`: the name that the generator hashes, and the key of the stored
        output."""
        return f"{self.op}/{self.case}/{tensor}"

    def range_of(self, name: str) -> tuple[np.float32, np.float32]:
        """The input's own range where the case gives one, else the generator's rule for its
        name."""
        if name in self.ranges:
            lo, hi = self.ranges[name]
            return np.float32(lo), np.float32(hi)
        return value_range(name, self.shapes[name])

    def evaluate(self) -> np.ndarray:
        """The output, float32."""
        inputs = {
            n: generate(self.key(n), s, SEED, *self.range_of(n)) for n, s in self.shapes.items()
        }
        output = self.run(
            {name: torch.from_numpy(array).double() for name, array in inputs.items()}
        )
        return output.contiguous().numpy().astype(np.float32)

    def describe(self, output: np.ndarray) -> dict[str, object]:
        """The case's entry of the index; lo and hi are printed so that they read back as the same
        float32."""
        ranges = {name: self.range_of(name) for name in self.shapes}
        inputs = [
            {
                "name": name,
                "shape": list(shape),
                "lo": float(ranges[name][0]),
                "hi": float(ranges[name][1]),
            }
            for name, shape in self.shapes.items()
        ]
        entry = {
            "op": self.op,
            "case": self.case,
            "seed": SEED,
            "inputs": inputs,
            "output": list(output.shape),
        }
        return {**entry, "attributes": self.attributes}


def _selective_scan(p: Inputs, reverse: bool) -> Tensor:
    """u, dt [D,L]; A_logs [D,N]; B, C [N,L]; Ds, dt_projs_bias [D] -> y [D,L]. Reversed: from t =
    L-1 down to 0."""

    def in_order(
        x: Tensor,
    ) -> Tensor:  # [L,*] turned between natural order and the order of the scan; its own inverse
        return x.flip(0) if reverse else x

    u, dt, B, C = (in_order(p[name].T) for name in ("u", "dt", "B", "C"))
    delta, A = F.softplus(dt + p["dt_projs_bias"]), -torch.exp(p["A_logs"])
    u4, delta4, B4, C4 = (t[None, :, None] for t in (u, delta, B, C))  # [K=1,L,M=1,*]
    y = scan_sequential(u4, delta4, A[None], B4, C4)[0, :, 0] + u * p["Ds"]
    return in_order(y).T


def _scan_cases() -> Iterator[OpCase]:
    channels = 3
    for length in (1, 31, 32, 33, 257):
        for state in (1, 8, 16):
            for reverse in (False, True):
                shapes = {
                    "u": (channels, length), "dt": (channels, length), "A_logs": (channels, state),
                    "B": (state, length), "C": (state, length),
                    "Ds": (channels,), "dt_projs_bias": (channels,),
                }  # fmt: skip
                name = f"L{length}_N{state}_{'reverse' if reverse else 'forward'}"
                run = lambda p, reverse=reverse: _selective_scan(p, reverse)  # noqa: E731
                yield OpCase(
                    "selective_scan", name, shapes, run, {"dt": DT_RANGE}, {"reverse": reverse}
                )


def _ss2d_core(p: Inputs) -> Tensor:
    """x [di,H,W] -> merged y [di,H,W]."""
    return ss2d_core(p["x"].permute(1, 2, 0)[None], p, scan_sequential)[0].permute(2, 0, 1)


def ss2d_cases() -> Iterator[OpCase]:
    inner, rank = 6, 2
    for height, width in ((1, 1), (2, 3), (5, 4), (7, 7)):
        for state in (1, 4):
            shapes = {
                "x": (inner, height, width), "x_proj_weight": (4, rank + 2 * state, inner),
                "dt_projs_weight": (4, inner, rank), "dt_projs_bias": (4, inner),
                "A_logs": (4 * inner, state), "Ds": (4 * inner,),
            }  # fmt: skip
            yield OpCase(
                "ss2d_core", f"H{height}_W{width}_N{state}", shapes, _ss2d_core, {}, {"rank": rank}
            )


def _layer_norm_2d(p: Inputs) -> Tensor:
    """x [C,H,W] -> normalised over C at each position, [C,H,W]."""
    x = p["x"].permute(1, 2, 0)
    return F.layer_norm(x, x.shape[2:], p["weight"], p["bias"], LN_EPS).permute(2, 0, 1)


def _conv3x3(p: Inputs) -> Tensor:
    """x [Cin,H,W] -> [Cout,ceil(H/2),ceil(W/2)]: stride 2, padding 1."""
    return F.conv2d(p["x"][None], p["weight"], p["bias"], stride=2, padding=1)[0]


def _depthwise3x3(p: Inputs) -> Tensor:
    """x [C,H,W] -> [C,H,W]: stride 1, padding 1, no bias."""
    return F.conv2d(p["x"][None], p["weight"], stride=1, padding=1, groups=len(p["x"]))[0]


def _linear_gelu(p: Inputs) -> Tensor:
    """x [M,K] -> GELU(x weight^T + bias) [M,N], exact (erf) GELU."""
    return F.gelu(F.linear(p["x"], p["weight"], p["bias"]))


def _dense_cases() -> Iterator[OpCase]:
    conv = {"x": (3, 7, 9), "weight": (5, 3, 3, 3), "bias": (5,)}
    yield OpCase("conv3x3", "s2_3to5_7x9", conv, _conv3x3, {}, {"stride": 2, "pad": 1})
    depthwise = {"x": (5, 6, 7), "weight": (5, 1, 3, 3)}
    yield OpCase("depthwise3x3", "C5_6x7", depthwise, _depthwise3x3, {}, {"stride": 1, "pad": 1})
    for channels in (1, 3, 12, 33):
        norm = {"x": (channels, 3, 5), "weight": (channels,), "bias": (channels,)}
        yield OpCase("layer_norm_2d", f"C{channels}_3x5", norm, _layer_norm_2d, {}, {"eps": LN_EPS})
    linear = {"x": (5, 12), "weight": (7, 12), "bias": (7,)}
    yield OpCase("linear_gelu", "M5_K12_N7", linear, _linear_gelu)
    yield OpCase("silu", "257", {"x": (257,)}, lambda p: F.silu(p["x"]), {"x": SILU_RANGE})


def all_op_goldens() -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Outputs by `<op>/<case>/output`, and the metadata: `index`, a JSON list with one entry for
    each case."""
    outputs, index = {}, []
    for cases in (_scan_cases(), ss2d_cases(), _dense_cases()):
        for case in cases:
            output = case.evaluate()
            outputs[case.key("output")] = output
            index.append(case.describe(output))
    return outputs, {"index": json.dumps(index, separators=(",", ":"))}
