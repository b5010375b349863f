"""The paper's denoising transformer (DDiT), for one model or many at once.

One implementation serves training and inference, one model and a whole zoo: every weight carries a
leading model axis, activations are (models, batch·length, width), and each linear map is one
batched product. A model alone is simply `models = 1`.

With c the conditioning vector, and a shift s, a scale a and a gate g linear in c (adaLN) for each
of the two branches of a block:

    x ← x + g₁·drop(out(attend(rotary(qkv(norm(x)·(1 + a₁) + s₁)))))
    x ← x + g₂·drop(mlp(norm(x)·(1 + a₂) + s₂))

The end of one branch and the norm that begins the next are computed together (`residual_norm`). The
residual stream, the norms and the embedding are float32; the products run in the dtype of the
matrices: float32 on a CPU, bfloat16 in training and float16 in inference on an accelerator. Without
time conditioning c is the image of σ = 0, one learned constant, as in the public model.
"""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from maskwalk.denoisers.network.attention import attend
from maskwalk.denoisers.network.dropout import Dropout
from maskwalk.denoisers.network.embed import embed
from maskwalk.denoisers.network.product import on_a_cpu, product_on_a_cpu
from maskwalk.denoisers.network.weights import FREQUENCIES, DDiTConfig, Weights


class _Product(torch.autograd.Function):
    """x·Wᵀ per model; the gradient of W comes out in W's own shape, so that it needs no copy."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.bmm(x, weight.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        gradient = gradients[0]
        return torch.bmm(gradient, weight), torch.bmm(gradient.transpose(1, 2), x)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x·Wᵀ + b per model; x is (models, rows, inputs), in the weight's dtype."""
    x = x.to(weight.dtype)
    if on_a_cpu(x):
        out = product_on_a_cpu(x, weight)
    else:
        product: Any = _Product.apply  # untyped in PyTorch
        out = product(x, weight)
    return out if bias is None else out + bias[:, None]


class Modulation(NamedTuple):
    """What the conditioning does: h = norm(x)·factor + shift at every norm, and every gate.

    Norms are numbered 0, 1 (first block), 2, 3 (second), …, and last the output layer's; gate n
    belongs to the branch that begins at norm n. Without time conditioning the batch axis is 1.
    """

    factor: tuple[Float[Tensor, "models batch hidden"], ...]
    shift: tuple[Float[Tensor, "models batch hidden"], ...]
    gate: tuple[Float[Tensor, "models batch hidden"], ...]


def modulations(
    config: DDiTConfig, weights: Weights, sigma: Float[Tensor, "models batch"] | None = None
) -> Modulation:
    """The modulation at noise level σ (0 if None), in float32."""
    if sigma is None:
        sigma = weights["norms"].new_zeros(len(weights["norms"]), 1)
    half = FREQUENCIES // 2
    rates = torch.exp(-math.log(10_000.0) * torch.arange(half, device=sigma.device) / half)
    angles = sigma[..., None] * rates
    c = torch.cat([angles.cos(), angles.sin()], dim=-1)
    c = F.silu(linear(c, weights["sigma_map.mlp.0.weight"], weights["sigma_map.mlp.0.bias"]))
    c = F.silu(linear(c, weights["sigma_map.mlp.2.weight"], weights["sigma_map.mlp.2.bias"]))
    all_at_once = linear(c, weights["adaLN.weight"], weights["adaLN.bias"]).float()
    # Rows come as shift, scale, gate, shift, scale, gate, …, and end with shift, scale.
    chunks = all_at_once.view(*c.shape[:2], -1, config.hidden)
    factor = weights["norms"][:, None] * (1 + chunks[:, :, 1::3])
    return Modulation(factor.unbind(2), chunks[:, :, 0::3].unbind(2), chunks[:, :, 2::3].unbind(2))


def residual_norm(
    x: Float[Tensor, "models batch length hidden"],
    branch: Float[Tensor, "models rows hidden"] | None,
    bias: Float[Tensor, "models hidden"] | None,
    modulation: Modulation,
    norm: int,
    drop: Dropout | None,
    dtype: torch.dtype,
) -> tuple[Tensor, Float[Tensor, "models rows hidden"]]:
    """Ends the branch before norm number `norm` (if any) and applies that norm: (x, h)."""
    models, _, length, hidden = x.shape
    factor, shift = modulation.factor[norm], modulation.shift[norm]
    if _fusable(x, dtype) and factor.shape[1] == 1:
        from maskwalk.kernels.residual_norm import residual_norm as fused

        new, h = fused(
            x.view(models, -1, hidden),
            branch,
            bias,
            modulation.gate[norm - 1][:, 0] if branch is not None else None,
            factor[:, 0],
            shift[:, 0],
            *(
                (drop.keys, drop.threshold, drop.scale)
                if drop and branch is not None
                else (None,) * 3
            ),
            drop.first * length * hidden if drop else 0,
            norm - 1,
            norm == len(modulation.factor) - 1,
            dtype,
        )
        return (x if branch is None else new.view(x.shape)), h
    if drop is None and not torch.is_grad_enabled():
        return _in_place(x, branch, bias, modulation, norm, dtype)
    if branch is not None:
        y = branch.float() if bias is None else branch.float() + bias[:, None].float()
        y = y.view(x.shape)
        y = y if drop is None else drop(y, norm - 1)
        x = x + modulation.gate[norm - 1][:, :, None] * y
    h = F.layer_norm(x, (hidden,)) * factor[:, :, None] + shift[:, :, None]
    return x, h.to(dtype).view(models, -1, hidden)


def _in_place(
    x: Tensor,
    branch: Tensor | None,
    bias: Tensor | None,
    modulation: Modulation,
    norm: int,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """The same numbers without gradients, in the memory of what is used up."""
    if branch is not None:
        y = branch.float() if bias is None else branch.float().add_(bias[:, None].float())
        x = y.view(x.shape).mul_(modulation.gate[norm - 1][:, :, None]).add_(x)
    h = F.layer_norm(x, x.shape[-1:])
    h = h.mul_(modulation.factor[norm][:, :, None]).add_(modulation.shift[norm][:, :, None])
    return x, h.to(dtype).view(x.shape[0], -1, x.shape[-1])


def _fusable(x: Tensor, dtype: torch.dtype) -> bool:
    """The fused kernels hold a row in one power-of-two tile."""
    hidden = x.shape[-1]
    return x.is_cuda and dtype != torch.float32 and hidden >= 64 and hidden & (hidden - 1) == 0


def mlp(x: Tensor, h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """GELU(h·Wᵀ + b), the first half of a block's MLP."""
    if _fusable(x, weight.dtype) and len(x) == 1 and not torch.is_grad_enabled():
        # One model without gradients: the product's own kernel can do all of it.
        return torch._addmm_activation(bias[0], h[0], weight[0].t(), use_gelu=True)[None]
    z = linear(h, weight)
    if _fusable(x, weight.dtype):
        from maskwalk.kernels.gelu import gelu

        out: Tensor = gelu(z, bias)
        return out
    z = z + bias[:, None] if torch.is_grad_enabled() else z.add_(bias[:, None])
    return F.gelu(z, approximate="tanh")


def hidden_states(
    config: DDiTConfig,
    weights: Weights,
    tokens: Int[Tensor, "models batch length"],
    angles: Float[Tensor, "2 span half"],
    modulation: Modulation,
    drop: Dropout | None = None,
) -> Float[Tensor, "models rows hidden"]:
    """What the output layer reads, for every position: rows = batch·length.

    `angles` is the rotary table of the configuration (`config.angles`), `modulation` what
    `modulations` made of the conditioning. A causal network reads the tokens one place later, so
    that here too the state at a position speaks of the token there.
    """
    models, batch, length = tokens.shape
    x, mixed = before_last(config, weights, tokens, angles, modulation, drop)
    h = last_states(config, weights, x, mixed, modulation, drop)
    if config.ends:
        h = h.view(models, batch, length + 2, -1)[:, :, 1:-1].reshape(models, batch * length, -1)
    return h


def before_last(
    config: DDiTConfig,
    weights: Weights,
    tokens: Int[Tensor, "models batch length"],
    angles: Float[Tensor, "2 span half"],
    modulation: Modulation,
    drop: Dropout | None = None,
) -> tuple[Float[Tensor, "models batch span hidden"], Float[Tensor, "models rows hidden"]]:
    """The residual stream before the last block, and what attention makes of it there.

    It is the last time that places look at each other: the rest is done for each by itself.
    """
    models, batch, _ = tokens.shape
    if config.ends:
        begin = torch.full_like(tokens[..., :1], config.vocab_size + 1)
        tokens = torch.cat([begin, tokens, begin + 1], dim=-1)
    elif config.causal:
        begin = torch.full_like(tokens[..., :1], config.mask_id)
        tokens = torch.cat([begin, tokens[..., :-1]], dim=-1)
    span, dtype = tokens.shape[-1], weights["output_layer.linear.bias"].dtype
    embedded = embed(weights["vocab_embed.embedding"], tokens.reshape(models, -1), dtype)
    x: Tensor = embedded.view(models, batch, span, config.hidden)
    x, h = residual_norm(x, None, None, modulation, 0, drop, dtype)
    for n in range(config.blocks):
        qkv = linear(h, weights[f"blocks.{n}.attn_qkv.weight"]).view(models * batch, span, -1)
        mixed = attend(qkv, config.heads, angles, config.causal)
        mixed = mixed.view(models, batch * span, -1)
        if n < config.blocks - 1:
            x, h = _after_attention(weights, n, x, mixed, modulation, drop, dtype)
    return x, mixed


def last_states(
    config: DDiTConfig,
    weights: Weights,
    x: Float[Tensor, "models batch span hidden"],
    mixed: Float[Tensor, "models rows hidden"],
    modulation: Modulation,
    drop: Dropout | None = None,
) -> Float[Tensor, "models rows hidden"]:
    """What the output layer reads at these places, from what `before_last` says of them."""
    dtype = weights["output_layer.linear.bias"].dtype
    return _after_attention(weights, config.blocks - 1, x, mixed, modulation, drop, dtype)[1]


def _after_attention(
    weights: Weights,
    n: int,
    x: Tensor,
    mixed: Tensor,
    modulation: Modulation,
    drop: Dropout | None,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """The rest of block n: (the residual stream, the next norm of it)."""
    w = f"blocks.{n}"
    branch = linear(mixed, weights[f"{w}.attn_out.weight"])
    x, h = residual_norm(x, branch, None, modulation, 2 * n + 1, drop, dtype)
    inner = mlp(x, h, weights[f"{w}.mlp.0.weight"], weights[f"{w}.mlp.0.bias"])
    branch = linear(inner, weights[f"{w}.mlp.2.weight"])
    bias = weights[f"{w}.mlp.2.bias"]
    return residual_norm(x, branch, bias, modulation, 2 * n + 2, drop, dtype)


def output_map(config: DDiTConfig, weights: Weights) -> Float[Tensor, "models rows hidden"]:
    """The last linear map, in the matrices' dtype."""
    if not config.tied:
        return weights["output_layer.linear.weight"]
    return weights["vocab_embed.embedding"].to(weights["output_layer.linear.bias"].dtype)


def logits(
    config: DDiTConfig,
    weights: Weights,
    hidden: Float[Tensor, "models rows hidden"],
    single: bool = False,
) -> tuple[Float[Tensor, "models rows padded"], Float[Tensor, "models padded"]]:
    """Logits of the clean tokens without their bias, and the bias; the mask has none.

    Both are padded to a multiple of 8 columns, which keeps rows aligned for fast kernels: only the
    first `vocab_size` count. They come in the matrices' dtype, the logits (`single`, without
    gradients) in float32.
    """
    extra = -(-config.vocab_size // 8) * 8 - config.vocab_size
    weight = F.pad(output_map(config, weights)[:, : config.vocab_size], (0, 0, 0, extra))
    bias = F.pad(weights["output_layer.linear.bias"][:, : config.vocab_size], (0, extra))
    if not single or weight.dtype == torch.float32:
        return linear(hidden, weight), bias
    out = torch.bmm(hidden.to(weight.dtype), weight.transpose(1, 2), out_dtype=torch.float32)
    return out, bias
