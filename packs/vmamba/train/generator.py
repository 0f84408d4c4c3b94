"""Counter-based values for weights and inputs that are too large to store.

golden/README.md says the same in words.

    z = mix(seed + fnv1a64(name) + (i + 1) * 0x9E3779B97F4A7C15)   modulo 2^64, i = row-major index
    u = (z >> 40) * 2^-24                                          exact in float32, in [0, 1)
    value = fl32(lo + fl32(fl32(hi - lo) * u))                     no fused multiply-add
"""

from __future__ import annotations

import math

import numpy as np

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MASK = (1 << 64) - 1


def fnv1a64(name: str) -> int:
    """FNV-1a of the UTF-8 bytes, 64 bits."""
    digest = 0xCBF29CE484222325
    for byte in name.encode():
        digest = ((digest ^ byte) * 0x100000001B3) & _MASK
    return digest


def _mix(z: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64, on uint64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def value_range(name: str, shape: tuple[int, ...]) -> tuple[np.float32, np.float32]:
    """(lo, hi) of a tensor, by the last component of its name; the first rule that fits is
    taken."""
    fixed = {
        "A_logs": (-1.0, 1.0),
        "Ds": (0.5, 1.5),
        "dt_projs_bias": (-4.0, 1.0),
        "bias": (-0.1, 0.1),
    }
    last = name.replace("/", ".").rsplit(".", 1)[-1]
    if last in fixed:
        lo, hi = fixed[last]
    elif last in ("x_proj_weight", "dt_projs_weight"):
        hi = math.sqrt(3.0 / shape[-1])
        lo = -hi
    elif last == "weight" and len(shape) == 1:
        lo, hi = 0.9, 1.1
    elif last == "weight":
        hi = math.sqrt(3.0 / math.prod(shape[1:]))
        lo = -hi
    else:
        lo, hi = -1.0, 1.0
    return np.float32(lo), np.float32(hi)


def generate(
    name: str, shape: tuple[int, ...], seed: int, lo: np.float32, hi: np.float32
) -> np.ndarray:
    """The tensor `name` of a seed, float32, with values in [lo, hi)."""
    base = np.uint64((seed + fnv1a64(name)) & _MASK)
    counter = np.arange(1, math.prod(shape) + 1, dtype=np.uint64)
    u = (_mix(base + counter * _GAMMA) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    return (lo + (hi - lo) * u).reshape(shape)


def generate_by_rule(name: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """`generate` with the range that `value_range` gives."""
    return generate(name, shape, seed, *value_range(name, shape))
