"""VMamba image classifier (forward types v05_noz and v05) in plain PyTorch: the pack's reference.

Written from the paper (Liu et al., "VMamba: Visual State Space Model", arXiv 2401.10166) and from
the key names and shapes of its published checkpoints, so that those load with `load_state_dict(...,
strict=True)`.

    stem        conv3x3 s2 -> LN -> GELU -> conv3x3 s2 -> LN;   H x W -> H/4 x W/4
    block       x += SS2D(LN(x));  x += fc2(GELU(fc1(LN(x))))
    downsample  conv3x3 s2 (C -> 2C) -> LN, between stages
    head        LN -> mean over positions -> Linear

    SS2D        u = SiLU(dwconv3x3(in_proj(x))), read along four directions k
                as sequences of L = H*W tokens;  A = -exp(A_log);
                (r, B, C)_t = x_proj_k u_t;  D_t = softplus(dt_proj_k r_t + bias_k)
                h_t = exp(D_t A) h_{t-1} + D_t B_t u_t;   y_t = C_t . h_t + Ds u_t
                the four y are put back in place and summed, then LN, then out_proj.
                v05 has a gate: in_proj makes z too, and LN's result is multiplied by SiLU(z).

Activations are held as [batch, H, W, C] (so that a 1x1 projection is one GEMM and LN is over the
last dimension); the convolutions see the same memory as [batch, C, H, W] in the channels-last
format. Inputs are [batch, C, H, W], and every tap that `forward` records is turned back to
channel-first.

`python self_test.py` checks the two scans against each other and SS2D against plain loops.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, fields
from typing import Callable, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LN_EPS = 1e-5
DIRECTIONS = 4  # 0 row-major, 1 column-major, 2 reverse of 0, 3 reverse of 1

# (u [K,L,M,D], delta [K,L,M,D], A [K,D,N], B [K,L,M,N], C [K,L,M,N]) -> y [K,L,M,D], without the
# Ds skip.
Scan = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class VMambaConfig:
    """Dimensions of one model. Stage i has embed_dim * 2^i channels and depths[i] blocks."""

    in_chans: int
    embed_dim: int
    depths: tuple[int, ...]
    num_classes: int
    ssm_ratio: float = 1.0
    d_state: int = 1
    dt_rank: int | str = "auto"
    mlp_ratio: float = 4.0
    forward_type: str = "v05_noz"  # or "v05", with the gate

    @property
    def gated(self) -> bool:
        """Whether in_proj makes a z of its own, [.., di] behind x."""
        return {"v05": True, "v05_noz": False}[self.forward_type]

    def dims(self) -> list[int]:
        """Channels of each stage."""
        return [self.embed_dim << i for i in range(len(self.depths))]

    def inner(self, dim: int) -> int:
        """Channels inside SS2D, di."""
        return int(self.ssm_ratio * dim)

    def rank(self, dim: int) -> int:
        """Rank R of the step projection; "auto" is ceil(dim / 16)."""
        return math.ceil(dim / 16) if self.dt_rank == "auto" else int(self.dt_rank)

    def to_metadata(self) -> dict[str, str]:
        """The configuration as safetensors metadata: `config.<field>`, all strings; depths joined
        by "-"; the forward type only where it is not the usual one."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        if not self.gated:
            del values["forward_type"]
        values["depths"] = "-".join(map(str, self.depths))
        return {f"config.{name}": str(value) for name, value in values.items()}

    @staticmethod
    def from_metadata(meta: dict[str, str]) -> "VMambaConfig":
        """Inverse of to_metadata; other keys are ignored."""
        rank = meta["config.dt_rank"]
        return VMambaConfig(
            in_chans=int(meta["config.in_chans"]),
            embed_dim=int(meta["config.embed_dim"]),
            depths=tuple(int(n) for n in meta["config.depths"].split("-")),
            num_classes=int(meta["config.num_classes"]),
            ssm_ratio=float(meta["config.ssm_ratio"]),
            d_state=int(meta["config.d_state"]),
            dt_rank=rank if rank == "auto" else int(rank),
            mlp_ratio=float(meta["config.mlp_ratio"]),
            forward_type=meta.get("config.forward_type", "v05_noz"),
        )


def scan_sequential(u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor) -> Tensor:
    """The recurrence as it is written, one token after the other. Shapes as `Scan`."""
    h = torch.zeros(u.shape[0], u.shape[2], u.shape[3], A.shape[2], dtype=u.dtype)  # [K,M,D,N]
    ys = []
    for t in range(u.shape[1]):
        step = delta[:, t, :, :, None]  # [K,M,D,1]
        drive = step * B[:, t, :, None, :] * u[:, t, :, :, None]
        h = torch.exp(step * A[:, None]) * h + drive
        ys.append((h * C[:, t, :, None, :]).sum(-1))
    return torch.stack(ys, 1)


class _LinearRecurrence(torch.autograd.Function):
    """h_t = a_t h_{t-1} + b_t along dimension 1, h_{-1} = 0, with the backward pass as a second,
    reversed recurrence."""

    @staticmethod
    def forward(ctx, a: Tensor, b: Tensor) -> Tensor:
        h = b.clone()
        for t in range(1, a.shape[1]):
            h[:, t].addcmul_(a[:, t], h[:, t - 1])
        ctx.save_for_backward(a, h)
        return h

    @staticmethod
    def backward(ctx, grad_h: Tensor) -> tuple[Tensor, Tensor]:
        a, h = ctx.saved_tensors
        g = grad_h.clone()
        for t in range(a.shape[1] - 2, -1, -1):
            g[:, t].addcmul_(a[:, t + 1], g[:, t + 1])
        grad_a = torch.zeros_like(a)
        torch.mul(g[:, 1:], h[:, :-1], out=grad_a[:, 1:])
        return grad_a, g


def scan_whole_tensor(u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor) -> Tensor:
    """Same result as scan_sequential: only the two-operand recurrence runs token by token, all
    else on whole tensors.

    Used for training: autograd keeps two tensors instead of a graph of L steps.
    """
    a = torch.exp(delta[..., None] * A[:, None, None])
    b = (delta * u)[..., None] * B[:, :, :, None, :]
    h = _LinearRecurrence.apply(a, b)  # [K,L,M,D,N]
    return h.squeeze(-1) * C if A.shape[2] == 1 else (h * C[:, :, :, None, :]).sum(-1)


def cross_scan(x: Tensor) -> Tensor:
    """[M,H,W,D] -> [4,L,M,D]: the tokens along the four directions. Direction 1 visits token w*H +
    h at (h, w)."""
    rows = x.permute(1, 2, 0, 3).flatten(0, 1)
    cols = x.permute(2, 1, 0, 3).flatten(0, 1)
    return torch.stack([rows, cols, rows.flip(0), cols.flip(0)])


def cross_merge(y: Tensor, height: int, width: int) -> Tensor:
    """[4,L,M,D] -> [M,H,W,D]: every direction back in its place, then the sum of the four."""
    rows = (y[0] + y[2].flip(0)).unflatten(0, (height, width)).permute(2, 0, 1, 3)
    cols = (y[1] + y[3].flip(0)).unflatten(0, (width, height)).permute(2, 1, 0, 3)
    return rows + cols


def ss2d_core(u: Tensor, p: dict[str, Tensor], scan: Scan) -> Tensor:
    """u [M,H,W,di] -> [M,H,W,di]: cross-scan, projections, selective scan, cross-merge.

    p: x_proj_weight [4,R+2N,di], dt_projs_weight [4,di,R], dt_projs_bias [4,di], A_logs [4*di,N],
    Ds [4*di].
    """
    batch, height, width, inner = u.shape
    rank, state = p["dt_projs_weight"].shape[2], p["A_logs"].shape[1]
    xs = cross_scan(u)
    flat = xs.reshape(DIRECTIONS, -1, inner)
    projected = torch.bmm(flat, p["x_proj_weight"].transpose(1, 2))  # [4, L*M, R+2N]
    r, B, C = projected.split([rank, state, state], dim=2)
    dt = torch.bmm(r, p["dt_projs_weight"].transpose(1, 2)) + p["dt_projs_bias"][:, None]
    A = -torch.exp(p["A_logs"]).unflatten(0, (DIRECTIONS, inner))
    sequences = xs.shape[1:3]
    y = scan(
        xs, F.softplus(dt).view_as(xs), A, B.unflatten(1, sequences), C.unflatten(1, sequences)
    )
    y = y + xs * p["Ds"].view(DIRECTIONS, 1, 1, inner)
    return cross_merge(y, height, width)


class Conv(nn.Conv2d):
    """3x3 convolution of a channel-last tensor, padding 1: [M,H,W,Cin] -> [M,H',W',Cout]."""

    def __init__(self, cin: int, cout: int, stride: int, groups: int = 1, bias: bool = True):
        super().__init__(cin, cout, 3, stride=stride, padding=1, groups=groups, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


class SS2D(nn.Module):
    """The 2-D selective scan with its projections: [M,H,W,d] -> [M,H,W,d]."""

    def __init__(self, cfg: VMambaConfig, dim: int, scan: Scan):
        super().__init__()
        inner, rank, state = cfg.inner(dim), cfg.rank(dim), cfg.d_state
        self.scan = scan
        self.gated = cfg.gated
        self.in_proj = nn.Linear(dim, 2 * inner if cfg.gated else inner, bias=False)
        self.conv2d = Conv(inner, inner, stride=1, groups=inner, bias=False)
        self.x_proj_weight = nn.Parameter(torch.empty(DIRECTIONS, rank + 2 * state, inner))
        self.dt_projs_weight = nn.Parameter(torch.empty(DIRECTIONS, inner, rank))
        self.dt_projs_bias = nn.Parameter(torch.empty(DIRECTIONS, inner))
        log_a = torch.log(torch.arange(1, state + 1, dtype=torch.float32))  # A = -1, -2, ..., -N
        self.A_logs = nn.Parameter(log_a.repeat(DIRECTIONS * inner, 1))
        self.Ds = nn.Parameter(torch.ones(DIRECTIONS * inner))
        self.out_norm = nn.LayerNorm(inner, eps=LN_EPS)
        self.out_proj = nn.Linear(inner, dim, bias=False)
        nn.init.uniform_(self.x_proj_weight, -(inner**-0.5), inner**-0.5)
        nn.init.uniform_(self.dt_projs_weight, -(rank**-0.5), rank**-0.5)
        # The step softplus(bias) starts log-uniform in [0.001, 0.1].
        step = torch.exp(torch.rand(DIRECTIONS, inner) * math.log(100.0) + math.log(0.001))
        with torch.no_grad():
            self.dt_projs_bias.copy_(step + torch.log(-torch.expm1(-step)))

    def forward(self, x: Tensor) -> Tensor:
        u = self.in_proj(x)
        if self.gated:
            u, z = u.chunk(2, dim=-1)
        u = F.silu(self.conv2d(u))
        y = self.out_norm(ss2d_core(u, dict(self._parameters), self.scan))
        return self.out_proj(y * F.silu(z) if self.gated else y)


class Mlp(nn.Module):
    """fc2(GELU(fc1(x))) over the last dimension, exact (erf) GELU."""

    def __init__(self, dim: int, hidden: int):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    """Two pre-norm residual branches: SS2D and MLP. [M,H,W,d] -> [M,H,W,d]."""

    def __init__(self, cfg: VMambaConfig, dim: int, scan: Scan):
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=LN_EPS)
        self.op = SS2D(cfg, dim, scan)
        self.norm2 = nn.LayerNorm(dim, eps=LN_EPS)
        self.mlp = Mlp(dim, int(cfg.mlp_ratio * dim))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.op(self.norm(x))
        return x + self.mlp(self.norm2(x))


class VMamba(nn.Module):
    """The classifier: [M,in_chans,H,W] -> logits [M,num_classes]. Identities stand where the key
    numbering has gaps."""

    def __init__(self, cfg: VMambaConfig, scan: Scan = scan_sequential):
        super().__init__()
        self.cfg = cfg
        dims, half = cfg.dims(), cfg.embed_dim // 2
        norm = lambda dim: nn.LayerNorm(dim, eps=LN_EPS)  # noqa: E731
        self.patch_embed = nn.Sequential(
            Conv(cfg.in_chans, half, stride=2), nn.Identity(), norm(half), nn.Identity(), nn.GELU(),
            Conv(half, dims[0], stride=2), nn.Identity(), norm(dims[0]),
        )  # fmt: skip
        self.layers = nn.ModuleList()
        for i, (dim, depth) in enumerate(zip(dims, cfg.depths)):
            layer = nn.Module()
            layer.blocks = nn.Sequential(*(Block(cfg, dim, scan) for _ in range(depth)))
            last = i + 1 == len(dims)
            down = (
                []
                if last
                else [nn.Identity(), Conv(dim, 2 * dim, stride=2), nn.Identity(), norm(2 * dim)]
            )
            layer.downsample = nn.Sequential(*down)
            self.layers.append(layer)
        head = [("norm", norm(dims[-1])), ("head", nn.Linear(dims[-1], cfg.num_classes))]
        self.classifier = nn.ModuleDict(OrderedDict(head))

    def forward(self, x: Tensor, taps: Optional[dict[str, Tensor]] = None) -> Tensor:
        """Logits. `taps`, when given, receives `stem`, `layers.i.blocks.j`, `layers.i.downsample`
        as [M,C,H,W],
        `features` [M,C] and `logits` [M,num_classes]."""

        def record(name: str, value: Tensor) -> Tensor:
            if taps is not None:
                taps[name] = value.permute(0, 3, 1, 2) if value.dim() == 4 else value
            return value

        x = record("stem", self.patch_embed(x.permute(0, 2, 3, 1)))
        for i, layer in enumerate(self.layers):
            for j, block in enumerate(layer.blocks):
                x = record(f"layers.{i}.blocks.{j}", block(x))
            if len(layer.downsample):
                x = record(f"layers.{i}.downsample", layer.downsample(x))
        x = record("features", self.classifier["norm"](x).mean((1, 2)))
        return record("logits", self.classifier["head"](x))
