"""Tests torch_to_safetensors.py with archives made here, by the standard library alone.

Usage: torch_to_safetensors_test.py CONVERTER FIXTURE [unittest's options]. FIXTURE is a checkpoint
that PyTorch itself wrote.
"""

import collections
import importlib.util
import io
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import tempfile
import time
import types
import unittest
import zipfile

CONVERTER, FIXTURE = sys.argv[1:3]
spec = importlib.util.spec_from_file_location("converter", CONVERTER)
converter = importlib.util.module_from_spec(spec)
spec.loader.exec_module(converter)

# ---- A writer of what torch.save writes: stand-ins under torch's names, so that pickle names them.


def stand_in(module, name, value):
    value.__module__, value.__qualname__ = module, name
    for at in range(len(module.split("."))):
        sys.modules.setdefault(".".join(module.split(".")[: at + 1]), types.ModuleType(module))
    setattr(sys.modules[module], name, value)
    return value


KINDS = {kind: stand_in("torch", kind, type(kind, (), {})) for kind in converter.STORAGES}
REBUILD = stand_in("torch._utils", "_rebuild_tensor_v2", lambda *a: None)
PARAMETER = stand_in("torch._utils", "_rebuild_parameter", lambda *a: None)
CFG_NODE = stand_in("yacs.config", "CfgNode", type("CfgNode", (dict,), {}))


class Storage:
    def __init__(self, kind, data, key=None, count=None):
        self.kind, self.data, self.key, self.count = kind, data, key, count


class Tensor:
    """Pickled as a tensor over `storage`."""

    def __init__(self, storage, shape, strides=None, offset=0):
        if strides is None:
            strides, step = [], 1
            for dim in reversed(shape):
                strides.insert(0, step)
                step *= dim
        self.arguments = (storage, offset, tuple(shape), tuple(strides), False, collections.OrderedDict())

    def __reduce__(self):
        return REBUILD, self.arguments


class Parameter:
    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce__(self):
        return PARAMETER, (self.tensor, True, collections.OrderedDict())


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def tensor(*values, shape=None):
    return Tensor(Storage("FloatStorage", floats(*values)), shape or [len(values)])


class Checkpoint:
    """Bytes of an archive; `entries` may be changed before `bytes()`."""

    def __init__(self, value, protocol=2, pickled=None):
        self.storages = []
        self.compression = zipfile.ZIP_STORED
        self.force_zip64 = False
        buffer = io.BytesIO()
        pickler = pickle.Pickler(buffer, protocol)
        pickler.persistent_id = self.persistent_id
        if pickled is None:
            pickler.dump(value)
        self.entries = {"archive/data.pkl": buffer.getvalue() if pickled is None else pickled}
        self.entries["archive/byteorder"] = b"little"
        for number, storage in enumerate(self.storages):
            self.entries[f"archive/data/{number}"] = storage.data
        self.entries["archive/version"] = b"3\n"

    def persistent_id(self, value):
        if type(value) is not Storage:
            return None
        if value not in self.storages:
            self.storages.append(value)
        size = converter.STORAGES[value.kind][1]
        count = len(value.data) // size if value.count is None else value.count
        return ("storage", KINDS[value.kind], str(self.storages.index(value)), "cpu", count)

    def bytes(self):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", self.compression) as file:
            for name, data in self.entries.items():
                with file.open(zipfile.ZipInfo(name) if self.compression == 0 else name, "w", force_zip64=self.force_zip64) as entry:
                    entry.write(data)
        return out.getvalue()


# ---- Running it


def convert(data, key=""):
    """The safetensors file as (tensors {name: (dtype, shape, bytes)}, notes); raises Refused."""
    sent = bytearray()
    converter.emit = sent.extend
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        converter.convert(file.fileno(), key)
    total, size = struct.unpack("<QQ", sent[:16])
    assert total == len(sent) - 8, "the announced size"
    header = json.loads(sent[16 : 16 + size])
    notes = header.pop("__metadata__")["notes"]
    body = bytes(sent[16 + size :])
    return {
        name: (entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])]) for name, entry in header.items()
    }, notes


def run_as_program(data, *arguments, **limits):
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        saved = None
        try:  # descriptor 3 of the child
            saved = os.dup(3)
        except OSError:
            pass
        os.dup2(file.fileno(), 3)
        try:
            return subprocess.run(
                [sys.executable, "-I", "-S", "-B", CONVERTER, *arguments], pass_fds=[3], capture_output=True, timeout=60
            )
        finally:
            os.dup2(saved, 3) if saved is not None else os.close(3)


class Good(unittest.TestCase):
    def test_a_file_of_torch_itself(self):
        with open(FIXTURE, "rb") as file:
            tensors, notes = convert(file.read())
        self.assertEqual(tensors["layers.0.blocks.0.op.A_logs"][:2], ("F32", [32, 2]))
        self.assertEqual(tensors["classifier.head.bias"][1], [5])
        self.assertIn("left out: epoch, model_ema, optimizer", notes)

    def test_values_names_and_order_survive_every_protocol(self):
        for protocol in (2, 3, 4, 5):
            state = collections.OrderedDict(b=tensor(1, 2, 3, 4, shape=[2, 2]), a=tensor(5))
            tensors, notes = convert(Checkpoint({"model": state}, protocol).bytes())
            self.assertEqual(list(tensors), ["b", "a"])
            self.assertEqual(tensors["b"], ("F32", [2, 2], floats(1, 2, 3, 4)))

    def test_every_stored_type(self):
        state = {kind: Tensor(Storage(kind, b"\1" * 8), [8 // size]) for kind, (_, size) in converter.STORAGES.items()}
        tensors, _ = convert(Checkpoint(state).bytes())
        for kind, (dtype, size) in converter.STORAGES.items():
            self.assertEqual(tensors[kind], (dtype, [8 // size], b"\1" * 8))

    def test_tensors_that_do_not_lie_in_order(self):
        data = Storage("FloatStorage", floats(*range(24)))
        state = {
            "transposed": Tensor(data, [4, 6], [1, 4]),
            "channels_last": Tensor(data, [2, 3, 2, 2], [12, 1, 6, 3]),
            "expanded": Tensor(data, [3, 2], [1, 0], 5),
            "every_other": Tensor(data, [4], [2], 1),
            "slice": Tensor(data, [2, 3], [3, 1], 6),
            "scalar": Tensor(data, [], [], 7),
            "empty": Tensor(data, [0, 3], [3, 1]),
            "ones": Tensor(data, [1, 3, 1], [99, 1, 77], 1),
        }
        tensors, _ = convert(Checkpoint(state).bytes())
        want = {
            "transposed": [c * 4 + r for r in range(4) for c in range(6)],
            "channels_last": [n * 12 + c + h * 6 + w * 3 for n in range(2) for c in range(3) for h in range(2) for w in range(2)],
            "expanded": [5, 5, 6, 6, 7, 7],
            "every_other": [1, 3, 5, 7],
            "slice": [6, 7, 8, 9, 10, 11],
            "scalar": [7],
            "empty": [],
            "ones": [1, 2, 3],
        }
        for name, values in want.items():
            self.assertEqual(tensors[name][2], floats(*values), name)
            self.assertEqual(tensors[name][1], list(state[name].arguments[2]), name)

    def test_parameters_zip64_and_extras_of_training(self):
        config = CFG_NODE(a=1, b=CFG_NODE(c=[1, "x"]))
        value = {"model": {"w": Parameter(tensor(1))}, "config": config, "epoch": 3, "rate": 0.5, "none": None, (1, 2): 3}
        checkpoint = Checkpoint(value)
        checkpoint.force_zip64 = True
        tensors, notes = convert(checkpoint.bytes())
        self.assertEqual(tensors["w"][2], floats(1))
        self.assertIn("config, epoch, none, rate", notes)

    def test_which_dict_is_taken(self):
        one, two = {"w": tensor(1)}, {"w": tensor(2)}
        for value, key, want in (
            ({"model": one, "model_ema": two}, "", 1),
            ({"model": one, "model_ema": two}, "model_ema", 2),
            ({"state_dict": one, "other": two}, "", 1),
            (two, "", 2),
        ):
            self.assertEqual(convert(Checkpoint(value).bytes(), key)[0]["w"][2], floats(want))
        for value, key, says in (
            ({"a": one, "b": two}, "", "the checkpoint holds: a, b"),
            ({"model": one}, "ema", "'ema' is not there; the checkpoint holds: model"),
            ({"epoch": 1}, "", "no dict of tensors"),
            ([one], "", "no dict of tensors"),
        ):
            with self.assertRaisesRegex(converter.Refused, says):
                convert(Checkpoint(value).bytes(), key)

    def test_an_archive_without_check_sums_is_taken_with_a_note(self):
        data = bytearray(Checkpoint({"w": tensor(1, 2)}).bytes())
        for signature, at in ((b"PK\3\4", 14), (b"PK\1\2", 16)):
            place = data.find(signature)
            while place >= 0:
                data[place + at : place + at + 4] = bytes(4)
                place = data.find(signature, place + 4)
        tensors, notes = convert(bytes(data))
        self.assertEqual(tensors["w"][2], floats(1, 2))
        self.assertIn("without check sums", notes)


class Marker:
    """Would make a file if its pickle were ever run."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


PROTO, STOP = b"\x80\x02", b"."


class Refusals(unittest.TestCase):
    def refused(self, data, says):
        begin = time.process_time()
        with self.assertRaisesRegex(converter.Refused, says):
            convert(data)
        self.assertLess(time.process_time() - begin, 10)

    def pickled(self, opcodes, says):
        self.refused(Checkpoint(None, pickled=PROTO + opcodes + STOP).bytes(), says)

    def test_programs_in_pickles_are_named_and_never_run(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pwned")
            for protocol in (2, 3, 4, 5):
                for value in (Marker(path), {"model": {"w": tensor(1), "x": Marker(path)}}):
                    self.refused(Checkpoint(value, protocol).bytes(), r"asks for '(posix|os|nt).system'.*Nothing was run")
            done = run_as_program(Checkpoint(Marker(path)).bytes())
            self.assertEqual(done.returncode, 3)
            self.assertFalse(os.path.exists(path))

    def test_other_ways_to_a_program(self):
        for name in (b"builtins\neval", b"builtins\ngetattr", b"builtins\n__import__", b"torch\nload", b"torch._utils\n_import_dotted_name",
                     b"torch.hub\nload", b"operator\nattrgetter", b"torch\nFloatStorage.__init__", b"collections\nOrderedDict.fromkeys",
                     b"torch._utils\n_rebuild_tensor_v2.__globals__", b"numpy\nload", b"runpy\n_run_code", b"torch.jit\nload"):
            self.pickled(b"c" + name + b"\n)R", "not on the list")
        self.pickled(b"(ios\nsystem\n", "opcode b'i'")
        self.pickled(b"(cos\nsystem\no", "not on the list")
        self.pickled(b"(o", "opcode b'o'")
        self.pickled(b"\x82\x01", r"opcode b'\\x82'")  # EXT1
        self.pickled(b"\x83\x01\x00", r"opcode b'\\x83'")
        self.pickled(b"\x84\x01\x00\x00\x00", r"opcode b'\\x84'")
        self.pickled(b"P0\n", "opcode b'P'")
        self.pickled(b"\x8c\x02os\x8c\x06system\x93", "os.system")
        self.pickled(b"K\x01K\x02\x93", "without a proper name")
        self.pickled(b"}K\x01R", "calls what is no function")
        self.pickled(b"X\x01\x00\x00\x00aX\x01\x00\x00\x00bR", "calls what is no function")
        self.pickled(b"ctorch._utils\n_rebuild_tensor_v2\n)\x81", "makes an object of")
        self.pickled(b"ctorch\nFloatStorage\n)\x81", "makes an object of")
        self.pickled(b"ctorch\nFloatStorage\n)R", "calls 'torch FloatStorage'")
        self.pickled(b"ctorch\nFloatStorage\n}b", "sets the state of what has none")
        self.pickled(b"\x92", r"opcode b'\\x92'")  # NEWOBJ_EX
        self.refused(Checkpoint(None, pickled=b"\x80\x06N.").bytes(), "protocol 6")
        self.refused(Checkpoint(None, pickled=b"I1\n.").bytes(), "opcode b'I'")

    def test_pickles_that_are_no_pickles(self):
        for opcodes, says in (
            (b"0", "empty stack"), (b"t", "no mark"), (b"e", "no mark"), (b"u", "no mark"), (b"s", "empty stack"), (b"b", "empty stack"),
            (b"q\0", "empty stack"), (b"h\7", "memo 7"), (b"R", "empty stack"), (b"Q", "empty stack"), (b"(R", "empty stack"),
            (b"(K\1Q", "persistent id"), (b"X\xff\xff\xff\xffab", "cut off"), (b"B\xff\xff\xff\x7fab", "cut off"),
            (b"\x8a\xff1", "cut off"), (b"\x8b\xff\xff\xff\x7f", "opcode"), (b"\x95\xff", "cut off"), (b"cos", "without an end"),
            (b"c" + b"a" * 9999 + b"\nb\n", "without an end"), (b"X\x01\0\0\0\xff", "broken string"),
            (b"K\1K\1a", "appends to what is no list"), (b"K\1K\1K\1s", "sets items of what is no dict"), (b"}(K\1u", "without a value"),
            (b"K\1Q", "persistent id that is no storage"), (b"", "empty stack"),
        ):
            self.pickled(opcodes, says)

    def test_bombs(self):
        self.pickled(b"Nr\xff\xff\xff\xff0" + b"N" + b"r\xfe\xff\xff\xff", "no dict of tensors")  # the memo is no array
        self.pickled(b"(" * 1_200_000, "more than 1048576 marks")
        self.pickled(b"N" * 1_200_000, "more than")
        self.pickled(b"]" + b"(" + b"N" * 1_200_000 + b"e", "more than")
        # A list of a list of ..., and of the same list many times over.
        self.pickled(b"N" + b"\x85" * 800_000, "no dict of tensors")
        self.pickled(b"]" + b"q\0" + b"(" + b"h\0" * 50 + b"e" + b"(" + b"h\0" * 50 + b"e", "no dict of tensors")
        self.pickled(b"}" + b"N" + b"\x85" * 500_000 + b"Ns", "no dict of tensors")  # a key whose hash would run deep

    def test_tensors_that_cannot_be(self):
        four = lambda **more: Storage("FloatStorage", floats(1, 2, 3, 4), **more)  # noqa: E731
        for value, says in (
            (Tensor(four(), [5]), "reaches element 4 of storage"),
            (Tensor(four(), [2], [4]), "reaches element 4"),
            (Tensor(four(), [1], [1], 4), "reaches element 4"),
            (Tensor(four(), [-1]), "none can have"),
            (Tensor(four(), [1], [-1]), "none can have"),
            (Tensor(four(), [1], [1], -1), "none can have"),
            (Tensor(four(), [1 << 60]), "none can have"),
            (Tensor(four(), [True]), "none can have"),
            (Tensor(four(), ["x"], [1]), "none can have"),
            (Tensor(four(), [1.0], [1]), "none can have"),
            (Tensor(four(), [1] * 65), "none can have"),
            (Tensor(four(), [1, 1], [1]), "none can have"),
            (Tensor(four(count=5), [5]), "has 16 bytes, must have 20"),
            (Tensor(four(count=3), [3]), "has 16 bytes, must have 12"),
            (Tensor(four(count=-1), [1]), "persistent id"),
            (Tensor("nothing", [1]), "no storage"),
            (Tensor(four(), [1 << 30, 4], [0, 1]), "more than twice the file"),
        ):
            self.refused(Checkpoint({"w": value}).bytes(), says)
        big = {f"w{i}": Tensor(Storage("FloatStorage", floats(*[0] * 1024)), [1024]) for i in range(4)}
        shared = Storage("FloatStorage", bytes(4 << 20))
        big.update({f"s{i}": Tensor(shared, [1 << 20]) for i in range(12)})
        self.refused(Checkpoint(big).bytes(), "repeat each other")

    def test_archives_that_are_not_torchs(self):
        good = {"w": tensor(1, 2, 3)}
        compressed = Checkpoint(good)
        compressed.compression = zipfile.ZIP_DEFLATED
        self.refused(compressed.bytes(), "is compressed")
        for name, says in (("../evil", "leaves the archive"), ("/etc/passwd", "leaves the archive"), ("a\\..\\b", "leaves the archive"),
                           ("archive/constants.pkl", "TorchScript")):
            checkpoint = Checkpoint(good)
            checkpoint.entries[name] = b"x"
            self.refused(checkpoint.bytes(), says)
        big_endian = Checkpoint(good)
        big_endian.entries["archive/byteorder"] = b"big"
        self.refused(big_endian.bytes(), "big-endian")
        without = Checkpoint(good)
        del without.entries["archive/data/0"]
        self.refused(without.bytes(), "is not in the archive")
        short = Checkpoint(good)
        short.entries["archive/data/0"] = floats(1, 2)
        self.refused(short.bytes(), "has 8 bytes, must have 12")
        other = Checkpoint(good)
        del other.entries["archive/data.pkl"]
        self.refused(other.bytes(), "no checkpoint of torch.save")
        encrypted = bytearray(Checkpoint(good).bytes())
        encrypted[encrypted.find(b"PK\1\2") + 8] |= 1
        self.refused(bytes(encrypted), "encrypted|damaged|in place")
        twice = io.BytesIO()
        with zipfile.ZipFile(twice, "w") as file:
            file.writestr("archive/data.pkl", b"x")
            import warnings

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                file.writestr("archive/data.pkl", b"y")
        self.refused(twice.getvalue(), "there twice")
        many = io.BytesIO()
        with zipfile.ZipFile(many, "w") as file:
            for i in range((1 << 16) + 1):
                file.writestr(str(i), b"")
        self.refused(many.getvalue(), "the limit is 65536")

    def test_a_damaged_number_is_seen(self):
        data = bytearray(Checkpoint({"w": tensor(*range(1000))}).bytes())
        data[data.find(floats(500))] ^= 1
        self.refused(bytes(data), "archive/data/0' is damaged")


class Damage(unittest.TestCase):
    """Whatever is done to a real file: a refusal, or the very same tensors."""

    def setUp(self):
        with open(FIXTURE, "rb") as file:
            self.data = file.read()
        self.good = convert(self.data)[0]

    def outcome(self, data, what):
        begin = time.process_time()
        try:
            tensors = convert(data)[0]
        except converter.Refused as refusal:
            self.assertTrue(str(refusal), what)
            tensors = None
        self.assertLess(time.process_time() - begin, 10, what)
        return tensors

    def test_every_truncation_is_refused(self):
        # Without its end the archive has no directory: all lengths near it, and a share of the others.
        sizes = sorted(set(range(0, len(self.data), 23)) | set(range(len(self.data) - 600, len(self.data))))
        for size in sizes:
            self.assertIsNone(self.outcome(self.data[:size], f"cut to {size}"), f"cut to {size}")

    def test_flipped_bytes_change_nothing_unseen(self):
        generator = random.Random(4)
        places = sorted(generator.sample(range(len(self.data)), 3000))
        refused = 0
        for place in places:
            flipped = bytearray(self.data)
            flipped[place] ^= 1 << generator.randrange(8)
            tensors = self.outcome(bytes(flipped), f"flipped at {place}")
            if tensors is None:
                refused += 1
            else:
                self.assertEqual({n: t[2] for n, t in tensors.items()}, {n: t[2] for n, t in self.good.items()}, f"flipped at {place}")
        self.assertGreater(refused, 1000)

    def test_the_program_says_it_in_a_line(self):
        done = run_as_program(self.data[:-10])
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"damaged or cut off", done.stderr)
        self.assertNotIn(b"Traceback", done.stderr)
        self.assertEqual(done.stdout, b"")
        self.assertEqual(run_as_program(self.data, "model").returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
