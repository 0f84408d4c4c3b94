"""What a .pt2 file holds, looked at before PyTorch opens it. Standard library only; runs nothing of the file.

`torch.export.load` trusts its file: it unpickles what the file marks as pickled, falls back to full unpickling where the
sample inputs do not load otherwise, loads compiled code, calls any function of torch that the graph names, and evaluates
the texts of symbolic sizes. So only archives are let through that hold a graph of known operators over plain tensors.
export_child.py shuts the same doors once more in PyTorch itself, should the two read the archive differently.
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

from refused import Refused, line

MAX_MEMBERS = 200_000
MAX_JSON = 256 << 20
STAGE = "reading the program"
TRUST = "the front lets only graphs of known operators over plain tensors pass"

# Behind the archive's own folder.
KNOWN = re.compile(
    r"archive_format|archive_version|byteorder|\.data/[\w.]+|models/model\.json|extra/.*"
    r"|data/weights/(?:weight_\d+|model_weights_config\.json)|data/constants/(?:tensor_\d+|model_constants_config\.json)"
    r"|data/sample_inputs/model\.pt"
)
# What else there can be, and why it is not opened.
DANGEROUS = (
    (r"data/aotinductor/", "it holds compiled code, which loading would run"),
    (r"data/executorch/", "it holds a program of another runtime"),
    (r"data/weights/.*\.pt$|data/constants/.*\.pt$", "its weights are pickled, which loading would run"),
    (r"data/constants/(?:custom_obj_|opaque_obj_)", "it holds pickled objects, which loading would run"),
)
OPERATORS = re.compile(
    r"torch\.ops\.(?:aten|prims|quantized_decomposed|onnx|onnx_symbolic)\.\w+\.\w+"
    r"|torch\.ops\.higher_order\.(?:cond|while_loop|scan|map_impl|associative_scan|wrap_with_set_grad_enabled|wrap_with_autocast)"
    r"|_operator\.(?:getitem|add|sub|mul|truediv|floordiv|mod|neg|pow|and_|or_|not_|eq|ne|lt|le|gt|ge)"
    r"|math\.(?:ceil|floor|trunc|sqrt|pow)|torch\.sym_(?:int|float|max|min|not|ite|sum)|torch\._sym_\w+"
)
FILES = re.compile(r"torch\.ops\.aten\.from_file\b")  # opens what the graph names
SYMBOL = re.compile(r"Symbol\('[a-z]+\d+'(?:, \w+=(?:True|False))*\)")
WORD = re.compile(
    r"(?:[a-z]{1,4}\d+|FloorDiv|ModularIndexing|Where|PythonMod|Mod|CleanDiv|CeilToInt|FloorToInt|CeilDiv|LShift|RShift|PowByNatural"
    r"|FloatPow|FloatTrueDiv|IntTrueDiv|TruncToFloat|TruncToInt|RoundToInt|ToFloat|Identity|Max|Min|Add|Mul|Pow|Integer|Rational"
    r"|Eq|Ne|Lt|Le|Gt|Ge|Equality|Unequality|Less|Greater|LessThan|GreaterThan|StrictLessThan|StrictGreaterThan|And|Or|Not"
    r"|Symbol|Float|ceiling|floor|oo|int_oo|True|False|evaluate|e\d+)"
)


def is_plain_expression(text: str) -> bool:
    """Whether the text of a symbolic size is arithmetic over symbols and functions of sizes: safe to evaluate."""
    rest = SYMBOL.sub("s0", text)
    if len(text) > 100_000 or "**" in rest and re.search(r"\*\*\s*\d{3,}", rest):
        return False
    if not re.fullmatch(r"[\w\s+\-*/%(),.<>=&|~!]*", rest, re.ASCII) or re.search(r"[A-Za-z_)]\s*\.", rest):
        return False
    return all(WORD.fullmatch(word) for word in re.findall(r"[A-Za-z_]\w*", rest))


def _refuse(kind: str, text: str, hint: str = "") -> Refused:
    return Refused(kind, STAGE, text, hint)


def _json_of(archive: zipfile.ZipFile, name: str) -> object:
    info = archive.getinfo(name)
    if info.file_size > MAX_JSON:
        raise _refuse("no-program", f"{name}: {info.file_size} bytes, the limit is {MAX_JSON}")
    try:
        return json.loads(archive.read(name))
    except (ValueError, RecursionError, zipfile.BadZipFile) as error:
        raise _refuse("no-program", f"{name}: {line(error)}") from None


def _check_members(archive: zipfile.ZipFile) -> str:
    """The archive's own folder, with "/" behind."""
    infos = archive.infolist()
    names = [info.filename for info in infos]
    if len(names) > MAX_MEMBERS:
        raise _refuse("no-program", f"{len(names)} members, the limit is {MAX_MEMBERS}")
    if "serialized_exported_program.json" in names:
        raise _refuse("untrusted", "it was saved before PyTorch 2.8, in a form that is loaded by unpickling",
                      "Save it again with a newer torch.export.save.")  # fmt: skip
    root = names[0].split("/")[0] + "/" if names else ""
    if root + "archive_format" not in names:
        what = "a TorchScript or pickled model" if any(n.endswith("/data.pkl") for n in names) else "another zip archive"
        raise _refuse("no-program", f"it is {what}, not what torch.export.save writes")
    for info in infos:
        inner = info.filename[len(root) :]
        if not info.filename.startswith(root) or len(set(names)) != len(names):
            raise _refuse("no-program", "its members have no folder in common, or a name twice")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise _refuse("no-program", f"{info.filename} is compressed or encrypted, which torch.export.save does not do")
        for pattern, why in DANGEROUS:
            if re.match(pattern, inner):
                raise _refuse("untrusted", f"{inner}: {why}", TRUST[0].upper() + TRUST[1:] + ".")
        if not KNOWN.fullmatch(inner):
            if re.fullmatch(r"models/.*\.json", inner):
                raise _refuse("no-program", f"{inner}: only a program called 'model' is read, as torch.export.save writes it")
            raise _refuse("no-program", f"it holds {line(inner, 100)}, which a program by torch.export.save does not")
    return root


def _check_payload(archive: zipfile.ZipFile, name: str) -> None:
    config = _json_of(archive, name)
    entries = config.get("config") if isinstance(config, dict) else None
    if not isinstance(entries, dict):
        raise _refuse("no-program", f"{name}: has no object 'config'")
    for key, entry in entries.items():
        if not isinstance(entry, dict) or entry.get("use_pickle") is not False:
            raise _refuse("untrusted", f"{line(key, 80)} is pickled, which loading would run (a subclass of Tensor is stored so)")
        if not re.fullmatch(r"(?:weight|tensor)_\d+", str(entry.get("path_name"))):
            raise _refuse("untrusted", f"{line(key, 80)}: stored as {line(entry.get('path_name'), 60)}")


def _check_graph(value: object) -> None:
    """All nodes, sizes and types of the program."""
    queue = [value]
    while queue:
        item = queue.pop()
        if isinstance(item, list):
            queue += item
        if not isinstance(item, dict):
            continue
        queue += item.values()
        target = item.get("target")
        for called in (target if "inputs" in item else None, item.get("as_operator")):
            if called is None:
                continue
            if not isinstance(called, str) or FILES.match(called) or not OPERATORS.fullmatch(called):
                raise _refuse("foreign-operator", f"the graph calls {line(called, 120)}",
                              "Only PyTorch's own operators are loaded; a library that adds others is not imported.")  # fmt: skip
        text = item.get("expr_str")
        if text is not None and not (isinstance(text, str) and is_plain_expression(text)):
            raise _refuse("untrusted", f"the symbolic size {line(text, 80)!r} is no plain arithmetic, and loading would evaluate it")
        if any("__enum__" in str(item.get(key)) for key in ("in_spec", "out_spec")):
            raise _refuse("untrusted", "its inputs hold an enumeration, for which loading would import a module that the file names")


def check(path: Path) -> dict:
    """What is known of the program without PyTorch: {"torch_version"}. Raises Refused."""
    try:
        with zipfile.ZipFile(path) as archive:
            root = _check_members(archive)
            for needed in ("models/model.json", "data/weights/model_weights_config.json", "data/constants/model_constants_config.json"):
                if root + needed not in archive.namelist():
                    raise _refuse("no-program", f"{needed} is missing")
            _check_payload(archive, root + "data/weights/model_weights_config.json")
            _check_payload(archive, root + "data/constants/model_constants_config.json")
            program = _json_of(archive, root + "models/model.json")
            if not isinstance(program, dict) or "graph_module" not in program:
                raise _refuse("no-program", "models/model.json holds no graph_module")
            _check_graph(program)
            return {"torch_version": line(program.get("torch_version", ""), 40)}
    except zipfile.BadZipFile:
        raise _refuse("no-program", "it is no zip archive, so nothing that torch.export.save wrote") from None
    except (OSError, NotImplementedError, RuntimeError, UnicodeDecodeError) as error:
        raise _refuse("no-program", line(error)) from None
