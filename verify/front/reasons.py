"""What an export died of, from the exceptions it raised or how its process ended. A table; pure; standard library only."""

from __future__ import annotations

import re

from refused import Refused, line

# (class, pattern over "Type: message" lines, the hint, the blind spot it points to). The first row that fits decides. A
# group called `what` becomes part of the text.
RULES = (
    ("data-dependent",
     r"GuardOnDataDependentSymNode: (?P<what>Could not [^\n(]*)|(?P<what2>[^\n]*[Dd]ata-dependent (?:control flow|branching|expression)[^\n]*)"
     r"|(?P<what3>[^\n]*Dynamic control flow is not supported[^\n]*)|(?P<what4>[^\n]*aten\._local_scalar_dense[^\n]*)",
     "Its flow or its shapes follow from data. That alone is a hint for blind spot S1; export the parts around it for the rest.", "S1"),
    ("no-translation",
     r"No ONNX function found for <OpOverload\(op='(?P<what>[\w.:]+)'[^\n]*complex-valued input",
     "It computes with complex numbers, which ONNX has no operators for. That alone is a hint for blind spot S3.", "S3"),
    ("no-translation",
     r"No ONNX function found for (?:<OpOverload\(op=')?(?P<what>[\w.:]+)|Exporting the operator '(?P<what2>[\w:.]+)' to ONNX"
     r"|(?:No ONNX function|Unsupported FX nodes?)[^\n]*?(?P<what3>aten[.:]+\w+)", "", ""),
    ("out-of-memory", r"(?P<what>MemoryError[^\n]*|[^\n]*(?:can't allocate memory|not enough memory)[^\n]*)", "", ""),
    ("no-space", r"(?P<what>[^\n]*No space left on device[^\n]*)", "--keep-onnx DIR names a folder with more space.", ""),
    ("package-missing", r"No module named '(?P<what>[\w.]+)'|requires? the (?P<what2>[\w-]+) (?:library|package)"
     r"|(?P<what3>Backend(?:Base)?Error[^\n]*)", "", ""),
    ("needs-files", r"(?P<what>[^\n]*(?:couldn't connect to|offline mode|LocalEntryNotFoundError|Can't load the configuration of)[^\n]*)",
     "It refers to files that are not in the config; nothing is fetched.", ""),
)  # fmt: skip
MISSING = {  # a module of what is needed, to what to install
    "torch": "torch", "onnx": "onnx", "onnxscript": "onnxscript", "onnx_ir": "onnxscript", "transformers": "transformers",
    "timm": "timm", "torchvision": "torchvision", "numpy": "numpy",
}  # fmt: skip
NOISE = re.compile(r"\x1b\[[0-9;]*m")
CALL = re.compile(r'The following call raised this error:\s*File "(?:.*/)?(?P<file>[\w.]+)", line (?P<line>\d+), in (?P<name>\w+)\s*(?P<code>[^\n]*)')
PLACE = re.compile(r'File "(?:.*/)?(?P<file>modeling_\w+\.py|[\w.]+)", line (?P<line>\d+), in (?P<name>\w+)')


def chain(error: BaseException | None) -> list[str]:
    """"Type: message" of an exception and what caused it, the innermost last."""
    out, seen = [], set()
    while error is not None and id(error) not in seen and len(out) < 20:
        seen.add(id(error))
        out.append(f"{type(error).__name__}: {NOISE.sub('', str(error))}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return out


def place(texts: list[str]) -> str:
    """Where in the model's own code it happened, where the exporter tells: "modeling_x.py:12 in forward: if mask.any():"."""
    for text in texts:
        found = CALL.search(text)
        if found:
            return line(f"{found['file']}:{found['line']} in {found['name']}: {found['code']}", 160)
    return ""


def _brief(texts: list[str]) -> str:
    """The innermost exception's first lines."""
    kind, _, message = texts[-1].partition(": ")
    first = next((one for one in message.splitlines() if one.strip()), "")
    return line(f"{kind}: {first}" if first else kind, 240)


def missing(name: str, stage: str = "starting") -> Refused:
    """What is not installed in the Python of --python."""
    package = MISSING.get(name.split(".")[0], name.split(".")[0])
    return Refused("package-missing", stage, f"{package} is not installed in this Python",
                   f"--python PROGRAM names a Python that has it; python -m pip install {package} installs it.")  # fmt: skip


def of_exception(stage: str, texts: list[str], otherwise: str = "export-failed") -> Refused:
    """Why a stage failed. `texts`: of chain()."""
    joined = "\n".join(texts)
    for kind, pattern, hint, spot in RULES:
        found = re.search(pattern, joined)
        if not found:
            continue
        what = line(next((group for group in found.groups() if group), ""), 200)
        if kind == "package-missing":
            return missing(what, stage) if re.fullmatch(r"[\w.-]+", what) else Refused(kind, stage, what)
        if kind == "no-translation":
            what = f"{what.replace('::', '.')} has no translation to ONNX in this exporter" + (", on complex numbers" if spot else "")
        where = place(texts)
        return Refused(kind, stage, what + (f" ({where})" if where else ""), hint, spot)
    where = place(texts)
    return Refused(otherwise, stage, _brief(texts) + (f" ({where})" if where else ""))


def of_end(stage: str, cause: str, code: int, text: str, last: str) -> Refused:
    """Why a child that left no answer ended. `cause`, `code`, `text`: of child.Ended; `last`: the log's last line."""
    if cause == "timeout":
        return Refused("timeout", stage, text, "--export-seconds gives it more time, --layers N less to do.")
    if cause in ("memory", "floor") or code in (137, -9):
        return Refused("out-of-memory", stage, text or "killed (SIGKILL)", "--export-memory GIB gives it more, --layers N makes the model smaller.")
    if cause == "no-program":
        return Refused("no-python", stage, text)
    kind = "crashed" if cause == "signal" or code >= 128 else "export-failed"
    return Refused(kind, stage, f"{text or f'exit code {code}'}{': ' if last else ''}{line(last, 200)}")
