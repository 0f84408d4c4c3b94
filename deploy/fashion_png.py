"""Writes Fashion-MNIST test images as PNG files: fashion_png.py FOLDER [COUNT]. Standard library only.

The data come from the Debian package dataset-fashion-mnist (MIT). Prints one line per image: file, label.
"""

import gzip
import pathlib
import struct
import sys
import zlib

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
LABELS = pathlib.Path(__file__).resolve().parent.parent / "packs/vmamba/pico/labels.txt"


def read_idx(path, magic):
    """The bytes of an IDX file and its dimensions."""
    raw = gzip.decompress(path.read_bytes())
    found, count = struct.unpack(">II", raw[:8])
    if found != magic:
        raise SystemExit(f"{path}: magic {found:#x}, expected {magic:#x}")
    return count, raw


def png(pixels, width, height):
    """An 8-bit gray PNG of `pixels`, row-major."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + pixels[y * width : (y + 1) * width] for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    folder, wanted = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10
    if not DATA.is_dir():
        raise SystemExit(f"{DATA} is missing: install the package dataset-fashion-mnist")
    folder.mkdir(parents=True, exist_ok=True)
    _, images = read_idx(DATA / "t10k-images-idx3-ubyte.gz", 0x803)
    count, labels = read_idx(DATA / "t10k-labels-idx1-ubyte.gz", 0x801)
    names = LABELS.read_text().split("\n")
    for i in range(min(wanted, count)):
        pixels = images[16 + i * 784 : 16 + (i + 1) * 784]
        name = names[labels[8 + i]]
        path = folder / f"{i:02d}-{name.lower().replace('/', '-').replace(' ', '-')}.png"
        path.write_bytes(png(pixels, 28, 28))
        print(f"{path}\t{name}")


if __name__ == "__main__":
    main()
