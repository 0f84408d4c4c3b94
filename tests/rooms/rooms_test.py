"""Checks every #include of the tree against tests/rooms/rooms.txt. Standard library only.

Usage: rooms_test.py ROOT [--self-test]
Prints one line per breach: file:line: what it includes, which room it is in, and what that room may look at.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
ROOTS = ("core", "kernels", "packs", "server", "verify")
SUFFIXES = {".h", ".cc", ".c", ".cu", ".cuh"}
# Prefix of a system header -> the library's name in the table.
LIBRARIES = {
    "absl/": "absl",
    "google/protobuf/": "protobuf",
    "grpc": "grpc",
    "prometheus/": "prometheus",
    "openssl/": "openssl",
    "nlohmann/": "json",
    "CLI/": "cli11",
    "spdlog/": "spdlog",
    "fmt/": "spdlog",
    "systemd/": "systemd",
    "dnnl": "dnnl",
    "oneapi/dnnl": "dnnl",
    "cblas": "dnnl",
    "jpeglib": "image",
    "png": "image",
    "boost/": "boost",
    "gtest/": "test-only",
    "gmock/": "test-only",
    "benchmark/": "test-only",
}


def read_table(path):
    table = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].split()
        if line:
            table[line[0]] = line[1:]
    return table


def room_of(name, table):
    """The longest folder of the table that holds `name`."""
    fitting = [room for room in table if name == room or name.startswith(room + "/")]
    return max(fitting, key=len) if fitting else None


def is_exempt(path):
    return "testing" in path.parts[:-1] or re.search(r"_(test|bench|fuzz)\.(cc|c)$", path.name) is not None


def library_of(header):
    fitting = [prefix for prefix in LIBRARIES if header.startswith(prefix)]
    return LIBRARIES[max(fitting, key=len)] if fitting else None


def judge(name, quote, header, room, allowed):
    """None, or why file `name` may not include `header`."""
    library = library_of(header)
    if library is not None:
        return None if "+" + library in allowed else f"library {library}"
    if quote == "<":
        return None
    if any(header == a or header.startswith(a + "/") for a in allowed if not a.startswith("+")):
        return None
    return "header of another room, or not named from the top of the tree"


def breaches(root, table):
    count = 0
    for top in ROOTS:
        for path in sorted((root / top).rglob("*")):
            relative = path.relative_to(root)
            if path.suffix not in SUFFIXES or is_exempt(relative):
                continue
            room = room_of(str(relative.parent), table)
            if room is None:
                yield f"{relative}:1: no room of tests/rooms/rooms.txt holds this file"
                continue
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                count += 1
                why = judge(str(relative), match[1], match[2], room, table[room])
                if why:
                    yield f"{relative}:{number}: includes {match[2]} ({why}); room {room} may look at: " + " ".join(
                        table[room]
                    )
    if count == 0:
        yield "no #include was read at all: is the root right?"


def self_test():
    table = {"core/abi": ["core/abi"], "core": ["core", "+absl"]}
    assert room_of("core/abi", table) == "core/abi"
    assert room_of("core/abix", table) == "core"
    assert judge("x", '"', "core/abi/a.h", "core", ["core/abi"]) is None
    assert judge("x", '"', "core/abix/a.h", "core", ["core/abi"]) is not None
    assert judge("x", '"', "absl/status/status.h", "core", ["core/abi"]) == "library absl"
    assert judge("x", "<", "grpcpp/grpcpp.h", "core", ["+absl"]) == "library grpc"
    assert judge("x", "<", "vector", "core", []) is None
    assert judge("x", '"', "local.h", "core", ["core"]) is not None
    assert is_exempt(pathlib.Path("core/a_test.cc")) and not is_exempt(pathlib.Path("core/test_a.cc"))


def main():
    self_test()
    root = pathlib.Path(sys.argv[1])
    found = list(breaches(root, read_table(root / "tests/rooms/rooms.txt")))
    print("\n".join(found))
    print(f"rooms: {len(found)} breaches")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
