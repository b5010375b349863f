# mypy: ignore-errors
"""The end of a residual branch and the norm that begins the next, as one kernel.

With a branch's output y, bias c, gate g and dropout mask k, and the next norm's factor f, offset s,

    x' = x + g·k·(y + c),     h = norm(x')·f + s

reads x and y once and writes x' and h once; its gradient reads x', y and the two incoming gradients
once, recomputes the norm and the mask, and sums the gradients of c, g, f and s on the way. A
compiler would keep masks, normalised rows and dropped branches for the backward pass: about twice
the traffic, in a network whose time is mostly traffic. `ddit.residual_norm` has the plain formulas.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import triton_op, wrap_triton

# Chosen by timing on an H200, seven models of the paper's size at once. A tile is this many
# numbers; in the gradient a fixed number of programs, over all models, each keeps sums over its
# share of the rows, with some tiles on their way from memory while one is worked on.
TILE, PROGRAMS, STAGES = 1024, 525, 3


@triton.jit
def _kept(row, column, start, key, threshold, HIDDEN: tl.constexpr):
    """Whether an element survives dropout: `maskwalk.denoisers.dropout` bit for bit."""
    x = row * HIDDEN + column + start + key
    x = x ^ ((x >> 16) & 0xFFFF)
    x = x * 0x7FEB352D
    x = x ^ ((x >> 15) & 0x1FFFF)
    x = x * -2073254261
    x = x ^ ((x >> 16) & 0xFFFF)
    return x >= threshold


@triton.jit
def _residual_norm(
    x,
    y,
    bias,
    gate,
    factor,
    offset,
    keys,
    threshold,
    scale,
    new,
    out,
    rows,
    start,
    bias_step,
    gate_step,
    factor_step,
    offset_step,
    BRANCH: tl.constexpr,
    BRANCHES: tl.constexpr,
    HAS_BRANCH: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    DROP: tl.constexpr,
    HIDDEN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    model = tl.program_id(1)
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.arange(0, HIDDEN)[None, :]
    begin, inside = model.to(tl.int64) * rows * HIDDEN, row < rows
    place = row * HIDDEN + column
    value = tl.load(x + begin + place, inside, 0.0)
    if HAS_BRANCH:
        branch = tl.load(y + begin + place, inside, 0.0).to(tl.float32)
        if HAS_BIAS:
            branch += tl.load(bias + model * bias_step + column).to(tl.float32)
        if DROP:
            key = tl.load(keys + model * BRANCHES + BRANCH)
            keep = _kept(row, column, start, key, tl.load(threshold + model), HIDDEN)
            branch = tl.where(keep, branch * tl.load(scale + model), 0.0)
        value += tl.load(gate + model * gate_step + column) * branch
        tl.store(new + begin + place, value, inside)
    centred = value - tl.sum(value, 1)[:, None] * (1.0 / HIDDEN)
    inverse = tl.rsqrt(tl.sum(centred * centred, 1)[:, None] * (1.0 / HIDDEN) + 1e-5)
    result = centred * inverse * tl.load(factor + model * factor_step + column) + tl.load(
        offset + model * offset_step + column
    )
    tl.store(out + begin + place, result.to(out.dtype.element_ty), inside)


@triton.jit
def _residual_norm_gradient(
    new,
    y,
    bias,
    gate,
    factor,
    keys,
    threshold,
    scale,
    d_new,
    d_out,
    d_x,
    d_y,
    sums,
    rows,
    start,
    bias_step,
    gate_step,
    factor_step,
    BRANCH: tl.constexpr,
    BRANCHES: tl.constexpr,
    HAS_BRANCH: tl.constexpr,
    HAS_MORE: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    DROP: tl.constexpr,
    HIDDEN: tl.constexpr,
    BLOCK: tl.constexpr,
    PARTS: tl.constexpr,
    STAGES: tl.constexpr,
):
    part, model = tl.program_id(0), tl.program_id(1)
    column = tl.arange(0, HIDDEN)[None, :]
    begin = model.to(tl.int64) * rows * HIDDEN
    f = tl.load(factor + model * factor_step + column)
    sum_f = tl.zeros((BLOCK, HIDDEN), tl.float32)
    sum_o = tl.zeros((BLOCK, HIDDEN), tl.float32)
    sum_g = tl.zeros((BLOCK, HIDDEN), tl.float32)
    sum_b = tl.zeros((BLOCK, HIDDEN), tl.float32)
    for tile in tl.range(part, tl.cdiv(rows, BLOCK), PARTS, num_stages=STAGES):
        row = tile * BLOCK + tl.arange(0, BLOCK)[:, None]
        inside, place = row < rows, row * HIDDEN + column
        value = tl.load(new + begin + place, inside, 0.0)
        d = tl.load(d_out + begin + place, inside, 0.0).to(tl.float32)
        centred = value - tl.sum(value, 1)[:, None] * (1.0 / HIDDEN)
        inverse = tl.rsqrt(tl.sum(centred * centred, 1)[:, None] * (1.0 / HIDDEN) + 1e-5)
        normed = centred * inverse
        sum_f += d * normed
        sum_o += d
        d *= f
        mean = tl.sum(d, 1)[:, None] * (1.0 / HIDDEN)
        slope = tl.sum(d * normed, 1)[:, None] * (1.0 / HIDDEN)
        d = inverse * (d - mean - normed * slope)
        if HAS_MORE:
            d += tl.load(d_new + begin + place, inside, 0.0)
        tl.store(d_x + begin + place, d, inside)
        if HAS_BRANCH:
            branch = tl.load(y + begin + place, inside, 0.0).to(tl.float32)
            if HAS_BIAS:
                branch += tl.load(bias + model * bias_step + column).to(tl.float32)
            through = tl.load(gate + model * gate_step + column) * d
            if DROP:
                key, much = tl.load(keys + model * BRANCHES + BRANCH), tl.load(scale + model)
                keep = _kept(row, column, start, key, tl.load(threshold + model), HIDDEN)
                branch = tl.where(keep, branch * much, 0.0)
                through = tl.where(keep, through * much, 0.0)
            sum_g += tl.where(inside, branch * d, 0.0)
            sum_b += through
            tl.store(d_y + begin + place, through.to(d_y.dtype.element_ty), inside)
    to = sums + (model * PARTS + part) * 4 * HIDDEN + tl.arange(0, HIDDEN)
    tl.store(to, tl.sum(sum_f, 0))
    tl.store(to + HIDDEN, tl.sum(sum_o, 0))
    tl.store(to + 2 * HIDDEN, tl.sum(sum_g, 0))
    tl.store(to + 3 * HIDDEN, tl.sum(sum_b, 0))


def _grid(x: Tensor) -> tuple[int, int, int]:
    """(rows, width, rows of a tile)."""
    return x.shape[1], x.shape[2], max(1, TILE // x.shape[2])


def _steps(*vectors: Tensor | None) -> list[int]:
    """From one model's vector to the next's: these are views into larger tensors."""
    return [0 if v is None else v.stride(0) for v in vectors]


@triton_op("maskwalk::residual_norm", mutates_args={})
def residual_norm(
    x: Tensor,
    y: Tensor | None,
    bias: Tensor | None,
    gate: Tensor | None,
    factor: Tensor,
    offset: Tensor,
    keys: Tensor | None,
    threshold: Tensor | None,
    scale: Tensor | None,
    start: int,
    branch: int,
    last: bool,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """(x', h) of (models, rows, hidden) x; without y only the norm (x' is then empty).

    `last` promises that nobody differentiates x'.
    """
    rows, hidden, block = _grid(x)
    new = torch.empty_like(x) if y is not None else x.new_empty(0)
    out = torch.empty_like(x, dtype=dtype)
    wrap_triton(_residual_norm)[(triton.cdiv(rows, block), len(x))](
        x,
        x if y is None else y,
        x if bias is None else bias,
        x if gate is None else gate,
        factor,
        offset,
        x if keys is None else keys,
        x if threshold is None else threshold,
        x if scale is None else scale,
        new,
        out,
        rows,
        start,
        *_steps(bias, gate, factor, offset),
        BRANCH=branch,
        BRANCHES=1 if keys is None else keys.shape[1],
        HAS_BRANCH=y is not None,
        HAS_BIAS=bias is not None,
        DROP=keys is not None,
        HIDDEN=hidden,
        BLOCK=block,
    )
    return new, out


@triton_op("maskwalk::residual_norm_gradient", mutates_args={})
def residual_norm_gradient(
    new: Tensor,
    y: Tensor | None,
    bias: Tensor | None,
    gate: Tensor | None,
    factor: Tensor,
    keys: Tensor | None,
    threshold: Tensor | None,
    scale: Tensor | None,
    d_new: Tensor | None,
    d_out: Tensor,
    start: int,
    branch: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x, of y (empty without it), and partial sums of those of f, s, g and c."""
    rows, hidden, block = _grid(new)
    d_x = torch.empty_like(new)
    d_y = torch.empty_like(d_out) if y is not None else new.new_empty(0)
    parts = max(1, PROGRAMS // len(new))
    sums = new.new_empty(len(new), parts, 4, hidden)
    wrap_triton(_residual_norm_gradient)[(parts, len(new))](
        new,
        new if y is None else y,
        new if bias is None else bias,
        new if gate is None else gate,
        factor,
        new if keys is None else keys,
        new if threshold is None else threshold,
        new if scale is None else scale,
        new if d_new is None else d_new,
        d_out,
        d_x,
        d_y,
        sums,
        rows,
        start,
        *_steps(bias, gate, factor),
        BRANCH=branch,
        BRANCHES=1 if keys is None else keys.shape[1],
        HAS_BRANCH=y is not None,
        HAS_MORE=d_new is not None,
        HAS_BIAS=bias is not None,
        DROP=keys is not None,
        HIDDEN=hidden,
        BLOCK=block,
        PARTS=parts,
        STAGES=STAGES,
    )
    return d_x, d_y, sums


def _keep_residual_norm(ctx, inputs, output) -> None:
    x, y, bias, gate, factor, _, keys, threshold, scale, start, branch, last, _ = inputs
    new = x if y is None else output[0]
    ctx.save_for_backward(new, y, bias, gate, factor, keys, threshold, scale)
    ctx.start, ctx.branch, ctx.last = start, branch, last


def _residual_norm_backward(ctx, d_new, d_out):
    new, y, bias, gate, factor, keys, threshold, scale = ctx.saved_tensors
    d_x, d_y, sums = residual_norm_gradient(
        new,
        y,
        bias,
        gate,
        factor,
        keys,
        threshold,
        scale,
        None if y is None or ctx.last else d_new.contiguous(),
        d_out.contiguous(),
        ctx.start,
        ctx.branch,
    )
    d_factor, d_offset, d_gate, d_bias = sums.sum(1).unbind(1)
    branchless = y is None
    return (
        d_x,
        None if branchless else d_y,
        None if bias is None else d_bias.to(bias.dtype),
        None if branchless else d_gate,
        d_factor,
        d_offset,
        *[None] * 7,
    )


residual_norm.register_autograd(_residual_norm_backward, setup_context=_keep_residual_norm)
