"""The export itself, in a process of its own that main.py caps: writes DIR/model.onnx and DIR/answer.json.

  export_child.py REQUEST.json

REQUEST: {"kind": "program" | "config", "path", "out", "exporter": "auto" | "new" | "old", "layers", "shapes", "memory_bytes"}.
Needs PyTorch. Lines "@stage NAME" in the log tell how far it came.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).absolute().parent
sys.path.insert(0, str(HERE))

import reasons  # noqa: E402
from refused import Refused, line  # noqa: E402

STAGE = "starting"
OLD_OPSET = 17


def stage(name: str) -> None:
    global STAGE
    STAGE = name
    print(f"@stage {name}", flush=True)


def answer(out: Path, value: dict) -> None:
    """Whole or not at all."""
    part = out / "answer.part"
    part.write_text(json.dumps(value), encoding="utf-8")
    os.replace(part, out / "answer.json")


def need(*names: str) -> None:
    """Imports what the export needs, so that what is missing is told by name. Raises Refused."""
    for name in names:
        try:
            __import__(name)
        except ModuleNotFoundError as error:
            raise reasons.missing(error.name or name) from None
        except Exception as error:  # noqa: BLE001, a broken installation may fail in any way
            raise Refused("package-broken", "starting", f"{name} cannot be imported: {line(error)}") from None


def is_folded(node) -> bool | None:
    """For onnxscript's optimizer: what is looked up in a table of floats stays, since a relative position is one. None: as it likes."""
    table = node.inputs[0] if node.op_type == "Gather" and node.inputs else None
    kind = getattr(getattr(table, "dtype", None), "name", "")
    return False if kind in ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE") else None


def new_export(torch, model, inputs: tuple, names: list[str] | None, path: Path) -> str:
    """torch.onnx.export(dynamo=True), with onnxscript's optimizer told what to leave for the scan."""
    from onnxscript import optimizer

    stage("export by the new exporter")
    with torch.no_grad():
        made = torch.onnx.export(model, inputs, dynamo=True, optimize=False, input_names=names, verbose=False)
    stage("optimizing")
    optimizer.optimize_ir(made.model, should_fold=is_folded)
    stage("writing")
    made.save(str(path), external_data=True)
    return f"torch.onnx.export(dynamo=True) of PyTorch {torch.__version__}"


def old_export(torch, model, inputs: tuple, names: list[str], path: Path) -> str:
    """TorchScript's exporter, which traces one pass."""
    stage("export by the old exporter")
    with torch.no_grad():
        torch.onnx.export(model, inputs, str(path), dynamo=False, opset_version=OLD_OPSET, do_constant_folding=True, input_names=names)
    return f"torch.onnx.export(dynamo=False), a trace, of PyTorch {torch.__version__}"


def stage_of(texts: list[str]) -> str:
    """Which step of the new exporter failed, by its own words."""
    for text in texts:
        for mark, name in (("step 1/3", "torch.export"), ("step 2/3", "decomposition"), ("step 3/3", "translation to ONNX")):
            if mark in text:
                return name
    return STAGE


def why(error: Exception, otherwise: str = "export-failed") -> Refused:
    if isinstance(error, Refused):
        return error
    texts = reasons.chain(error)
    print("\n".join(texts), file=sys.stderr)
    return reasons.of_exception(stage_of(texts), texts, otherwise)


def program(request: dict) -> dict:
    """A torch.export program."""
    need("torch", "onnx", "onnxscript")
    import torch

    import guarded

    stage("reading the program")
    loaded = guarded.load(torch, request["path"])
    inputs = [f"{spec.arg.name}" for spec in loaded.graph_signature.input_specs if spec.kind.name == "USER_INPUT" and hasattr(spec.arg, "name")]
    exporter = new_export(torch, loaded, (), None, Path(request["out"]) / "model.onnx")
    return {"kind": "torch.export program", "exporter": exporter, "notes": [], "hidden": [], "inputs": ", ".join(inputs)}


def config(request: dict) -> dict:
    """A config of transformers: random weights."""
    need("torch", "onnx", "onnxscript", "transformers")
    import torch

    import architecture

    torch.manual_seed(0)
    stage("building the model")
    made = architecture.build(torch, request)
    stage("one pass of the model")
    try:
        with torch.no_grad():
            made.model(*made.tensors)
    except Exception as error:  # noqa: BLE001
        found = why(error, "model-failed")
        found.hint = found.hint or f"The inputs were {made.inputs}; --shapes NAME=1x3x224x224 gives others."
        raise found from None
    path = Path(request["out"]) / "model.onnx"
    notes, hidden, first = list(made.notes), [], None
    if request["exporter"] != "old":
        try:
            exporter = new_export(torch, made.model, made.tensors, made.names, path)
            return {"kind": made.kind, "exporter": exporter, "notes": notes, "hidden": [], "inputs": made.inputs}
        except Exception as error:  # noqa: BLE001
            first = why(error)
            if request["exporter"] == "new":
                raise first from None
            for left in path.parent.glob("model.onnx*"):
                left.unlink()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            exporter = old_export(torch, made.model, made.tensors, made.names, path)
    except Exception as error:  # noqa: BLE001
        second = why(error)
        if first is None:
            raise second from None
        first.text += f"; the old exporter stopped too: {second.kind}: {second.text}"
        raise first from None
    frozen = sum("Converting a tensor to a Python boolean" in str(w.message) for w in caught)
    if frozen:
        notes.append(f"the trace turned {frozen} tensor{'s' if frozen > 1 else ''} into fixed conditions: whether they followed "
                     "from shapes or from data is not told")  # fmt: skip
    if first is not None:
        notes.append(f"the new exporter stopped at {first.stage}: {first.kind}: {first.text}")
        if first.spot == "S1":
            hidden.append({"code": "traced-control-flow", "text": f"the trace kept one course of what follows from data: {first.text}"})
    return {"kind": made.kind, "exporter": exporter, "notes": notes, "hidden": hidden, "inputs": made.inputs}


def main(path: str) -> int:
    request = json.loads(Path(path).read_text(encoding="utf-8"))
    out = Path(request["out"])
    try:
        made = program(request) if request["kind"] == "program" else config(request)
        answer(out, {"exported": {"onnx": "model.onnx", **made}})
        return 0
    except Exception as error:  # noqa: BLE001
        answer(out, {"refused": why(error).record()})
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
