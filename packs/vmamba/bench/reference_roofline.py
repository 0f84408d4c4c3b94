#!/usr/bin/env python3
"""The roofline of the reference's own operators, to stand beside `mk explain`: predicted, as that is.

Every operator that VMamba's public code launches in a forward pass (types v05 and v05_noz, fp16, its own scan kernel with
fp32 output) moves its operands once and computes its FLOPs; the rates are those of `mk explain --boards --json`. No
caches, no launches: what a compiler could not do better than if it fused nothing.

  mk explain --boards --json >boards.json
  packs/vmamba/bench/reference_roofline.py boards.json --side 224 --side 512 --board agx-orin-64gb --board orin-nx-8gb
"""
import argparse
import json
from dataclasses import dataclass

HALF, FLOAT = 2, 4


@dataclass
class Op:
    name: str
    bytes: float
    tensor_flops: float = 0.0
    flops: float = 0.0
    ss2d: bool = False


def gemm(name, m, n, k, ss2d=False):
    return Op(name, HALF * (m * k + n * k + m * n), tensor_flops=2.0 * m * n * k, ss2d=ss2d)


def conv(name, tokens_in, tokens_out, ci, co):
    return Op(name, HALF * (tokens_in * ci + 9 * ci * co + tokens_out * co), tensor_flops=18.0 * tokens_out * ci * co)


def pointwise(name, elements, reads=1, writes=1, flops=1.0, ss2d=False):
    return Op(name, HALF * elements * (reads + writes), flops=flops * elements, ss2d=ss2d)


def block(tokens, channels, inner, state, hidden, gated):
    rank = -(-channels // 16)
    map_, wide = tokens * channels, tokens * inner
    ops = [pointwise("norm", map_, flops=8)]
    ops.append(gemm("in_proj", tokens, inner * (2 if gated else 1), channels))
    if gated:
        ops.append(pointwise("SiLU of z", wide, flops=4))
    ops.append(pointwise("to channel-first", wide, flops=0, ss2d=True))
    ops.append(pointwise("depthwise", wide, flops=18))
    ops.append(pointwise("SiLU", wide, flops=4))
    ops.append(Op("cross scan", HALF * 5 * wide, ss2d=True))
    ops.append(gemm("x_proj", 4 * tokens, rank + 2 * state, inner, ss2d=True))
    ops.append(gemm("dt_proj", 4 * tokens, inner, rank, ss2d=True))
    ops.append(Op("selective scan", HALF * 4 * (2 * wide + 2 * state * tokens) + FLOAT * 4 * wide,
                  flops=4.0 * wide * (5 * state + 9), ss2d=True))
    ops.append(Op("cross merge", FLOAT * 5 * wide, flops=3.0 * wide, ss2d=True))
    ops.append(Op("out_norm", (FLOAT + HALF) * wide, flops=8.0 * wide, ss2d=True))
    if gated:
        ops.append(pointwise("gate", wide, reads=2))
    ops.append(gemm("out_proj", tokens, channels, inner))
    ops.append(pointwise("residual", map_, reads=2))
    ops.append(pointwise("norm2", map_, flops=8))
    ops.append(gemm("fc1", tokens, hidden, channels))
    ops.append(pointwise("GELU", tokens * hidden, flops=10))
    ops.append(gemm("fc2", tokens, channels, hidden))
    ops.append(pointwise("residual2", map_, reads=2))
    return ops


def network(side, dim, depths, ratio, state, mlp, gated, classes):
    half, quarter = side // 2, side // 4
    ops = [conv("stem0", side * side, half * half, 3, dim // 2),
           pointwise("stem norm", half * half * dim // 2, flops=8),
           pointwise("stem GELU", half * half * dim // 2, flops=10),
           conv("stem1", half * half, quarter * quarter, dim // 2, dim),
           pointwise("stem norm1", quarter * quarter * dim, flops=8)]
    edge = quarter
    for stage, depth in enumerate(depths):
        channels = dim << stage
        for _ in range(depth):
            ops += block(edge * edge, channels, int(channels * ratio), state, int(channels * mlp), gated)
        if stage + 1 < len(depths):
            ops.append(conv("downsample", edge * edge, edge * edge // 4, channels, 2 * channels))
            edge //= 2
            ops.append(pointwise("downsample norm", edge * edge * 2 * channels, flops=8))
    last = dim << (len(depths) - 1)
    ops += [pointwise("head norm", edge * edge * last, flops=8), Op("pool", HALF * edge * edge * last),
            gemm("head", 1, classes, last)]
    return ops


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("boards", help="what `mk explain --boards --json` printed")
    parser.add_argument("--side", type=int, action="append", help="of the square input; default 224 and 512")
    parser.add_argument("--board", action="append", help="default: all")
    parser.add_argument("--dim", type=int, default=96)
    parser.add_argument("--depths", default="2-2-8-2")
    parser.add_argument("--ratio", type=float, default=1.0)
    parser.add_argument("--state", type=int, default=1)
    parser.add_argument("--mlp", type=float, default=4.0)
    parser.add_argument("--gated", action="store_true")
    parser.add_argument("--classes", type=int, default=1000)
    args = parser.parse_args()
    with open(args.boards, encoding="utf-8") as file:
        boards = [b for b in json.load(file) if not args.board or b["name"] in args.board]
    print("| input | board | operators | MB | of them SS2D | GFLOP | roofline ms (predicted) |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for side in args.side or [224, 512]:
        ops = network(side, args.dim, [int(d) for d in args.depths.split("-")], args.ratio, args.state, args.mlp,
                      args.gated, args.classes)
        for board in boards:
            dram, tensor = board["dram_bytes_per_s"], board["tensor_flops_per_s"]
            fp32 = board["sm_count"] * board["clock_hz"] * 256
            seconds = sum(max(op.bytes / dram, op.tensor_flops / tensor + op.flops / fp32) for op in ops)
            print(f"| {side} x {side} | {board['name']} | {len(ops)} | {sum(o.bytes for o in ops) / 1e6:.0f} | "
                  f"{sum(o.bytes for o in ops if o.ss2d) / 1e6:.0f} | "
                  f"{sum(o.flops + o.tensor_flops for o in ops) / 1e9:.1f} | {seconds * 1e3:.2f} |")


if __name__ == "__main__":
    main()
