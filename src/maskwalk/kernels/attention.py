# mypy: ignore-errors
"""Rotary self-attention of short walks on an accelerator: one program per walk and head.

A walk of 24 tokens fits one tile, so a program reads its queries, keys and values once, turns them,
and writes the result once; the gradient recomputes everything from the same inputs, so nothing is
kept for it. With e = exp(s - max s) rounded to the input's dtype,

    out = Σ e·v / Σ e,     the sum in the denominator being that of the *rounded* weights,

so positions that carry equal values get exactly that value back: on a fully masked walk the scores
of all positions stay equal to the last bit, and true ties remain ties (`score_grid`).
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import triton_op, wrap_triton

FORWARD_WARPS, BACKWARD_WARPS = 1, 1  # a tile is 32 by 64: small programs, many at a time


@triton.jit
def _turn(left, right, cos, sin):
    return (left * cos - right * sin), (right * cos + left * sin)


@triton.jit
def _tile(LENGTH: tl.constexpr, HEADS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr):
    """This program's walk and head: where its tiles begin, and the places inside them."""
    program = tl.program_id(0)
    row, head = (program // HEADS).to(tl.int64), program % HEADS
    t, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, HALF)[None, :]
    source = row * (LENGTH * 6 * HEADS * HALF) + head * 2 * HALF
    target = row * (LENGTH * 2 * HEADS * HALF) + head * 2 * HALF
    # Offsets inside a tile stay 32-bit: as 64-bit ones they would fill the registers.
    return source, target, t * (6 * HEADS * HALF) + j, t * (2 * HEADS * HALF) + j, t < LENGTH


@triton.jit
def _turned(base, places, inside, cos, sin, HALF: tl.constexpr):
    left = tl.load(base + places, inside, 0.0)
    right = tl.load(base + HALF + places, inside, 0.0)
    a, b = _turn(left.to(tl.float32), right.to(tl.float32), cos, sin)
    return a.to(left.dtype), b.to(left.dtype)


@triton.jit
def _angles(angles, inside, LENGTH: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)[:, None] * HALF + tl.arange(0, HALF)[None, :]
    cos = tl.load(angles + places, inside, 0.0)
    return cos, tl.load(angles + LENGTH * HALF + places, inside, 0.0)


@triton.jit
def _weights(q1, q2, k1, k2, scale, LENGTH: tl.constexpr, BLOCK: tl.constexpr):
    """Unnormalised attention weights in the inputs' dtype, and the inverse of their sum."""
    s = tl.dot(q2, tl.trans(k2), tl.dot(q1, tl.trans(k1))) * (scale * 1.4426950408889634)
    s = tl.where(tl.arange(0, BLOCK)[None, :] < LENGTH, s, float("-inf"))
    e = tl.exp2(s - tl.max(s, 1)[:, None]).to(q1.dtype)
    return e, 1.0 / tl.sum(e.to(tl.float32), 1)[:, None]


@triton.jit
def _forward(
    qkv,
    angles,
    out,
    scale,
    LENGTH: tl.constexpr,
    HEADS: tl.constexpr,
    HALF: tl.constexpr,
    BLOCK: tl.constexpr,
):
    source, target, places, to, inside = _tile(LENGTH, HEADS, HALF, BLOCK)
    cos, sin = _angles(angles, inside, LENGTH, HALF, BLOCK)
    q, o = qkv + source, out + target
    k, v = q + 2 * HEADS * HALF, q + 4 * HEADS * HALF
    q1, q2 = _turned(q, places, inside, cos, sin, HALF)
    k1, k2 = _turned(k, places, inside, cos, sin, HALF)
    v1 = tl.load(v + places, inside, 0.0)
    v2 = tl.load(v + HALF + places, inside, 0.0)
    e, share = _weights(q1, q2, k1, k2, scale, LENGTH, BLOCK)
    tl.store(o + to, (tl.dot(e, v1) * share).to(e.dtype), inside)
    tl.store(o + HALF + to, (tl.dot(e, v2) * share).to(e.dtype), inside)


@triton.jit
def _backward(
    qkv,
    angles,
    gradient,
    out,
    scale,
    LENGTH: tl.constexpr,
    HEADS: tl.constexpr,
    HALF: tl.constexpr,
    BLOCK: tl.constexpr,
):
    source, target, places, to, inside = _tile(LENGTH, HEADS, HALF, BLOCK)
    cos, sin = _angles(angles, inside, LENGTH, HALF, BLOCK)
    q, dq, g = qkv + source, out + source, gradient + target
    k, v = q + 2 * HEADS * HALF, q + 4 * HEADS * HALF
    dk, dv = dq + 2 * HEADS * HALF, dq + 4 * HEADS * HALF
    q1, q2 = _turned(q, places, inside, cos, sin, HALF)
    k1, k2 = _turned(k, places, inside, cos, sin, HALF)
    e, share = _weights(q1, q2, k1, k2, scale, LENGTH, BLOCK)
    p = e.to(tl.float32) * share
    turned = tl.trans(p.to(e.dtype))
    g1 = tl.load(g + to, inside, 0.0)
    tl.store(dv + places, tl.dot(turned, g1).to(e.dtype), inside)
    dp = tl.dot(g1, tl.trans(tl.load(v + places, inside, 0.0)))
    g2 = tl.load(g + HALF + to, inside, 0.0)
    tl.store(dv + HALF + places, tl.dot(turned, g2).to(e.dtype), inside)
    dp = tl.dot(g2, tl.trans(tl.load(v + HALF + places, inside, 0.0)), dp)
    ds = (p * (dp - tl.sum(p * dp, 1)[:, None]) * scale).to(e.dtype)
    # The gradient of a turn is the turn back: the same with -sin. Angles are read again rather
    # than held in registers all the while.
    cos, sin = _angles(angles, inside, LENGTH, HALF, BLOCK)
    a, b = _turn(tl.dot(ds, k1), tl.dot(ds, k2), cos, -sin)
    tl.store(dq + places, a.to(e.dtype), inside)
    tl.store(dq + HALF + places, b.to(e.dtype), inside)
    ds = tl.trans(ds)
    a, b = _turn(tl.dot(ds, q1), tl.dot(ds, q2), cos, -sin)
    tl.store(dk + places, a.to(e.dtype), inside)
    tl.store(dk + HALF + places, b.to(e.dtype), inside)


def _shape(qkv: Tensor, heads: int) -> tuple[int, int, int, float]:
    length, half = qkv.shape[1], qkv.shape[2] // (6 * heads)
    return length, half, max(16, triton.next_power_of_2(length)), (2 * half) ** -0.5


@triton_op("maskwalk::short_attention", mutates_args={})
def short_attention(qkv: Tensor, angles: Tensor, heads: int) -> Tensor:
    """Attention of (rows, length, 3·hidden) walks; the head's width must be 32, 64 or 128."""
    length, half, block, scale = _shape(qkv, heads)
    out = qkv.new_empty(len(qkv), length, qkv.shape[2] // 3)
    wrap_triton(_forward)[(len(qkv) * heads,)](
        qkv,
        angles,
        out,
        scale,
        LENGTH=length,
        HEADS=heads,
        HALF=half,
        BLOCK=block,
        num_warps=FORWARD_WARPS,
    )
    return out


@triton_op("maskwalk::short_attention_gradient", mutates_args={})
def short_attention_gradient(qkv: Tensor, angles: Tensor, gradient: Tensor, heads: int) -> Tensor:
    """The gradient of `short_attention` in its first argument."""
    length, half, block, scale = _shape(qkv, heads)
    out = torch.empty_like(qkv)
    wrap_triton(_backward)[(len(qkv) * heads,)](
        qkv,
        angles,
        gradient,
        out,
        scale,
        LENGTH=length,
        HEADS=heads,
        HALF=half,
        BLOCK=block,
        num_warps=BACKWARD_WARPS,
    )
    return out


def _setup(ctx, inputs, output) -> None:
    qkv, angles, heads = inputs
    ctx.save_for_backward(qkv, angles)
    ctx.heads = heads


def _gradient(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:
    qkv, angles = ctx.saved_tensors
    return short_attention_gradient(qkv, angles, gradient.contiguous(), ctx.heads), None, None


short_attention.register_autograd(_gradient, setup_context=_setup)
