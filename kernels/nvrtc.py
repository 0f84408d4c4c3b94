"""NVRTC, CUDA's compiler as a library, from an unpacked package of the Python package index. Standard library only.

A process loads one: two do not go together.
"""

from __future__ import annotations

import ctypes
import glob
from pathlib import Path


class Nvrtc:
    """libnvrtc below `folder` (as `pip install --target folder` leaves it). Raises OSError where there is none."""

    def __init__(self, folder: str | Path):
        found = sorted(p for p in glob.glob(f"{folder}/nvidia/**/libnvrtc*.so*", recursive=True) if ".alt." not in p)
        builtins = [p for p in found if "builtins" in p]
        libraries = [p for p in found if "builtins" not in p]
        if not builtins or not libraries:
            raise OSError(f"no libnvrtc with its builtins below {folder}")
        ctypes.CDLL(builtins[0], mode=ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(libraries[0])

    def version(self) -> tuple[int, int]:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def _read(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        if getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) or size.value == 0:
            return b""
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self._library, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw

    def compile(self, source: str, text: bytes, target: str, include: str) -> tuple[bytes, str]:
        """(image, log): a cubin for `target` "sm_87", PTX that ends in a 0 for "compute_80"; empty where it failed."""
        nvrtc, program = self._library, ctypes.c_void_p()
        if nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, source.encode(), 0, None, None):
            return b"", "nvrtcCreateProgram failed"
        # NVRTC takes no host functions: constexpr ones of a header that both sides read count as the device's.
        options = [f"-arch={target}", "-std=c++17", f"-I{include}", "--ptxas-options=-v", "--device-as-default-execution-space"]
        code = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*(o.encode() for o in options)))
        log = self._read(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        image = b"" if code else self._read(program, "CUBIN" if target.startswith("sm_") else "PTX")
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        return image, log
