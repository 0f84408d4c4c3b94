"""Three ways to run a selective scan in PyTorch on the CPU, for the comparison.

All take and return what `vmamba.Scan` says: u, delta [K,L,M,D], A [K,D,N], B, C [K,L,M,N] -> y
[K,L,M,D], without the Ds skip. Each starts with the same two whole-tensor steps, the decays
a = exp(delta A) and the drives b = delta B u, [K,L,M,D,N], and then solves h_t = a_t h_{t-1} + b_t:

    steps        token by token, as public CPU code does: L small tensor operations
    chunked      sqrt(L) chunks side by side, then the carry from chunk to chunk: 2 sqrt(L) larger
                 ones
    associative  pairs combined by (a, b) o (a', b') = (a a', a' b + b'), halving until one is left,
                 and back: 2 log2(L) operations, and about twice the work
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def _decays_and_drives(u: Tensor, delta: Tensor, A: Tensor, B: Tensor) -> tuple[Tensor, Tensor]:
    a = torch.exp(delta[..., None] * A[:, None, None])
    b = (delta * u)[..., None] * B[:, :, :, None, :]
    return a, b


def _outputs(h: Tensor, C: Tensor) -> Tensor:
    if h.shape[-1] == 1:
        return h.squeeze(-1) * C
    return (h * C[:, :, :, None, :]).sum(-1)


def steps(u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor) -> Tensor:
    a, b = _decays_and_drives(u, delta, A, B)
    h = torch.zeros_like(b[:, 0])
    states = []
    for t in range(b.shape[1]):
        h = torch.addcmul(b[:, t], a[:, t], h)
        states.append(h)
    return _outputs(torch.stack(states, 1), C)


def chunked(u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor) -> Tensor:
    a, b = _decays_and_drives(u, delta, A, B)
    length = b.shape[1]
    size = max(1, round(math.sqrt(length)))
    chunks = -(-length // size)
    padding = chunks * size - length
    if padding:
        a = F.pad(a, (0, 0) * 3 + (0, padding))
        b = F.pad(b, (0, 0) * 3 + (0, padding))
    a = a.unflatten(1, (chunks, size))
    b = b.unflatten(1, (chunks, size))
    # Inside every chunk, from a state of 0; and the product of the decays up to each token.
    states, products = [b[:, :, 0]], [a[:, :, 0]]
    for t in range(1, size):
        states.append(torch.addcmul(b[:, :, t], a[:, :, t], states[-1]))
        products.append(a[:, :, t] * products[-1])
    carry = torch.zeros_like(b[:, 0, 0])
    carries = []
    for i in range(chunks):
        carries.append(carry)
        carry = torch.addcmul(states[-1][:, i], products[-1][:, i], carry)
    h = torch.addcmul(
        torch.stack(states, 2), torch.stack(products, 2), torch.stack(carries, 1)[:, :, None]
    )
    return _outputs(h.flatten(1, 2)[:, :length], C)


def _solve(a: Tensor, b: Tensor) -> Tensor:
    """h of all tokens: solves for every second one first, then fills in the others."""
    length = b.shape[1]
    if length == 1:
        return b
    even = length - length % 2
    odd_h = _solve(
        a[:, 0:even:2] * a[:, 1:even:2],
        torch.addcmul(b[:, 1:even:2], a[:, 1:even:2], b[:, 0:even:2]),
    )
    h = torch.empty_like(b)
    h[:, 1::2] = odd_h
    h[:, 0] = b[:, 0]
    rest = h[:, 2::2].shape[1]
    if rest:
        h[:, 2::2] = torch.addcmul(b[:, 2::2], a[:, 2::2], odd_h[:, :rest])
    return h


def associative(u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor) -> Tensor:
    return _outputs(_solve(*_decays_and_drives(u, delta, A, B)), C)
