"""Self-attention with rotary positions, over whole walks or (`causal`) over what came before.

Rotary positions turn the pair (j, j + width/2) of a head's query and key at position t by the
angle t·10000^(-2j/width) [Su et al., 2021], so scores depend on distances only.

Everywhere: PyTorch's scaled dot product. On an accelerator, walks of at most 64 tokens go through
one small fused kernel instead (`kernels.attention`), which reads queries, keys and values once:
library kernels are built for long sequences and spend most of a 24-token tile on padding. All else,
where no gradient is wanted, is turned in place (`kernels.rotary`).
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

BASE = 10_000.0


def rotation(length: int, half: int) -> Float[Tensor, "2 length half"]:
    """cos and sin of every angle, computed in float64."""
    rates = BASE ** -(torch.arange(half, dtype=torch.float64) / half)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates
    return torch.stack([angles.cos(), angles.sin()]).to(torch.float32)


def rotate(
    x: Float[Tensor, "*batch length heads width"], angles: Float[Tensor, "2 length half"]
) -> Float[Tensor, "*batch length heads width"]:
    """Turns every pair by its angle, in float32."""
    cos, sin = angles[:, :, None, :]
    left, right = x.float().chunk(2, dim=-1)
    turned = torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1)
    return turned.to(x.dtype)


def usable(qkv: Float[Tensor, "rows length threefold"], heads: int) -> bool:
    """Whether the fused kernel can do it: short walks, narrow numbers, a width it can tile."""
    width = qkv.shape[2] // (3 * heads)
    return qkv.is_cuda and qkv.dtype != torch.float32 and qkv.shape[1] <= 64 and width in (32, 64)


def attend(
    qkv: Float[Tensor, "rows length threefold"],
    heads: int,
    angles: Float[Tensor, "2 length half"],
    causal: bool = False,
) -> Float[Tensor, "rows length hidden"]:
    """softmax(q·k/√width)·v for every head of every row; `qkv` may be written over."""
    rows, length, threefold = qkv.shape
    if usable(qkv, heads) and not causal:
        from maskwalk.kernels.attention import short_attention

        fused: Tensor = short_attention(qkv, angles, heads)
        return fused
    in_place = qkv.is_cuda and not torch.is_grad_enabled() and not torch.compiler.is_compiling()
    if in_place:
        from maskwalk.kernels.rotary import rotary

        rotary(qkv, heads, angles)
    q, k, v = qkv.view(rows, length, 3, heads, threefold // (3 * heads)).unbind(2)
    if not in_place:
        q, k = rotate(q, angles), rotate(k, angles)
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return out.transpose(1, 2).reshape(rows, length, threefold // 3)
