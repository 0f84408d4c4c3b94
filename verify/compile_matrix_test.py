"""The reader of cubins against a file built here, the assembler's words, the tables. No compiler is needed."""

import pathlib
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
import compile_matrix as cm  # noqa: E402


def elf(kernels, change=None):
    """A 64-bit ELF file as compilers for GPUs lay it out: {name: (registers, stack, shared, code)}."""
    names, texts, bodies = b"\0", b"\0", []

    def named(name):
        nonlocal names
        names += name.encode() + b"\0"
        return names.index(b"\0" + name.encode() + b"\0") + 1

    symbols, info = bytes(24), b""
    for i, (name, (registers, stack, _, _)) in enumerate(kernels.items(), 1):
        symbols += struct.pack("<IBBHQQ", len(texts), 2, 0, 0, 0, 0)
        texts += name.encode() + b"\0"
        info += struct.pack("<BBHII", 4, 0x2F, 8, i, registers) + struct.pack("<BBHII", 4, 0x11, 8, i, stack)
        info += struct.pack("<BBH", 3, 0x19, 40) + struct.pack("<BBHI", 4, 0x0A, 4, 7)  # others, to be passed over
    bodies = [(".symtab", 2, symbols, 0), (".strtab", 3, texts, 0), (".nv.info", 0x70000000, info, 0)]
    for name, (_, _, shared, code) in kernels.items():
        bodies.append((".text." + name, 1, bytes(code), 0))
        if shared:
            bodies.append((".nv.shared." + name, 8, b"", shared))
    headers, data = [bytes(64)], bytes(64)
    for name, kind, body, size in bodies + [(".shstrtab", 3, b"", 0)]:
        at = named(name)
        if name == ".shstrtab":
            body = names
        headers.append(struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, len(data), size or len(body), 0, 0, 0, 0))
        data += body
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, len(data), 0, 64, 0, 0, 64, len(headers), len(headers) - 1)
    return head + data[64:] + b"".join(headers)


class Cubins(unittest.TestCase):
    kernels = {"mk_a": (79, 0, 0, 1024), "mk_b": (32, 16, 4096, 128)}

    def test_facts(self):
        self.assertEqual(cm.read_cubin(elf(self.kernels)), {
            "mk_a": {"registers": 79, "stack_bytes": 0, "shared_bytes": 0, "code_bytes": 1024},
            "mk_b": {"registers": 32, "stack_bytes": 16, "shared_bytes": 4096, "code_bytes": 128},
        })  # fmt: skip

    def test_other_bytes_are_refused(self):
        whole = elf(self.kernels)
        for data in (b"", b"\x7fELF", whole[:200], whole[:-64], elf({}), elf({"mk_a": (0, 0, 0, 8)}), b"\x7fELF\2" + bytes(100)):
            with self.assertRaises(cm.Malformed):
                cm.read_cubin(data)

    def test_spills(self):
        log = ("ptxas info    : Compiling entry function 'mk_a' for 'sm_87'\nptxas info    : Function properties for mk_a\n"
               "ptxas         .     0 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
               "ptxas info    : Compiling entry function 'mk_b' for 'sm_87'\n"
               "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n")  # fmt: skip
        self.assertEqual(cm.spills_of(log), {"mk_a": 20, "mk_b": 0})


class Tables(unittest.TestCase):
    def rows(self):
        rows = cm.rows_of("kernels/x.cu", "87", "12.6", elf({"mk_a": (79, 0, 0, 1024)}), "")
        log = "Compiling entry function 'mk_a' for\n 8 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads"
        rows += cm.rows_of("kernels/x.cu", "87", "13.0", elf({"mk_a": (95, 8, 0, 2048)}), log)
        rows += cm.rows_of("kernels/x.cu", "110", "13.0", b"", "x.cu(3): error: no\n")
        rows += [dict.fromkeys(cm.COLUMNS, "-") | {"file": "kernels/x.cu", "sm": "110", "toolkit": "12.6", "state": cm.NOT_HERE}]
        return [{c: str(r[c]) for c in cm.COLUMNS} for r in rows]

    def test_which_toolkit_names_which_board(self):
        self.assertEqual([sorted(cm.sms_of(t)) for t in ("12.4", "12.9", "13.0")],
                         [["87", "90"], ["101", "87", "90"], ["110", "87", "90"]])  # fmt: skip

    def test_page(self):
        text = cm.markdown(self.rows())
        self.assertIn("| `mk_a` | 79, 1.0 | 95, **spills 12, stack 8**, 2.0 |", text)
        self.assertIn("| `mk_a` | not in this toolkit | failed |", text)
        self.assertIn("- `mk_a`, sm_87: registers 79 (12.6), 95 (13.0)", text)
        self.assertIn("x.cu(3): error: no", text)

    def test_the_committed_page_is_that_of_the_committed_table(self):
        results = pathlib.Path(__file__).absolute().parent.parent / "results"
        import csv

        with open(results / "compile_matrix.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(cm.csv_text(rows), (results / "compile_matrix.csv").read_text(encoding="utf-8"))
        self.assertEqual(cm.markdown(rows), (results / "compile_matrix.md").read_text(encoding="utf-8"))
        self.assertEqual([r for r in rows if r["state"] == "failed"], [])
        for row in rows:  # each board with the toolkits that know it, and no other
            self.assertEqual(row["state"] == cm.NOT_HERE, row["sm"] not in cm.sms_of(row["toolkit"]), row)


if __name__ == "__main__":
    unittest.main()
