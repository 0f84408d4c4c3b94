"""Compiles one device file to images for GPUs and writes them as C++: called by the rule cuda_kernels.

Each image is by itself and uncompressed, so that a driver too old for one of them still reads another. NVRTC of an older
toolkit, where one is at hand, makes what that toolkit's drivers read. Fails where a compiler warns, and where an image lacks
one of the kernels. What ptxas says of each kernel, and how often each kind of instruction stands in its PTX, goes into a
report for kernels/static_gates.py.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from nvrtc import Nvrtc

FLAGS = [
    "-std=c++17", "-O3", "-I.", "--Werror", "all-warnings", "-Xptxas", "-v,-warn-spills,-warn-lmem-usage",
    "--diag-suppress", "177",  # unused functions of headers
]
KINDS = {"cubin": "kCubin", "ptx": "kPtx"}
INSTRUCTIONS = ["mma.sync", "ldmatrix", "cp.async.c", "bar.sync", "ld.local", "st.local"]


class Nvcc:
    """The toolkit of the build."""

    def __init__(self, nvcc, source, directory):
        self.nvcc, self.source, self.directory = nvcc, source, pathlib.Path(directory)

    def image(self, kind, sm):
        """(image, what was said)."""
        out = self.directory / f"{kind}{sm}"
        target = ["-ptx", f"-arch=compute_{sm}"] if kind == "ptx" else ["-cubin", f"-arch=sm_{sm}"]
        run = subprocess.run([self.nvcc, *target, *FLAGS, "-o", str(out), self.source], capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"{self.source}: {kind} for sm_{sm}:\n{run.stdout}{run.stderr}")
        # The driver reads PTX as a C string.
        return out.read_bytes() + (b"\0" if kind == "ptx" else b""), run.stdout + run.stderr


class ByNvrtc:
    """An older toolkit."""

    def __init__(self, folder, source):
        self.nvrtc, self.source = Nvrtc(folder), source

    def image(self, kind, sm):
        target = f"sm_{sm}" if kind == "cubin" else f"compute_{sm}"
        data, said = self.nvrtc.compile(self.source, pathlib.Path(self.source).read_bytes(), target, ".")
        if not data or "warning" in said:
            sys.exit(f"{self.source}: NVRTC, {target}:\n{said}")
        return data, said


def number(pattern, text):
    found = re.search(pattern, text)
    return int(found.group(1)) if found else 0


def ptxas_facts(text, kernels):
    """What `ptxas -v` says: kernel -> registers, memory."""
    facts = {}
    parts = re.split(r"Compiling entry function '(\w+)' for", text)
    for kernel, said in zip(parts[1::2], parts[2::2]):
        facts[kernel] = {
            "registers": number(r"Used (\d+) registers", said),
            "stack_bytes": number(r"(\d+) bytes stack frame", said),
            "spill_bytes": number(r"(\d+) bytes spill stores", said) + number(r"(\d+) bytes spill loads", said),
            "static_shared_bytes": number(r"(\d+) bytes smem", said),
        }
    lacking = [k for k in kernels if facts.get(k, {}).get("registers", 0) == 0]
    if lacking:
        sys.exit(f"ptxas said nothing about {lacking[0]}:\n{text}")
    return {k: facts[k] for k in kernels}


def ptx_facts(text, kernels):
    """Of each entry in the PTX: its launch bounds, and how often each kind of instruction stands in it."""
    facts = {}
    parts = re.split(r"\.entry (\w+)\(", text)
    for kernel, body in zip(parts[1::2], parts[2::2]):
        facts[kernel] = {"threads": number(r"\.maxntid (\d+)", body)}
        facts[kernel].update({i: len(re.findall(r"\b" + re.escape(i), body)) for i in INSTRUCTIONS})
    return {k: facts[k] for k in kernels}


def array(name, data):
    lines = [",".join(map(str, data[i : i + 32])) for i in range(0, len(data), 32)]
    return f"alignas(16) const unsigned char {name}[] = {{\n" + ",\n".join(lines) + "};\n"


def main():
    parser = argparse.ArgumentParser()
    for name in ("name", "source", "nvcc", "cc", "header", "report", "kernels", "dynamic-shared", "images"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--nvrtc", default="", help="folder of the older toolkit's NVRTC; its images are those that end in ~")
    args = parser.parse_args()
    kernels = args.kernels.split(",")

    report = {
        "module": args.name,
        "dynamic_shared_bytes": {k: int(v) for k, v in (row.split("=") for row in filter(None, args.dynamic_shared.split(",")))},
        "images": [],
    }
    if not set(report["dynamic_shared_bytes"]) <= set(kernels):
        sys.exit(f"{args.source}: dynamic_shared names a kernel that is not in {kernels}")
    arrays, rows = [], []
    with tempfile.TemporaryDirectory() as directory:
        nvcc = Nvcc(args.nvcc, args.source, directory)
        older = ByNvrtc(args.nvrtc, args.source) if args.nvrtc else None
        for image in filter(None, args.images.split(",")):
            target, version = image.rstrip("~").split("@")
            kind, sm = target.split(":")
            compiler = older if image.endswith("~") else nvcc
            data, said = compiler.image(kind, sm)
            lacking = [k for k in kernels if k.encode() not in data]
            if lacking:
                sys.exit(f"{args.source}: no kernel {lacking[0]} in the {kind} for sm_{sm}")
            facts = ptx_facts(data.decode(), kernels) if kind == "ptx" else ptxas_facts(said, kernels)
            report["images"].append({"kind": kind, "sm": int(sm), "toolkit": version, "kernels": facts})
            major, minor = map(int, version.split("."))
            symbol = f"k{kind.capitalize()}{sm}Cuda{major}_{minor}"
            arrays.append(array(symbol, data))
            rows.append(f"    {{mk::ImageKind::{KINDS[kind]}, {sm}, {major * 1000 + minor * 10}, {symbol}, sizeof({symbol})}},\n")

    pathlib.Path(args.report).write_text(json.dumps(report, indent=1) + "\n")
    names = ", ".join(f'"{k}"' for k in kernels)
    images = f"const mk::DeviceImage kImages[] = {{\n{''.join(rows)}}};\n" if rows else ""
    pathlib.Path(args.cc).write_text(
        '// Generated by cuda_kernels.\n#include "kernels/device/image.h"\n\nnamespace {\n\n'
        f"{''.join(arrays)}const char* const kKernels[] = {{{names}}};\n{images}\n}}  // namespace\n\n"
        f'extern "C" const mk::DeviceModule mk_images_{args.name};\n'
        f'extern "C" const mk::DeviceModule mk_images_{args.name} = {{"{args.name}", kKernels, {len(kernels)}, '
        f"{'kImages' if rows else 'nullptr'}, {len(rows)}}};\n"
    )
    pathlib.Path(args.header).write_text(
        '// Generated by cuda_kernels.\n#pragma once\n#include "kernels/device/image.h"\n'
        f'extern "C" const mk::DeviceModule mk_images_{args.name};\n'
    )


if __name__ == "__main__":
    main()
