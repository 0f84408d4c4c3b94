"""A PyTorch zip checkpoint in, a safetensors stream out. Standard library only; run by `mk import`.

Descriptor 3 is the checkpoint. Standard output gets the size of all that follows (u64, little
endian) and then a safetensors file; standard error one line when the file is refused (exit code 3).

Nothing of a checkpoint is ever called. The pickle machine below is our own: it knows the opcodes
that a state dict needs, names of classes stay names, and the handful of names it acts on build
plain dicts and descriptions of tensors. Everything else is refused with its name.

The archive: entries are stored, not compressed (PyTorch never compresses), their places are checked
against the file, and the CRC-32 of all that is used is verified. Data goes out in pieces of a
mebibyte; only a tensor that does not lie in order in its storage is gathered in memory.

One file on purpose: it travels inside `mk` as one string.
"""

import json
import os
import struct
import sys
import zipfile
import zlib

CHECKPOINT = 3
PIECE = 1 << 20
MAX_ENTRIES = 1 << 16
MAX_PICKLE = 16 << 20
MAX_OBJECTS = 1 << 20  # on the stack, in the memo, in containers
MAX_RANK = 64
MAX_NAME = 512
MAX_GATHERED = 256 << 20

# Storage class -> (safetensors dtype, bytes of an element).
STORAGES = {
    "FloatStorage": ("F32", 4),
    "DoubleStorage": ("F64", 8),
    "HalfStorage": ("F16", 2),
    "BFloat16Storage": ("BF16", 2),
    "LongStorage": ("I64", 8),
    "IntStorage": ("I32", 4),
    "ShortStorage": ("I16", 2),
    "CharStorage": ("I8", 1),
    "ByteStorage": ("U8", 1),
    "BoolStorage": ("BOOL", 1),
}
DICTS = {"collections OrderedDict", "builtins dict", "collections defaultdict"}
TENSORS = {"torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v2"}
WRAPPERS = {"torch._utils _rebuild_parameter", "torch._utils _rebuild_parameter_with_state"}
# What training scripts put beside the weights. Their contents are read over and forgotten.
INERT = {
    "argparse Namespace",
    "yacs.config CfgNode",
    "numpy dtype",
    "numpy.core.multiarray scalar",
    "numpy._core.multiarray scalar",
    "numpy.core.multiarray _reconstruct",
    "numpy._core.multiarray _reconstruct",
    "numpy ndarray",
    "_codecs encode",
    "builtins set",
    "builtins list",
    "builtins int",
    "torch Size",
    "torch device",
    "torch.torch_version TorchVersion",
    "collections Counter",
    "pathlib PosixPath",
    "pathlib._local PosixPath",
} | {"torch " + kind for kind in ("float16", "bfloat16", "float32", "float64", "int64", "int32", "uint8", "bool")}


class Refused(Exception):
    """The one error that is told to the user."""


def shown(text):
    """`text` fit for one line of an error."""
    return str(text)[:200].encode("unicode_escape").decode("ascii")


class Global:
    def __init__(self, name):
        self.name = name


class Opaque:
    """Something whose contents do not matter."""


class Storage:
    def __init__(self, key, kind, count):
        self.key, self.count = key, count
        self.dtype, self.item = STORAGES[kind]


class Tensor:
    def __init__(self, storage, offset, shape, strides):
        self.storage, self.offset, self.shape, self.strides = storage, offset, shape, strides

    def elements(self):
        count = 1
        for dim in self.shape:
            count *= dim
        return count

    def size(self):
        return self.elements() * self.storage.item

    def is_in_order(self):
        expected = 1
        for dim, stride in zip(reversed(self.shape), reversed(self.strides)):
            if dim != 1 and stride != expected:
                return False
            expected *= dim
        return True


# ---- The archive


class Archive:
    """The entries of a stored zip file, found in `fd`."""

    def __init__(self, fd):
        self.fd = fd
        self.size = os.fstat(fd).st_size
        self.verified = set()
        try:
            # The directory is at the end; zipfile knows both of its formats.
            with os.fdopen(os.dup(fd), "rb") as file, zipfile.ZipFile(file) as archive:
                infos = archive.infolist()
        except (zipfile.BadZipFile, OSError, ValueError, EOFError, struct.error, OverflowError) as error:
            raise Refused(f"the zip archive is damaged or cut off: {shown(error)}")
        except (NotImplementedError, UnicodeError, RuntimeError) as error:
            raise Refused(f"no zip archive of PyTorch: {shown(error)}")
        if len(infos) > MAX_ENTRIES:
            raise Refused(f"the archive has {len(infos)} entries, the limit is {MAX_ENTRIES}")
        self.entries = {}
        for info in infos:
            self.check(info)
            self.entries[info.filename] = info
        pickles = [name for name in self.entries if name.count("/") == 1 and name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise Refused("the archive has no <name>/data.pkl: it is no checkpoint of torch.save")
        self.prefix = pickles[0][: -len("data.pkl")]
        # torch.serialization.set_crc32_options(False) writes zeros everywhere.
        self.has_sums = any(info.CRC for info in infos)
        if self.prefix + "constants.pkl" in self.entries:
            raise Refused("this is a TorchScript program; save model.state_dict() with torch.save instead")
        order = self.prefix + "byteorder"
        if order in self.entries and self.read(order, 16) != b"little":
            raise Refused("the checkpoint is big-endian")

    def check(self, info):
        name = info.filename
        if len(name) > MAX_NAME or name.startswith("/") or "\\" in name or ".." in name.split("/"):
            raise Refused(f"entry '{shown(name)}' has a name that leaves the archive")
        if name in self.entries:
            raise Refused(f"entry '{shown(name)}' is there twice")
        if info.flag_bits & 1:
            raise Refused(f"entry '{shown(name)}' is encrypted")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise Refused(f"entry '{shown(name)}' is compressed; torch.save stores entries as they are")
        if info.file_size > self.size:
            raise Refused(f"entry '{shown(name)}' of {info.file_size} bytes passes the file's {self.size}")

    def place(self, name):
        """Where the entry's bytes begin in the file."""
        info = self.entries[name]
        header = os.pread(self.fd, 30, info.header_offset) if info.header_offset >= 0 else b""
        if len(header) != 30 or header[:4] != b"PK\3\4":
            raise Refused(f"entry '{shown(name)}' is not where the directory says")
        name_size, extra_size = struct.unpack("<HH", header[26:30])
        stored_name = os.pread(self.fd, name_size, info.header_offset + 30)
        if stored_name != name.encode():
            raise Refused(f"entry '{shown(name)}' is called '{shown(stored_name.decode('latin-1'))}' in place")
        begin = info.header_offset + 30 + name_size + extra_size
        if begin + info.file_size > self.size:
            raise Refused(f"entry '{shown(name)}' passes the end of the file")
        return begin

    def pieces(self, begin, size):
        while size:
            piece = os.pread(self.fd, min(size, PIECE), begin)
            if not piece:
                raise Refused(f"the file ended early at byte {begin}")
            yield piece
            begin += len(piece)
            size -= len(piece)

    def check_sum(self, name, crc):
        must = self.entries[name].CRC
        if crc != must and self.has_sums:
            raise Refused(f"entry '{shown(name)}' is damaged: its CRC-32 is {crc:08x}, must be {must:08x}")
        self.verified.add(name)

    def verify(self, name):
        if name in self.verified:
            return
        crc = 0
        for piece in self.pieces(self.place(name), self.entries[name].file_size):
            crc = zlib.crc32(piece, crc)
        self.check_sum(name, crc)

    def read(self, name, limit):
        info = self.entries[name]
        if info.file_size > limit:
            raise Refused(f"entry '{shown(name)}' has {info.file_size} bytes, the limit is {limit}")
        self.verify(name)
        return b"".join(self.pieces(self.place(name), info.file_size))


# ---- The pickle


def is_count(value):
    return type(value) is int and 0 <= value < 1 << 48


class Machine:
    """Runs a pickle's opcodes; see the table at the end of the class."""

    def __init__(self, data):
        self.data = data
        self.at = 0
        self.stack = []
        self.marks = []
        self.memo = {}
        self.made = 0

    def take(self, count):
        if count > len(self.data) - self.at:
            raise Refused(f"the pickle is cut off at byte {self.at}")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, form, size):
        return struct.unpack(form, self.take(size))[0]

    def push(self, value):
        self.made += 1
        if self.made > MAX_OBJECTS:
            raise Refused(f"the pickle makes more than {MAX_OBJECTS} objects")
        self.stack.append(value)

    def pop(self):
        floor = self.marks[-1] if self.marks else 0
        if len(self.stack) <= floor:
            raise Refused(f"the pickle takes from an empty stack at byte {self.at}")
        return self.stack.pop()

    def mark(self):
        if len(self.marks) == MAX_OBJECTS:
            raise Refused(f"the pickle sets more than {MAX_OBJECTS} marks")
        self.marks.append(len(self.stack))

    def pop_mark(self):
        if not self.marks:
            raise Refused(f"the pickle has no mark at byte {self.at}")
        begin = self.marks.pop()
        values = self.stack[begin:]
        del self.stack[begin:]
        return values

    def run(self):
        while True:
            opcode = self.take(1)
            if opcode == b".":
                return self.pop()
            handler = self.HANDLERS.get(opcode)
            if handler is None:
                raise Refused(f"the pickle uses opcode {opcode!r} at byte {self.at - 1}, which no state dict needs")
            handler(self)

    # Values.
    def protocol(self):
        version = self.number("<B", 1)
        if not 2 <= version <= 5:
            raise Refused(f"the pickle has protocol {version}, must be 2 to 5")

    def text(self, size):
        try:
            self.push(self.take(size).decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError:
            raise Refused(f"the pickle holds a broken string before byte {self.at}")

    def put(self, index):
        if len(self.memo) > MAX_OBJECTS:
            raise Refused("the pickle's memo is too large")
        value = self.pop()
        self.memo[index] = value
        self.stack.append(value)

    def get(self, index):
        if index not in self.memo:
            raise Refused(f"the pickle reads memo {index}, which was never written")
        self.push(self.memo[index])

    def tuple_of(self, count):
        values = [self.pop() for _ in range(count)]
        self.push(tuple(reversed(values)))

    # Containers.
    def append_all(self, values):
        target = self.pop()
        if type(target) is list:
            self.made += len(values)
            target.extend(values)
        elif type(target) is not Opaque:
            raise Refused(f"the pickle appends to what is no list at byte {self.at}")
        self.stack.append(target)

    def set_all(self, values):
        target = self.pop()
        if len(values) % 2:
            raise Refused(f"the pickle has a key without a value at byte {self.at}")
        if type(target) is dict:
            for key, value in zip(values[::2], values[1::2]):
                # Others cannot name a tensor; their hash could be made to run deep.
                target[key if type(key) in (str, int) else Opaque()] = value
        elif type(target) is not Opaque:
            raise Refused(f"the pickle sets items of what is no dict at byte {self.at}")
        self.stack.append(target)

    # Names.
    def find(self, module, name):
        for part in (module, name):
            if type(part) is not str or len(part) > MAX_NAME:
                raise Refused("the pickle names a class without a proper name")
        full = f"{module} {name}"
        known = full in DICTS or full in TENSORS or full in WRAPPERS or full in INERT
        if not known and not (module == "torch" and name in STORAGES):
            raise Refused(
                f"the pickle asks for '{shown(module)}.{shown(name)}', which is not on the list of what a state dict "
                "needs. Nothing was run. Save the weights alone: torch.save(model.state_dict(), 'NEW.pth')"
            )
        self.push(Global(full))

    def line(self):
        end = self.data.find(b"\n", self.at, self.at + MAX_NAME + 1)
        if end < 0:
            raise Refused(f"the pickle names a class without an end at byte {self.at}")
        text = self.take(end - self.at)
        self.at += 1
        return text.decode("utf-8", "replace")

    def global_lines(self):
        module = self.line()
        self.find(module, self.line())

    def stack_global(self):
        name, module = self.pop(), self.pop()
        self.find(module, name)

    def persistent(self):
        value = self.pop()
        good = (
            type(value) is tuple
            and 5 <= len(value) <= 6
            and value[0] == "storage"
            and type(value[1]) is Global
            and value[1].name.startswith("torch ")
            and value[1].name[6:] in STORAGES
            and type(value[2]) is str
            and is_count(value[4])
        )
        if not good:
            raise Refused(f"the pickle has a persistent id that is no storage, before byte {self.at}")
        self.push(Storage(value[2], value[1].name[6:], value[4]))

    def reduce(self):
        arguments, function = self.pop(), self.pop()
        if type(function) is not Global or type(arguments) is not tuple:
            raise Refused(f"the pickle calls what is no function at byte {self.at}")
        self.push(self.build(function.name, arguments))

    def new_object(self):
        arguments, kind = self.pop(), self.pop()
        if type(kind) is not Global or type(arguments) is not tuple:
            raise Refused(f"the pickle makes an object of what is no class at byte {self.at}")
        if kind.name in TENSORS or kind.name in WRAPPERS or kind.name not in DICTS | INERT:
            raise Refused(f"the pickle makes an object of '{shown(kind.name)}'")
        self.push(self.build(kind.name, arguments))

    def build(self, name, arguments):
        if name in DICTS:
            # OrderedDict(), OrderedDict([(key, value), ...]), defaultdict(kind).
            made = {}
            pairs = arguments[0] if name == "collections OrderedDict" and arguments else []
            for pair in pairs if type(pairs) in (list, tuple) else []:
                if type(pair) not in (list, tuple) or len(pair) != 2 or type(pair[0]) not in (str, int):
                    raise Refused("the pickle makes a dict of what are no pairs")
                made[pair[0]] = pair[1]
            return made
        if name in TENSORS:
            return rebuilt(arguments)
        if name in WRAPPERS:
            if not arguments or type(arguments[0]) is not Tensor:
                raise Refused("the pickle makes a parameter of what is no tensor")
            return arguments[0]
        if name in INERT:
            return Opaque()
        raise Refused(f"the pickle calls '{shown(name)}'")

    def set_state(self):
        self.pop()  # hooks, metadata: no weights
        if type(self.stack[-1] if self.stack else None) not in (dict, Opaque, Tensor):
            raise Refused(f"the pickle sets the state of what has none at byte {self.at}")

    HANDLERS = {
        b"\x80": protocol,
        b"\x95": lambda m: m.take(8),  # FRAME: its length is only a hint for reading ahead
        b"(": mark,
        b"0": lambda m: m.pop(),
        b"N": lambda m: m.push(None),
        b"\x88": lambda m: m.push(True),
        b"\x89": lambda m: m.push(False),
        b"J": lambda m: m.push(m.number("<i", 4)),
        b"K": lambda m: m.push(m.number("<B", 1)),
        b"M": lambda m: m.push(m.number("<H", 2)),
        b"\x8a": lambda m: m.push(int.from_bytes(m.take(m.number("<B", 1)), "little", signed=True)),
        b"G": lambda m: m.push(m.number(">d", 8)),
        b"X": lambda m: m.text(m.number("<I", 4)),
        b"\x8c": lambda m: m.text(m.number("<B", 1)),
        b"U": lambda m: m.push(m.take(m.number("<B", 1)).decode("latin-1")),
        b"T": lambda m: m.push(m.take(m.number("<I", 4)).decode("latin-1")),
        b"B": lambda m: m.push(bytes(m.take(m.number("<I", 4)))),
        b"C": lambda m: m.push(bytes(m.take(m.number("<B", 1)))),
        b"q": lambda m: m.put(m.number("<B", 1)),
        b"r": lambda m: m.put(m.number("<I", 4)),
        b"\x94": lambda m: m.put(len(m.memo)),
        b"h": lambda m: m.get(m.number("<B", 1)),
        b"j": lambda m: m.get(m.number("<I", 4)),
        b"}": lambda m: m.push({}),
        b"]": lambda m: m.push([]),
        b")": lambda m: m.push(()),
        b"\x8f": lambda m: m.push(Opaque()),  # EMPTY_SET
        b"\x90": lambda m: m.append_all(m.pop_mark()),  # ADDITEMS
        b"t": lambda m: m.push(tuple(m.pop_mark())),
        b"\x85": lambda m: m.tuple_of(1),
        b"\x86": lambda m: m.tuple_of(2),
        b"\x87": lambda m: m.tuple_of(3),
        b"a": lambda m: m.append_all([m.pop()]),
        b"e": lambda m: m.append_all(m.pop_mark()),
        b"s": lambda m: m.set_all([m.pop(), m.pop()][::-1]),
        b"u": lambda m: m.set_all(m.pop_mark()),
        b"c": global_lines,
        b"\x93": stack_global,
        b"Q": persistent,
        b"R": reduce,
        b"\x81": new_object,
        b"b": set_state,
    }


def rebuilt(arguments):
    """The Tensor of _rebuild_tensor's and _rebuild_tensor_v2's arguments."""
    if len(arguments) < 4 or type(arguments[0]) is not Storage:
        raise Refused("the pickle makes a tensor of what is no storage")
    storage, offset, shape, strides = arguments[:4]
    good = is_count(offset) and type(shape) is tuple and type(strides) is tuple
    good = good and len(shape) == len(strides) <= MAX_RANK and all(map(is_count, shape + strides))
    if not good:
        raise Refused("the pickle makes a tensor of a shape or strides that none can have")
    last = offset + sum((dim - 1) * stride for dim, stride in zip(shape, strides))
    if 0 not in shape and last >= storage.count:
        raise Refused(
            f"a tensor of shape {list(shape)} reaches element {last} of storage '{shown(storage.key)}', "
            f"which has {storage.count}"
        )
    return Tensor(storage, offset, shape, strides)


# ---- The state dict


def tensors_in(value):
    return sum(type(item) is Tensor for item in value.values()) if type(value) is dict else 0


def choose(top, key):
    """The state dict, and a note on what was left out."""
    if type(top) is not dict:
        raise Refused("the checkpoint is no dict of tensors; save model.state_dict()")
    holders = sorted(name for name, value in top.items() if type(name) is str and tensors_in(value))
    if not key:
        # torch.save({"model": ...}) as training scripts write it; never the average of an EMA unasked.
        key = next((name for name in ("model", "state_dict") if name in holders), "")
        if not key and not tensors_in(top):
            what = ", ".join(map(shown, holders[:20])) or "no dict of tensors"
            raise Refused(f"which state dict? Say --state-dict KEY; the checkpoint holds: {what}")
    elif key not in holders:
        what = ", ".join(map(shown, holders[:20])) or "no dict of tensors"
        raise Refused(f"--state-dict '{shown(key)}' is not there; the checkpoint holds: {what}")
    if not key:
        return top, []
    others = sorted(shown(name) for name in top if type(name) is str and name != key)
    notes = [f"taken: the dict '{shown(key)}'" + (f"; left out: {', '.join(others[:20])}" if others else "")]
    return top[key], notes


def named_tensors(state, notes):
    chosen, others = {}, []
    for name, value in state.items():
        if type(name) is not str or len(name) > MAX_NAME:
            raise Refused(f"a tensor's name is no text of at most {MAX_NAME} characters: {shown(name)}")
        if type(value) is Tensor:
            chosen[name] = value
        else:
            others.append(shown(name))
    if others:
        notes.append(f"no tensors, left out: {', '.join(others[:20])}")
    return chosen


def check_storages(archive, tensors):
    for name, tensor in tensors.items():
        entry = f"{archive.prefix}data/{tensor.storage.key}"
        if entry not in archive.entries:
            raise Refused(f"tensor '{shown(name)}': its storage '{shown(entry)}' is not in the archive")
        have, need = archive.entries[entry].file_size, tensor.storage.count * tensor.storage.item
        if have != need:
            raise Refused(f"tensor '{shown(name)}': its storage has {have} bytes, must have {need}")
    total, limit = sum(map(Tensor.size, tensors.values())), 2 * archive.size + (16 << 20)
    if total > limit:
        raise Refused(f"the tensors take {total} bytes, more than twice the file: they repeat each other")


def header_of(tensors, notes):
    header, at = {"__metadata__": {"notes": "\n".join(notes)}}, 0
    for name, tensor in tensors.items():
        size = tensor.size()
        header[name] = {"dtype": tensor.storage.dtype, "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    try:
        text = json.dumps(header).encode("ascii")
    except ValueError as error:
        raise Refused(f"a tensor's name is no text: {shown(error)}")
    text += b" " * (-len(text) % 8)
    return struct.pack("<QQ", 8 + len(text) + at, len(text)) + text


def emit(data):
    data = memoryview(data)
    while data:
        data = data[os.write(1, data) :]


def send(archive, name, tensor):
    entry = f"{archive.prefix}data/{tensor.storage.key}"
    if tensor.size() == 0:
        return
    if tensor.is_in_order():
        size = tensor.size()
        whole = size == archive.entries[entry].file_size and entry not in archive.verified
        if not whole:
            archive.verify(entry)
        crc = 0
        for piece in archive.pieces(archive.place(entry) + tensor.offset * tensor.storage.item, size):
            crc = zlib.crc32(piece, crc) if whole else 0
            emit(piece)
        if whole:
            archive.check_sum(entry, crc)
        return
    if archive.entries[entry].file_size > MAX_GATHERED:
        raise Refused(
            f"tensor '{shown(name)}' does not lie in order, and its storage passes {MAX_GATHERED} bytes; "
            "save .contiguous() tensors"
        )
    stored = archive.read(entry, MAX_GATHERED)
    elements = memoryview(stored).cast({1: "B", 2: "H", 4: "I", 8: "Q"}[tensor.storage.item])
    gather(elements, tensor.offset, tensor.shape, tensor.strides)


def gather(elements, begin, shape, strides):
    """Sends the elements in row-major order, a run along the last dimension at a time."""
    count, stride = shape[-1], strides[-1]
    index = [0] * (len(shape) - 1)
    out = bytearray()
    while True:
        at = begin + sum(i * s for i, s in zip(index, strides))
        if stride:
            out += elements[at : at + (count - 1) * stride + 1 : stride].tobytes()
        else:
            out += elements[at : at + 1].tobytes() * count
        if len(out) >= PIECE:
            emit(out)
            out = bytearray()
        for dim in range(len(index) - 1, -1, -1):
            index[dim] += 1
            if index[dim] < shape[dim]:
                break
            index[dim] = 0
        else:
            emit(out)
            return


def convert(fd, key):
    archive = Archive(fd)
    state, notes = choose(Machine(archive.read(archive.prefix + "data.pkl", MAX_PICKLE)).run(), key)
    tensors = named_tensors(state, notes)
    if not archive.has_sums:
        notes.append("the archive was written without check sums: damage in its numbers would not be seen")
    check_storages(archive, tensors)
    emit(header_of(tensors, notes))
    for name, tensor in tensors.items():
        send(archive, name, tensor)


if __name__ == "__main__":
    try:
        convert(CHECKPOINT, sys.argv[1] if len(sys.argv) > 1 else "")
    except Refused as refusal:
        os.write(2, str(refusal).encode("utf-8", "replace")[:4000])
        os._exit(3)
    except (MemoryError, RecursionError) as error:
        os.write(2, f"the converter met its limit of memory ({type(error).__name__})".encode())
        os._exit(4)
    except BrokenPipeError:
        os._exit(5)
