"""Archives as torch.export.save writes them, and such as it does not. For tests."""

import io
import json
import zipfile


def zipped(files, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def program(nodes=(), sizes=(), in_spec="[1, {}]", weights=None, model=None, more=None, without="", root="m/", method=zipfile.ZIP_STORED):
    """A program of one linear layer, changed as told."""
    graph = {"nodes": [{"target": "torch.ops.aten.linear.default", "inputs": []}, *nodes], "tensor_values": {"x": {"sizes": list(sizes)}}}
    whole = {"graph_module": {"graph": graph, "module_call_graph": [{"fqn": "", "signature": {"in_spec": in_spec}}]}, "torch_version": "2.13.0"}
    held = {"config": {"l.weight": {"path_name": "weight_0", "use_pickle": False}}} if weights is None else weights
    files = {
        "archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little", ".data/version": b"3\n",
        "models/model.json": json.dumps(whole).encode() if model is None else model, "data/weights/weight_0": bytes(64),
        "data/weights/model_weights_config.json": json.dumps(held).encode(), "data/constants/model_constants_config.json": b'{"config": {}}',
        "data/sample_inputs/model.pt": b"", **(more or {}),
    }  # fmt: skip
    return zipped({root + name: content for name, content in files.items() if name != without}, method)
