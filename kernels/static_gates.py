"""What the compiler made of every kernel, held against the committed kernels/budget.json.

    bazel test //kernels:static_gates
    bazel run //kernels:static_gates -- --update     # rewrites the budget: look at the difference before you commit it

Always, with any toolkit: no spill, no stack, no local memory; launch bounds on every kernel; at least as many blocks per
SM as the budget has under `blocks_per_sm`; tensor-core instructions in the PTX wherever the budget counts any; every kernel in
the budget and no other; and the promises below. With the toolkits that the budget was written with, every number is the
same. What an older toolkit made for an SM stands under
`sm_87_cuda_12.6`. Occupancy is computed from the limits of each SM, as NVIDIA's occupancy calculator does.

Prints a line that begins with `skipped`, and passes, where the build had no CUDA toolkit.
"""

import json
import os
import pathlib
import sys

# CUDA 13.0's cuda_occupancy.h. Registers are given out by warp, in units of 256, on four partitions.
LIMITS = {
    87: {"threads": 1536, "blocks": 16, "registers": 65536, "shared_bytes": 164 * 1024},
    110: {"threads": 1536, "blocks": 24, "registers": 65536, "shared_bytes": 228 * 1024},
}
RESERVED_SHARED_BYTES = 1024  # of each block
PARTITIONS, REGISTER_UNIT, SHARED_UNIT = 4, 256, 128

# What must hold whatever the budget says: (kernel's prefix, sm, fact, least).
PROMISES = [
    ("mk_linear_f16_128x128", 87, "blocks_per_sm", 2),
    ("mk_conv3x3_f16_128x128", 87, "blocks_per_sm", 2),
    ("mk_feed_forward_f16", 87, "blocks_per_sm", 2),
    ("mk_cross_scan", 87, "occupancy_percent", 50),
]
TENSOR_FAMILIES = ("mk_linear_f16", "mk_feed_forward_f16", "mk_conv3x3_f16", "mk_patch_embed_f16")


def round_up(value, unit):
    return -(-value // unit) * unit


def blocks_per_sm(sm, threads, registers, shared_bytes):
    limits = LIMITS[sm]
    warps = -(-threads // 32)
    warps_by_registers = limits["registers"] // PARTITIONS // round_up(registers * 32, REGISTER_UNIT) * PARTITIONS
    return min(
        limits["blocks"],
        limits["threads"] // (32 * warps),
        warps_by_registers // warps,
        limits["shared_bytes"] // (round_up(shared_bytes, SHARED_UNIT) + RESERVED_SHARED_BYTES),
    )


def toolkits(report):
    """The build's, then the older one beside it where there was one."""
    return sorted({image["toolkit"] for image in report["images"]}, key=lambda t: [-int(n) for n in t.split(".")])


def measure(report):
    """One module's report as the budget has it: kernel -> facts. Complaints are what is never allowed."""
    kernels, complaints = {}, []
    ptx = next(image["kernels"] for image in report["images"] if image["kind"] == "ptx")
    for kernel, said in ptx.items():
        facts = kernels[kernel] = {"threads": said["threads"], "ptx": {}}
        facts["dynamic_shared_bytes"] = report["dynamic_shared_bytes"].get(kernel, 0)
        facts["ptx"] = {i: said[i] for i in ("mma.sync", "ldmatrix", "cp.async.c", "bar.sync")}
        if said["threads"] == 0:
            complaints.append(f"{kernel}: no __launch_bounds__")
        if said["ld.local"] or said["st.local"]:
            complaints.append(f"{kernel}: local memory in the PTX")
    for image in report["images"]:
        if image["kind"] != "cubin" or image["sm"] not in LIMITS:
            continue
        older = "" if image["toolkit"] == toolkits(report)[0] else f"_cuda_{image['toolkit']}"
        for kernel, said in image["kernels"].items():
            if said["spill_bytes"] or said["stack_bytes"]:
                complaints.append(f"{kernel}, sm_{image['sm']}{older}: spills {said['spill_bytes']}, stack {said['stack_bytes']} bytes")
            facts = kernels[kernel]
            shared = said["static_shared_bytes"] + facts["dynamic_shared_bytes"]
            threads = max(1, facts["threads"])
            blocks = blocks_per_sm(image["sm"], threads, said["registers"], shared)
            facts[f"sm_{image['sm']}{older}"] = {
                "registers": said["registers"],
                "static_shared_bytes": said["static_shared_bytes"],
                "blocks_per_sm": blocks,
                "occupancy_percent": 100 * blocks * threads // LIMITS[image["sm"]]["threads"],
            }
    return kernels, complaints


def judge_kernel(name, got, want, same_toolkit):
    """The differences that are not allowed."""
    complaints = []
    if want["ptx"]["mma.sync"] and not got["ptx"]["mma.sync"]:
        complaints.append(f"{name}: no mma.sync in its PTX: it left the tensor path")
    for sm in [key for key in want if key.startswith("sm_") and key in got]:
        if got[sm]["blocks_per_sm"] < want[sm]["blocks_per_sm"]:
            complaints.append(f"{name}, {sm}: {got[sm]['blocks_per_sm']} blocks per SM < {want[sm]['blocks_per_sm']}")
    if same_toolkit and got != want:
        complaints.append(f"{name}:\n    is  {json.dumps(got)}\n    not {json.dumps(want)}")
    return complaints


def judge_promises(kernels):
    complaints = []
    for prefix, sm, fact, least in PROMISES:
        for name, facts in kernels.items():
            value = facts.get(f"sm_{sm}", {}).get(fact, least)
            if name.startswith(prefix) and value < least:
                complaints.append(f"{name}, sm_{sm}: {fact} {value} < {least}, which is promised")
    for name, facts in kernels.items():
        if name.startswith(TENSOR_FAMILIES) and not facts["ptx"]["mma.sync"]:
            complaints.append(f"{name}: no mma.sync in its PTX")
    return complaints


def judge(budget, measured, toolkit):
    """`measured` and budget["modules"]: module -> kernel -> facts."""
    complaints = []
    same_toolkit = toolkit == budget["toolkit"]
    for module in sorted(set(measured) | set(budget["modules"])):
        got, want = measured.get(module, {}), budget["modules"].get(module, {})
        for name in sorted(set(got) | set(want)):
            if name not in want:
                complaints.append(f"{name}: not in the budget")
            elif name not in got:
                complaints.append(f"{name}: in the budget, but not built")
            else:
                complaints += judge_kernel(name, got[name], want[name], same_toolkit)
        complaints += judge_promises(got)
    return complaints


def main(arguments):
    update = "--update" in arguments
    budget_path, *report_paths = [a for a in arguments if a != "--update"]
    reports = [json.loads(pathlib.Path(p).read_text()) for p in report_paths]
    if not reports:
        sys.exit("no module given")
    if not all(report["images"] for report in reports):
        print("skipped: no CUDA toolkit at build time, so there is nothing to hold against the budget; deploy/cuda-toolkit.sh")
        return 0
    toolkit = " and ".join(toolkits(reports[0]))
    measured, complaints = {}, []
    for report in reports:
        measured[report["module"]], bad = measure(report)
        complaints += bad
    if update:
        root = os.environ.get("BUILD_WORKSPACE_DIRECTORY", ".")
        path = pathlib.Path(root, "kernels/budget.json")
        path.write_text(json.dumps({"toolkit": toolkit, "modules": measured}, indent=1, sort_keys=True) + "\n")
        print(f"{path}: written, {sum(map(len, measured.values()))} kernels")
    else:
        complaints += judge(json.loads(pathlib.Path(budget_path).read_text()), measured, toolkit)
    for complaint in complaints:
        print(complaint)
    count = sum(map(len, measured.values()))
    print(f"static gates: {count} kernels of {len(measured)} modules, toolkit {toolkit}, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
