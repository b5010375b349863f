# mypy: ignore-errors
"""Bias and tanh-GELU as one kernel; its gradient also sums the bias's."""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import triton_op, wrap_triton

TILE, PROGRAMS, STAGES = 2048, 896, 2  # as in `join`


@triton.jit
def _sigmoid(z):
    """The tanh-GELU is z·sigmoid(2√(2/π)(z + 0.044715 z³))."""
    return 1 / (1 + tl.exp(-1.5957691216057308 * (z + 0.044715 * z * z * z)))


@triton.jit
def _gelu(z, bias, out, rows, bias_step, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    model = tl.program_id(1)
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.arange(0, WIDTH)[None, :]
    place = model.to(tl.int64) * rows * WIDTH + row * WIDTH + column
    value = tl.load(z + place, row < rows, 0.0).to(tl.float32)
    value += tl.load(bias + model * bias_step + column).to(tl.float32)
    tl.store(out + place, (value * _sigmoid(value)).to(out.dtype.element_ty), row < rows)


@triton.jit
def _gelu_gradient(
    z,
    bias,
    d_out,
    d_z,
    sums,
    rows,
    bias_step,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    PARTS: tl.constexpr,
    STAGES: tl.constexpr,
):
    part, model = tl.program_id(0), tl.program_id(1)
    column = tl.arange(0, WIDTH)[None, :]
    begin = model.to(tl.int64) * rows * WIDTH
    b = tl.load(bias + model * bias_step + column).to(tl.float32)
    total = tl.zeros((BLOCK, WIDTH), tl.float32)
    for tile in tl.range(part, tl.cdiv(rows, BLOCK), PARTS, num_stages=STAGES):
        row = tile * BLOCK + tl.arange(0, BLOCK)[:, None]
        place, inside = begin + row * WIDTH + column, row < rows
        value = tl.load(z + place, inside, 0.0).to(tl.float32) + b
        s = _sigmoid(value)
        slope = s + value * s * (1 - s) * 1.5957691216057308 * (1 + 0.134145 * value * value)
        d = tl.load(d_out + place, inside, 0.0).to(tl.float32) * slope
        total += d
        tl.store(d_z + place, d.to(d_z.dtype.element_ty), inside)
    tl.store(sums + (model * PARTS + part) * WIDTH + tl.arange(0, WIDTH), tl.sum(total, 0))


def _grid(z: Tensor) -> tuple[int, int, int]:
    """(rows, width, rows of a tile)."""
    return z.shape[1], z.shape[2], max(1, TILE // z.shape[2])


@triton_op("maskwalk::gelu", mutates_args={})
def gelu(z: Tensor, bias: Tensor) -> Tensor:
    """tanh-GELU of (models, rows, width) z plus a bias (models, width)."""
    rows, width, block = _grid(z)
    out = torch.empty_like(z)
    wrap_triton(_gelu)[(triton.cdiv(rows, block), len(z))](
        z, bias, out, rows, bias.stride(0), WIDTH=width, BLOCK=block
    )
    return out


@triton_op("maskwalk::gelu_gradient", mutates_args={})
def gelu_gradient(z: Tensor, bias: Tensor, d_out: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of z, and partial sums of the bias's."""
    rows, width, block = _grid(z)
    parts = max(1, PROGRAMS // len(z))
    d_z, sums = torch.empty_like(z), z.new_empty((len(z), parts, width), dtype=torch.float32)
    wrap_triton(_gelu_gradient)[(parts, len(z))](
        z,
        bias,
        d_out,
        d_z,
        sums,
        rows,
        bias.stride(0),
        WIDTH=width,
        BLOCK=block,
        PARTS=parts,
        STAGES=STAGES,
    )
    return d_z, sums


def _keep_gelu(ctx, inputs, output) -> None:
    ctx.save_for_backward(*inputs)


def _gelu_backward(ctx, d_out: Tensor) -> tuple[Tensor, Tensor]:
    z, bias = ctx.saved_tensors
    d_z, sums = gelu_gradient(z, bias, d_out.contiguous())
    return d_z, sums.sum(1).to(bias.dtype)


gelu.register_autograd(_gelu_backward, setup_context=_keep_gelu)
