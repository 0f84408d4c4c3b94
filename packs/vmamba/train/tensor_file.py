"""Writes safetensors files whose bytes depend on nothing but their content, and reads them back.

The format: u64 little-endian length of the header; the header, JSON, padded with spaces to a
multiple of 8; the data. The library's own writer orders the metadata differently from run to run,
so that a regenerated file would differ.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
from safetensors import safe_open

_DTYPES = {"float32": "F32", "uint8": "U8"}


def write_tensors(path: Path, tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> int:
    """Writes float32 and uint8 tensors, float32 first so that all are aligned, by name; returns
    the size in bytes."""
    names = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    header: dict[str, object] = {"__metadata__": dict(sorted(metadata.items()))}
    offset = 0
    for name in names:
        array = tensors[name]
        entry = {"dtype": _DTYPES[array.dtype.name], "shape": list(array.shape)}
        header[name] = {**entry, "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    data = b"".join(np.ascontiguousarray(tensors[name]).tobytes() for name in names)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path.stat().st_size


def read_tensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Tensors by name, and the metadata."""
    with safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})
