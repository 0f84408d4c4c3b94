"""safetensors files with the standard library alone: read, write, and their numbers as floats.

The format: u64 little-endian length of the header; the header, JSON; the data.
"""

from __future__ import annotations

import array
import json
import struct
from dataclasses import dataclass
from pathlib import Path

CODES = {"F64": "d", "F32": "f", "I64": "q", "I32": "i", "I16": "h", "I8": "b", "U8": "B", "U16": "H", "U32": "I",
         "U64": "Q", "BOOL": "B"}  # fmt: skip
SIZES = {**{name: array.array(code).itemsize for name, code in CODES.items()}, "F16": 2, "BF16": 2}
FLOATS = ("F64", "F32", "F16", "BF16")
MAX_HEADER = 32 << 20


@dataclass(frozen=True)
class Tensor:
    """A dense tensor; `data` in row-major order, little-endian."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    def values(self) -> list:
        """The elements as Python numbers."""
        if self.dtype == "F16":
            return list(struct.unpack(f"<{len(self.data) // 2}e", self.data))
        if self.dtype == "BF16":
            halves = array.array("H", self.data)
            return list(array.array("f", array.array("I", (bits << 16 for bits in halves)).tobytes()))
        return array.array(CODES[self.dtype], self.data).tolist()


class Malformed(ValueError):
    """Why a file is no safetensors file."""


def count_of(shape) -> int:
    """Elements of a shape; 1 for a scalar."""
    count = 1
    for dim in shape:
        count *= dim
    return count


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All tensors and the metadata. Raises Malformed naming the tensor and the rule, OSError."""
    size = Path(path).stat().st_size
    with open(path, "rb") as file:
        first = file.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
        if not 0 < length <= min(MAX_HEADER, size - 8):
            raise Malformed(f"{path}: header of {length} bytes in a file of {size}, at most {MAX_HEADER}")
        try:
            header = json.loads(file.read(length))
        except ValueError as error:
            raise Malformed(f"{path}: {error}") from None
        if not isinstance(header, dict):
            raise Malformed(f"{path}: the header is no object")
        body = file.read()
    metadata = header.pop("__metadata__", {})
    return {name: _tensor(path, name, entry, body) for name, entry in header.items()}, metadata


def _tensor(path, name: str, entry, body: bytes) -> Tensor:
    try:
        dtype, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        plain = all(type(n) is int and n >= 0 for n in (*shape, begin, end))
    except (KeyError, TypeError, ValueError):
        plain = False
    if not plain:
        raise Malformed(f"{path}: tensor {name[:80]!r}: dtype, shape and data_offsets must be there")
    if dtype not in SIZES:
        raise Malformed(f"{path}: tensor {name[:80]!r}: type {dtype!r} is not known")
    if end > len(body) or end - begin != count_of(shape) * SIZES[dtype]:
        raise Malformed(f"{path}: tensor {name[:80]!r}: bytes {begin} to {end} of {len(body)} for {dtype}{list(shape)}")
    return Tensor(dtype, shape, body[begin:end])


def write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Writes the tensors, the widest types first so that all are aligned."""
    names = sorted(tensors, key=lambda name: (-SIZES[tensors[name].dtype], name))
    header: dict = {"__metadata__": metadata} if metadata else {}
    offset = 0
    for name in names:
        tensor = tensors[name]
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(tensor.data)]}  # fmt: skip
        offset += len(tensor.data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(tensors[name].data for name in names)


def floats(shape, values) -> Tensor:
    """A tensor of 32-bit floats."""
    return Tensor("F32", tuple(shape), array.array("f", values).tobytes())


def cases_of(tensors: dict[str, Tensor]) -> list[dict[str, dict[str, Tensor]]]:
    """`case<k>.input.<name>` and `case<k>.output.<name>` as [{"input": {...}, "output": {...}}], k without gaps.
    Raises Malformed."""
    cases: dict[int, dict[str, dict[str, Tensor]]] = {}
    for name, tensor in tensors.items():
        case, _, rest = name.partition(".")
        side, _, tensor_name = rest.partition(".")
        if not (case.startswith("case") and case[4:].isdigit() and side in ("input", "output") and tensor_name):
            raise Malformed(f"tensor {name[:80]!r} is not called case<k>.input.<name> or case<k>.output.<name>")
        cases.setdefault(int(case[4:]), {"input": {}, "output": {}})[side][tensor_name] = tensor
    if sorted(cases) != list(range(len(cases))):
        raise Malformed(f"cases {sorted(cases)[:20]} have gaps")
    return [cases[k] for k in range(len(cases))]
