"""What a cubin says of its kernels, from its ELF; what the assembler said of spills. Pure, standard library only."""

from __future__ import annotations

import re
import struct

REGCOUNT, FRAME_SIZE, SVAL = 0x2F, 0x11, 4  # of .nv.info: u8 format, u8 attribute, u16 size, payload


class Malformed(ValueError):
    """Why bytes are no cubin."""


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def read_cubin(data: bytes) -> dict[str, dict[str, int]]:
    """Kernel -> {"registers", "stack_bytes", "shared_bytes", "code_bytes"} of an ELF file for a GPU. Raises Malformed."""
    try:
        if data[:4] != b"\x7fELF" or data[4] != 2:
            raise Malformed("no 64-bit ELF file")
        shoff, (entry, count, names_at) = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<HHH", data, 58)
        sections = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + i * entry) for i in range(count)]
        bytes_of = [b"" if s[1] == 8 else data[s[4] : s[4] + s[5]] for s in sections]  # 8: takes no bytes in the file
        names = [_text(bytes_of[names_at], s[0]) for s in sections]
        symbols = _symbols(sections, names, bytes_of)
        out = {}
        for name, section in zip(names, sections):
            if name.startswith(".text."):
                out[name[6:]] = {"registers": 0, "stack_bytes": 0, "shared_bytes": 0, "code_bytes": section[5]}
        for name, section in zip(names, sections):
            if name.startswith(".nv.shared.") and name[11:] in out:
                out[name[11:]]["shared_bytes"] = section[5]
        for name, body in zip(names, bytes_of):
            if name == ".nv.info":
                for attribute, symbol, value in _values(body):
                    kernel = out.get(symbols.get(symbol, ""))
                    if kernel is not None and attribute in (REGCOUNT, FRAME_SIZE):
                        kernel["registers" if attribute == REGCOUNT else "stack_bytes"] = value
    except (struct.error, IndexError, ValueError, UnicodeDecodeError) as error:
        raise Malformed(str(error)) from None
    if not out or not all(kernel["registers"] for kernel in out.values()):
        raise Malformed("a kernel without a register count, or no kernel at all")
    return out


def _symbols(sections, names, bytes_of) -> dict[int, str]:
    table, texts = bytes_of[names.index(".symtab")], bytes_of[names.index(".strtab")]
    return {i: _text(texts, struct.unpack_from("<I", table, i * 24)[0]) for i in range(len(table) // 24)}


def _values(body: bytes):
    """(attribute, symbol, value) of the entries that tell a number of a symbol."""
    at = 0
    while at + 4 <= len(body):
        form, attribute, size = struct.unpack_from("<BBH", body, at)
        at += 4
        if form == SVAL:
            if size == 8:
                yield (attribute, *struct.unpack_from("<II", body, at))
            at += size


def spills_of(log: str) -> dict[str, int]:
    """Kernel -> bytes of spill stores and loads, by the assembler's words."""
    out, kernel = {}, ""
    for line in log.splitlines():
        if found := re.search(r"Compiling entry function '(\w+)'", line):
            kernel = found[1]
        elif found := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            out[kernel] = int(found[1]) + int(found[2])
    return out
