# mypy: ignore-errors
"""Rotary positions of queries and keys in place, for what `kernels.attention` does not do."""

import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor


@triton.jit
def _rotary(qkv, angles, LENGTH, HEADS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64)  # a row and a position in it
    pair = tl.arange(0, BLOCK)  # queries, then keys, head by head
    inside = pair < 2 * HEADS * HALF
    left = qkv + place * (6 * HEADS * HALF) + pair // HALF * (2 * HALF) + pair % HALF
    angle = angles + place % LENGTH * HALF + pair % HALF
    cos = tl.load(angle, inside, 0.0)
    sin = tl.load(angle + LENGTH * HALF, inside, 0.0)
    a = tl.load(left, inside, 0.0).to(tl.float32)
    b = tl.load(left + HALF, inside, 0.0).to(tl.float32)
    tl.store(left, a * cos - b * sin, inside)
    tl.store(left + HALF, b * cos + a * sin, inside)


def rotary(
    qkv: Float[Tensor, "rows length threefold"], heads: int, angles: Float[Tensor, "2 length half"]
) -> None:
    """Turns queries and keys where they lie; in float32, and rounded back (no gradient)."""
    rows, length, threefold = qkv.shape
    assert qkv.is_contiguous() and angles.is_contiguous() and angles.shape[1] == length
    half = threefold // (6 * heads)
    block = triton.next_power_of_2(2 * heads * half)
    _rotary[(rows * length,)](qkv, angles, length, HEADS=heads, HALF=half, BLOCK=block)
