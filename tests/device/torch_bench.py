"""PyTorch's operators at VMamba-Tiny's shapes, eager and compiled, for the same table as our kernels: one JSON file.

Times are medians of CUDA events around 50 calls in a row, after warm-up, fp16. Needs a PyTorch with CUDA.
"""

import json
import sys

import torch
import torch.nn.functional as F

CALLS, ROUNDS = 50, 9


def microseconds(call):
    for _ in range(10):
        call()
    times = []
    for _ in range(ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(CALLS):
            call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / CALLS)
    return sorted(times)[ROUNDS // 2]


def compiled(function):
    try:
        call = torch.compile(function, mode="max-autotune-no-cudagraphs")
        return microseconds(call)
    except Exception as error:  # what the compiler cannot do is a result too
        return f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"


def main():
    rows = []
    for tokens, channels in ((3136, 96), (784, 192), (196, 384), (16384, 96)):
        x = torch.randn(tokens, channels, device="cuda", dtype=torch.half)
        weight = torch.randn(channels, device="cuda", dtype=torch.half)
        norm = lambda: F.layer_norm(x, (channels,), weight, weight)
        row = {"op": "LayerNorm", "shape": [tokens, channels], "bytes": 4 * x.numel(), "flops": 0}
        rows.append({**row, "eager_us": microseconds(norm), "compiled_us": compiled(norm)})
        for n in (2 * channels, 4 * channels):
            w = torch.randn(n, channels, device="cuda", dtype=torch.half)
            gemm = lambda: x @ w.t()
            row = {"op": "GEMM", "shape": [tokens, n, channels], "flops": 2 * tokens * n * channels}
            row["bytes"] = 2 * (x.numel() + w.numel() + tokens * n)
            rows.append({**row, "eager_us": microseconds(gemm), "compiled_us": compiled(gemm)})
    facts = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "source": "measured"}
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump({**facts, "rows": rows}, out, indent=1)


if __name__ == "__main__":
    main()
