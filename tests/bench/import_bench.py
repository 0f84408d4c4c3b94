"""Writes a VMamba-sized safetensors file with random weights and times `mk import` on it. See import.sh."""

import argparse
import hashlib
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

# channels of stage 0, blocks, ratio: the published line.
SIZES = {"tiny": (96, (2, 2, 8, 2), 1), "small": (96, (2, 2, 15, 2), 2), "base": (128, (2, 2, 15, 2), 2)}
CLASSES = 1000


def tensors(size):
    """(name, shape) of every tensor, state 1 and MLP ratio 4."""
    embed, depths, ratio = SIZES[size]

    def norm(name, channels):
        return [(name + ".weight", [channels]), (name + ".bias", [channels])]

    def layer(name, shape):
        return [(name + ".weight", shape), (name + ".bias", shape[:1])]

    rows = layer("patch_embed.0", [embed // 2, 3, 3, 3]) + norm("patch_embed.2", embed // 2)
    rows += layer("patch_embed.5", [embed, embed // 2, 3, 3]) + norm("patch_embed.7", embed)
    for stage, depth in enumerate(depths):
        d = embed << stage
        di, rank = ratio * d, -(-d // 16)
        for block in range(depth):
            name = f"layers.{stage}.blocks.{block}"
            rows += norm(name + ".norm", d) + norm(name + ".op.out_norm", di) + norm(name + ".norm2", d)
            rows += [(name + ".op.in_proj.weight", [di, d]), (name + ".op.conv2d.weight", [di, 1, 3, 3])]
            rows += [(name + ".op.x_proj_weight", [4, rank + 2, di]), (name + ".op.dt_projs_weight", [4, di, rank])]
            rows += [(name + ".op.dt_projs_bias", [4, di]), (name + ".op.A_logs", [4 * di, 1]), (name + ".op.Ds", [4 * di])]
            rows += [(name + ".op.out_proj.weight", [d, di])]
            rows += layer(name + ".mlp.fc1", [4 * d, d]) + layer(name + ".mlp.fc2", [d, 4 * d])
        if stage + 1 < len(depths):
            rows += layer(f"layers.{stage}.downsample.1", [2 * d, d, 3, 3]) + norm(f"layers.{stage}.downsample.3", 2 * d)
    last = embed << (len(depths) - 1)
    return rows + norm("classifier.norm", last) + layer("classifier.head", [CLASSES, last])


def write(path, size):
    header, at = {}, 0
    for name, shape in tensors(size):
        count = 1
        for dim in shape:
            count *= dim
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * count]}
        at += 4 * count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    # Random numbers of both signs below 2: the exponent's highest bit is cleared.
    block = bytearray(random.Random(1).randbytes(1 << 20))
    block[3::4] = bytes(byte & 0xBF for byte in block[3::4])
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        left = at
        while left:
            file.write(block[: min(left, len(block))])
            left -= min(left, len(block))
    return 8 + len(text) + at


def run(command):
    """Seconds, largest resident KiB."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    if status:
        raise SystemExit(f"{command[0]} failed: {out.decode()}{err.decode()}")
    return seconds, usage.ru_maxrss


def machine(folder, path):
    data = open(path, "rb").read(128 << 20)
    begin = time.monotonic()
    hashlib.sha256(data).digest()
    digest = time.monotonic() - begin
    begin = time.monotonic()
    with open(os.path.join(folder, "copy"), "wb") as file:
        file.write(data)
        os.fsync(file.fileno())
    copy = time.monotonic() - begin
    os.unlink(os.path.join(folder, "copy"))
    size = len(data) * 1e-6
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    print(f"machine: {model}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
          f"SHA-256 {size / digest:.0f} MB/s on one core, write and sync {size / copy:.0f} MB/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mk", required=True)
    parser.add_argument("--pack", required=True)
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder")
    args = parser.parse_args()
    folder = args.folder or tempfile.mkdtemp(prefix="mk-import-")
    repository = os.path.join(folder, "packs")
    os.makedirs(repository, exist_ok=True)
    path = os.path.join(folder, f"{args.size}.safetensors")
    try:
        size = write(path, args.size)
        # In a process of its own: a child's largest resident size begins with its parent's.
        if os.fork() == 0:
            machine(folder, path)
            sys.stdout.flush()
            os._exit(0)
        os.wait()
        idle = run([args.mk, "--help"])[1]
        times = []
        for number in range(1, args.runs + 1):
            seconds, resident = run([args.mk, "import", "vmamba", path, "--repository", repository, "--name", "bench",
                                     "--version", "1", "--force", "--pack", args.pack])
            times.append(seconds)
            print(f"run {number}: {args.size}, {size * 1e-6:.1f} MB in {seconds:.2f} s, {size * 1e-6 / seconds:.0f} MB/s; "
                  f"resident at most {resident / 1024:.1f} MiB, idle {idle / 1024:.1f} MiB")
        print(f"best {size * 1e-6 / min(times):.0f} MB/s, median {size * 1e-6 / sorted(times)[len(times) // 2]:.0f} MB/s")
    finally:
        shutil.rmtree(repository, ignore_errors=True)
        os.unlink(path)
        if not args.folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
