"""Reads what go.sh left in a folder and writes summary.md and summary.json: what ran, parity, the roof, each kernel's share.

  report.py DIR

All times in it are measured, on the device that facts.txt names. A kernel's share of the roof is the time that its bytes and
FLOPs would take at the rates that the pack `roof` measured in the same run, over the time it took. Exit code 1 where a result
that was taken is wrong.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import compare
import tensors

MAX_REL_L2 = 3e-3  # fp16 storage against the fp32 of the CPU device, as vmamba-pico's manifest has it


def steps_of(folder: Path) -> list[dict]:
    rows = [line.split("\t") for line in (folder / "steps.tsv").read_text(encoding="utf-8").splitlines()]
    return [{"step": r[0], "word": r[1], "seconds": int(r[2]), "why": r[3]} for r in rows]


def parity_of(folder: Path) -> dict | None:
    """Every output of vmamba-pico's golden cases: worst rel_l2 and how many cases have the same class."""
    files = sorted(folder.glob("pico-*.safetensors"))
    device = [f for f in files if f.name != "pico-cpu.safetensors"]
    if len(files) < 2 or not device:
        return None
    want, got = tensors.read(folder / "pico-cpu.safetensors")[0], tensors.read(device[0])[0]
    limits = compare.Limits(rel_l2=MAX_REL_L2, max_rel=math.inf, floor=0.0)
    judged = [compare.compare_tensor(tensor, got.get(name), limits) for name, tensor in want.items()]
    worst = max(one.get("rel_l2", math.inf) for one in judged)
    same = sum(name in got and compare.top_k(tensor.values(), 1) == compare.top_k(got[name].values(), 1) for name, tensor in want.items())
    return {"cases": len(want), "worst_rel_l2": worst, "same_class": same, "ok": all(one["pass"] for one in judged)}


def roof_of(folder: Path) -> dict | None:
    """Rates of the pack `roof`: copies by the bytes they touch (read and written), tensor cores, fp32."""
    path = folder / "explain/roof.json"
    if not path.is_file() or path.stat().st_size == 0:
        return None
    copies, rates = [], {}
    for launch in json.loads(path.read_text(encoding="utf-8"))[0]["launches"]:
        seconds = launch["measured_us"] * 1e-6
        if launch["tensor_flops"]:
            rates["tensor_flops_per_s"] = launch["tensor_flops"] / seconds
        elif launch["flops"]:
            rates["fp32_flops_per_s"] = launch["flops"] / seconds
        else:
            copies.append({"bytes": launch["bytes"], "bytes_per_s": launch["bytes"] / seconds})
    copies.sort(key=lambda c: c["bytes"])
    return {"copies": [c for c in copies if c["bytes"] > 1 << 16], **rates}


def copy_rate(roof: dict, touched: int) -> float:
    """The rate of the smallest copy that touches as much: what stays in the L2 cache is held against copies that do."""
    fitting = [c for c in roof["copies"] if c["bytes"] >= touched] or roof["copies"][-1:]
    return fitting[0]["bytes_per_s"]


def shares_of(folder: Path, roof: dict) -> list[dict]:
    """Per pack and kernel: times, and the share of the measured roof."""
    rows = []
    for path in sorted((folder / "explain").glob("*.json")):
        if path.stem == "roof" or path.stat().st_size == 0:
            continue
        explained = json.loads(path.read_text(encoding="utf-8"))[0]
        kernels: dict[str, dict] = {}
        for launch in explained["launches"]:
            ideal = max(
                launch["bytes"] / copy_rate(roof, launch["bytes"]),
                launch["tensor_flops"] / roof["tensor_flops_per_s"] + launch["flops"] / roof["fp32_flops_per_s"],
            )
            row = kernels.setdefault(launch["kernel"], {"launches": 0, "us": 0.0, "roof_us": 0.0})
            row["launches"] += 1
            row["us"] += launch["measured_us"]
            row["roof_us"] += ideal * 1e6
        for kernel, row in kernels.items():
            rows.append({"pack": path.stem, "kernel": kernel, **row, "share": row["roof_us"] / row["us"]})
        rows.append(
            {"pack": path.stem, "kernel": "(a run)", "launches": len(explained["launches"]),
             "us": explained["measured"]["median_us"], "roof_us": sum(r["roof_us"] for r in kernels.values()),
             "share": sum(r["roof_us"] for r in kernels.values()) / explained["measured"]["median_us"]}
        )
    return rows


def markdown(summary: dict) -> str:
    emulated = "device: emulated" in summary["facts"]
    lines = ["# On the emulator: nothing was measured" if emulated else "# On a GPU: measured", "", "```", summary["facts"].strip(), "```", ""]
    words = {w: sum(s["word"] == w for s in summary["steps"]) for w in ("ok", "failed", "skipped")}
    lines += [f"Steps: {words['ok']} ok, {words['failed']} failed, {words['skipped']} skipped.", ""]
    lines += [f"- {s['word']}: {s['step']}: {s['why']}" for s in summary["steps"] if s["word"] != "ok"]
    if parity := summary["parity"]:
        lines += ["", f"vmamba-pico against the CPU device: worst rel_l2 {parity['worst_rel_l2']:.2e} (bound {MAX_REL_L2:.0e}), "
                  f"same class in {parity['same_class']} of {parity['cases']} cases."]  # fmt: skip
    if roof := summary["roof"]:
        lines += ["", "| what the GPU gave at most | rate |", "| --- | --- |"]
        lines += [f"| copy, {c['bytes'] / 2**20:.1f} MiB read and written | {c['bytes_per_s'] / 1e9:.0f} GB/s |" for c in roof["copies"]]
        lines += [f"| mma.sync fp16, fp32 accumulation | {roof['tensor_flops_per_s'] / 1e12:.1f} TFLOPS |",
                  f"| fp32 multiply-add | {roof['fp32_flops_per_s'] / 1e12:.1f} TFLOPS |"]  # fmt: skip
    if summary["kernels"]:
        lines += ["", "| pack | kernel | launches | us | roof us | share of the measured roof |", "| --- | --- | --- | --- | --- | --- |"]
        lines += [f"| {k['pack']} | {k['kernel']} | {k['launches']} | {k['us']:.1f} | {k['roof_us']:.1f} | {100 * k['share']:.0f} % |"
                  for k in summary["kernels"]]  # fmt: skip
    if summary["torch"]:
        lines += ["", f"PyTorch {summary['torch']['torch']} beside:", "", "| op | shape | eager us | compiled us |", "| --- | --- | --- | --- |"]
        text = lambda v: f"{v:.1f}" if isinstance(v, float) else str(v)
        lines += [f"| {r['op']} | {'x'.join(map(str, r['shape']))} | {text(r['eager_us'])} | {text(r['compiled_us'])} |" for r in summary["torch"]["rows"]]
    return "\n".join(lines) + "\n"


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: report.py DIR", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    roof = roof_of(folder)
    torch = folder / "torch.json"
    summary = {
        "source": "measured",
        "facts": (folder / "facts.txt").read_text(encoding="utf-8"),
        "steps": steps_of(folder),
        "parity": parity_of(folder),
        "roof": roof,
        "kernels": shares_of(folder, roof) if roof else [],
        "torch": json.loads(torch.read_text(encoding="utf-8")) if torch.is_file() else None,
    }
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    (folder / "summary.md").write_text(markdown(summary), encoding="utf-8")
    print(f"\n{markdown(summary)}\nresults: {folder}")
    return 0 if summary["parity"] is None or summary["parity"]["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
