# mypy: ignore-errors
"""Random streams on an accelerator, a kernel a question: the same numbers as `draws` gives.

Ten rounds of integer arithmetic on tensors are over a hundred tiny kernels, and a round of decoding
would mostly wait for their launches. Triton has the same Philox-4x32-10 built in.
"""

import torch
import triton
import triton.language as tl
from jaxtyping import Float64, Int
from torch import Tensor

BLOCK = 1024


@triton.jit
def _words(c0, c1, c2, c3, out, seed, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    a = tl.load(c0 + place, inside, 0).to(tl.uint32)
    b = tl.load(c1 + place, inside, 0).to(tl.uint32)
    c = tl.load(c2 + place, inside, 0).to(tl.uint32)
    d = tl.load(c3 + place, inside, 0).to(tl.uint32)
    w0, w1, w2, w3 = tl.philox(seed, a, b, c, d, 10)
    tl.store(out + place, w0.to(tl.int64), inside)
    tl.store(out + count + place, w1.to(tl.int64), inside)
    tl.store(out + 2 * count + place, w2.to(tl.int64), inside)
    tl.store(out + 3 * count + place, w3.to(tl.int64), inside)


@triton.jit
def _doubles(
    ids,
    rows,
    positions,
    out,
    seed,
    purpose,
    round,
    count,
    length,
    GRID: tl.constexpr,
    BLOCK: tl.constexpr,
):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    if GRID:  # every position of every row
        row, position = (place // length).to(tl.int64), place % length
    else:
        row, position = tl.load(rows + place, inside, 0), tl.load(positions + place, inside, 0)
    name = tl.load(ids + row, inside, 0)
    a = name.to(tl.uint32)
    b = (((name >> 32) & 0xFFFF) | (purpose << 16)).to(tl.uint32)
    d = (position * 0 + round).to(tl.uint32)
    w0, w1, _, _ = tl.philox(seed, a, b, position.to(tl.uint32), d, 10)
    bits = ((w0 >> 5).to(tl.int64) << 26) + (w1 >> 6).to(tl.int64)
    tl.store(out + place, bits.to(tl.float64) * 1.1102230246251565e-16, inside)  # 2^-53


def _seed(key: tuple[int, int]) -> int:
    """The key as the signed 64-bit number with the same bits."""
    seed = key[0] | key[1] << 32
    return seed - ((seed >> 63) << 64)


def philox(counter: list[Int[Tensor, "*shape"]], key: tuple[int, int]) -> list[Tensor]:
    """Four int64 tensors holding 32-bit words in, four out; as `draws.philox`."""
    flat = [c.contiguous() for c in counter]
    out = torch.empty((4, *flat[0].shape), dtype=torch.int64, device=flat[0].device)
    count = flat[0].numel()
    if count:
        _words[(triton.cdiv(count, BLOCK),)](*flat, out, _seed(key), count, BLOCK=BLOCK)
    return list(out.unbind(0))


def uniform(
    ids: Int[Tensor, " batch"],
    key: tuple[int, int],
    purpose: int,
    round: int,
    length: int,
    at: tuple[Int[Tensor, " n"], Int[Tensor, " n"]] | None = None,
) -> Float64[Tensor, "..."]:
    """Uniforms in [0, 1) for every position of every row, or at the (rows, positions) named."""
    shape = (len(ids), length) if at is None else (len(at[0]),)
    out = torch.empty(shape, dtype=torch.float64, device=ids.device)
    count = out.numel()
    if count:
        rows, positions = (ids, ids) if at is None else (at[0].contiguous(), at[1].contiguous())
        numbers = (_seed(key), purpose, round, count, length)
        grid = (triton.cdiv(count, BLOCK),)
        _doubles[grid](ids, rows, positions, out, *numbers, GRID=at is None, BLOCK=BLOCK)
    return out
