"""Exports models with random weights to ONNX, keeps their weightless skeletons, and compares the scan with the labels.

    python3 verify/scan/exports/export.py --mk bazel-bin/server/cli/mk --out DIR [--only NAME,...] [--skeletons DIR]

Needs torch 2.13, transformers 5.18, onnx and onnxscript; not part of the default tests. Each export runs in a child
process with a limit of time and memory. Prints one line per model and exporter, then misses and false alarms over all.
"""

import argparse
import gzip
import json
import pathlib
import resource
import subprocess
import sys

from models import MODELS

SPOTS = ["S1", "S2", "S3", "S4", "S5"]


def export(name, exporter, path):
    """In the child: writes the ONNX file."""
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    entry = MODELS[name]
    model, inputs, how = entry["make"](exporter) if entry.get("by_exporter") else entry["make"]()
    kwargs = {"input_names": how.get("names")}
    if exporter == "old":
        kwargs.update(dynamo=False, opset_version=how.get("opset", 17), do_constant_folding=True)
        if "dynamic" in how:
            kwargs["dynamic_axes"] = how["dynamic"]
    else:
        kwargs.update(dynamo=True, external_data=True, optimize=True)
        if "translation" in how:
            kwargs["custom_translation_table"] = how["translation"]()
        if "dynamic" in how:
            kwargs["dynamic_shapes"] = tuple({axis: torch.export.Dim.AUTO for axis in axes}
                                             for axes in how["dynamic"].values())
    with torch.no_grad():
        torch.onnx.export(model, inputs, str(path), **kwargs)


def strip(path, out):
    """The graph without its weights: tensors of numbers become external without data, texts of no use go."""
    import onnx
    model = onnx.load(str(path), load_external_data=False)

    def tensor(t):
        count = 1
        for dim in t.dims:
            count *= dim
        is_index = t.data_type in (6, 7, 9)
        if count <= (4096 if is_index else 16) and t.data_location == 0:
            return
        for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "external_data"):
            t.ClearField(field)
        t.data_location = 1

    def graph(g):
        g.doc_string = ""
        del g.metadata_props[:]
        for t in g.initializer:
            tensor(t)
        for info in list(g.value_info) + list(g.input) + list(g.output):
            del info.metadata_props[:]
            info.doc_string = ""
        nodes(g.node)

    def nodes(list_of_nodes):
        for node in list_of_nodes:
            node.doc_string = ""
            del node.metadata_props[:]
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    tensor(attribute.t)
                if attribute.HasField("g"):
                    graph(attribute.g)

    graph(model.graph)
    for function in model.functions:
        function.doc_string = ""
        del function.metadata_props[:]
        nodes(function.node)
    del model.metadata_props[:]
    model.producer_name = "pytorch"
    out.write_bytes(gzip.compress(model.SerializeToString(deterministic=True), 9, mtime=0))


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (14 << 30, 14 << 30))


def run(name, exporter, arguments):
    path = arguments.out / f"{name}-{exporter}.onnx"
    if not path.exists() or arguments.again:
        command = [sys.executable, __file__, "--child", name, exporter, str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.timeout, preexec_fn=limit,
                                  check=False)
        except subprocess.TimeoutExpired:
            return None, f"export took over {arguments.timeout} s"
        if done.returncode != 0:
            lines = [line.strip() for line in done.stderr.splitlines() if "Error" in line or "not supported" in line]
            return None, "export failed: " + (lines[-1][:160] if lines else f"exit code {done.returncode}")
    scan = subprocess.run([str(arguments.mk), "scan", "--json", str(path)], capture_output=True, text=True, check=False)
    if not scan.stdout:
        return None, "scan failed: " + scan.stderr.strip()[:160]
    return json.loads(scan.stdout), ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mk", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--exporters", default="old,new")
    parser.add_argument("--skeletons", type=pathlib.Path)
    parser.add_argument("--timeout", type=int, default=900)
    parser.add_argument("--again", action="store_true", help="export again what is there")
    parser.add_argument("--child", nargs=3)
    arguments = parser.parse_args()
    if arguments.child:
        export(arguments.child[0], arguments.child[1], pathlib.Path(arguments.child[2]))
        return 0
    arguments.out.mkdir(parents=True, exist_ok=True)
    names = [name for name in arguments.only.split(",") if name] or list(MODELS)
    misses = alarms = scanned = 0
    print(f"{'model':24}{'exporter':10}{'expected':16}{'found':16}{'nodes':>7}  structures")
    for name in names:
        for exporter in arguments.exporters.split(","):
            report, why = run(name, exporter, arguments)
            expected = MODELS[name]["expect"].split()
            if report is None:
                print(f"{name:24}{exporter:10}{' '.join(expected):16}{why}", flush=True)
                continue
            scanned += 1
            counts = {spot["id"]: spot["structure_count"] for spot in report["spots"]}
            found = [spot for spot in SPOTS if counts[spot]]
            missed, extra = set(expected) - set(found), set(found) - set(expected)
            misses, alarms = misses + len(missed), alarms + len(extra)
            note = "".join([f"  MISSED {' '.join(sorted(missed))}" if missed else "",
                            f"  EXTRA {' '.join(sorted(extra))}" if extra else ""])
            shown = " ".join(f"{spot}:{counts[spot]}" for spot in found)
            print(f"{name:24}{exporter:10}{' '.join(expected):16}{' '.join(found):16}{report['nodes']:>7}  {shown}{note}",
                  flush=True)
            if arguments.skeletons and exporter in MODELS[name].get("skeleton", "old,new"):
                strip(arguments.out / f"{name}-{exporter}.onnx", arguments.skeletons / f"{name}-{exporter}.onnx.gz")
    if arguments.skeletons:
        lines = [f"{path.name.split('.')[0]} {' '.join(MODELS[path.name.rsplit('-', 1)[0]]['expect'].split()) or 'none'}"
                 for path in sorted(arguments.skeletons.glob("*.onnx.gz"))]
        head = "# Weightless graphs of real exports, and the blind spots each hits (verify/scan/exports/models.py says why)."
        (arguments.skeletons / "labels.txt").write_text("\n".join([head, *lines]) + "\n")
    print(f"{scanned} files, {len(SPOTS) * scanned} labels: {misses} missed, {alarms} false alarms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
