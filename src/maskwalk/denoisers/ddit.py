"""The paper's denoising transformer (DDiT), for one model or many at once.

One implementation serves training and inference, one model and a whole zoo: every weight carries a
leading model axis, activations are (models, batch, length, width), and each linear map is one
batched product. A model alone is simply `models = 1`.

All weights of a model lie in one row of a flat buffer (models, size); names and shapes are views
into it, under the keys of the public MDLM checkpoints [Sahoo et al., NeurIPS 2024] without their
`backbone.` prefix. So an optimiser step is one elementwise pass, a gradient norm one row sum, a
checkpoint a handful of tensors, and a gradient exchange one message.

A block, with c the conditioning vector and (a₁, b₁, g₁, a₂, b₂, g₂) linear in c (adaLN):

    x ← x + g₁ · drop(out(attend(rotary(qkv(norm(x)·(1 + a₁) + b₁)))))
    x ← x + g₂ · drop(mlp(norm(x)·(1 + a₂) + b₂))

The residual stream, the norms and the embedding are float32; the products run in the dtype of the
matrices (float32 on a CPU, bfloat16 in training and float16 in inference on an accelerator).
Without time conditioning c is the image of σ = 0, one learned constant, as in the public model.
"""

import math
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from maskwalk.denoisers.attention import attend, rotation
from maskwalk.denoisers.dropout import Dropout
from maskwalk.draws import Purpose, block_uniforms
from maskwalk.errors import MaskwalkError, whole

FREQUENCIES = 256  # width of the sinusoidal embedding of σ
ALIGN = 64  # elements: keeps every weight on a 128-byte boundary, as fast matrix kernels want
Weights = dict[str, Tensor]


@dataclass(frozen=True)
class DDiTConfig:
    """The shape of a network. The default is the paper's `tiny-tiny` on 500 nodes."""

    vocab_size: int = 500
    length: int = 24
    hidden: int = 256
    cond: int = 64
    blocks: int = 4
    heads: int = 4
    time_conditioning: bool = False
    ends: bool = False  # wraps every walk in a begin and an end token, both always visible

    def __post_init__(self) -> None:
        for name in ("vocab_size", "length", "hidden", "cond", "blocks", "heads"):
            whole(name, getattr(self, name), 1)
        if self.hidden % (2 * self.heads):
            raise MaskwalkError(
                f"hidden must be a multiple of twice the heads (rotary positions turn pairs), "
                f"not {self.hidden} with {self.heads} heads."
            )

    @property
    def mask_id(self) -> int:
        """The token of a masked position."""
        return self.vocab_size

    @property
    def rows(self) -> int:
        """Tokens the network can read: clean, mask, and the two ends where there are any."""
        return self.vocab_size + (3 if self.ends else 1)

    @property
    def parameters(self) -> int:
        """How many numbers a model has."""
        return sum(math.prod(shape) for _, shape, _ in _shapes(self))

    def angles(self, length: int, device: torch.device | str) -> Float[Tensor, "2 span half"]:
        """The rotary table for walks of this length, on a device."""
        span = length + (2 if self.ends else 0)
        return rotation(span, self.hidden // self.heads // 2).to(device)

    def to_json(self) -> dict[str, Any]:
        """What a model file keeps beside the weights."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "DDiTConfig":
        """The configuration a model file describes."""
        unexpected = set(values) - set(cls.__dataclass_fields__)
        if unexpected:
            raise MaskwalkError(
                f"The network configuration has unknown entries: {', '.join(sorted(unexpected))}."
            )
        return cls(**values)


# The public MDLM model: GPT-2's vocabulary and a mask, 1,024 tokens.
MDLM = DDiTConfig(vocab_size=50_257, length=1024, hidden=768, cond=128, blocks=12, heads=12)


def _shapes(config: DDiTConfig) -> list[tuple[str, tuple[int, ...], float]]:
    """(name, shape, bound) of every weight, matrices first; initially U(-bound, bound).

    Bounds are those of PyTorch's linear layers, 1/√(inputs); 0 marks the zero-initialised maps
    and -1 the norms, which start at one.
    """
    d, c = config.hidden, config.cond
    matrices: list[tuple[str, tuple[int, ...], float]] = []
    singles: list[tuple[str, tuple[int, ...], float]] = [
        ("vocab_embed.embedding", (config.rows, d), d**-0.5),
        ("sigma_map.mlp.0.weight", (c, FREQUENCIES), FREQUENCIES**-0.5),
        ("sigma_map.mlp.0.bias", (c,), FREQUENCIES**-0.5),
        ("sigma_map.mlp.2.weight", (c, c), c**-0.5),
        ("sigma_map.mlp.2.bias", (c,), c**-0.5),
    ]
    for n in range(config.blocks):
        matrices += [
            (f"blocks.{n}.attn_qkv.weight", (3 * d, d), d**-0.5),
            (f"blocks.{n}.attn_out.weight", (d, d), d**-0.5),
            (f"blocks.{n}.mlp.0.weight", (4 * d, d), d**-0.5),
            (f"blocks.{n}.mlp.0.bias", (4 * d,), d**-0.5),
            (f"blocks.{n}.mlp.2.weight", (d, 4 * d), (4 * d) ** -0.5),
            (f"blocks.{n}.mlp.2.bias", (d,), (4 * d) ** -0.5),
            (f"blocks.{n}.adaLN_modulation.weight", (6 * d, c), 0.0),
            (f"blocks.{n}.adaLN_modulation.bias", (6 * d,), 0.0),
        ]
        singles += [(f"blocks.{n}.norm{k}.weight", (d,), -1.0) for k in (1, 2)]
    matrices += [
        ("output_layer.linear.weight", (config.rows, d), 0.0),
        ("output_layer.linear.bias", (config.rows,), 0.0),
        ("output_layer.adaLN_modulation.weight", (2 * d, c), 0.0),
        ("output_layer.adaLN_modulation.bias", (2 * d,), 0.0),
    ]
    singles.append(("output_layer.norm_final.weight", (d,), -1.0))
    # The matrices, which the compute dtype applies to, come first; then what stays float32.
    return [*matrices, *singles]


@dataclass(frozen=True)
class Layout:
    """Where each weight lies in a model's row; the first `matrices` numbers may be narrower."""

    shapes: dict[str, tuple[int, ...]]
    bounds: dict[str, float]
    spans: list[int]  # each weight's length with its padding
    cut: int  # how many of the weights are matrices

    @property
    def matrices(self) -> int:
        """The length of the part that the compute dtype applies to."""
        return sum(self.spans[: self.cut])

    @property
    def size(self) -> int:
        """The length of a row."""
        return sum(self.spans)

    def named(self, matrices: Tensor, singles: Tensor) -> Weights:
        """Named weights, (models, …) each, from the two parts of the rows."""
        # `split`, not slices: its gradient is one concatenation, which kernels write in place.
        pieces = [
            *matrices.split(self.spans[: self.cut], dim=1),
            *singles.split(self.spans[self.cut :], dim=1),
        ]
        return {
            name: piece[:, : math.prod(shape)].view(len(piece), *shape)
            for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)
        }

    def parts(self, flat: Float[Tensor, "models size"]) -> tuple[Tensor, Tensor]:
        """The matrices and what stays float32."""
        return flat[:, : self.matrices], flat[:, self.matrices :]

    def __call__(self, flat: Float[Tensor, "models size"]) -> Weights:
        """Named weights as views of the rows, all in the rows' own dtype."""
        return self.named(*self.parts(flat))

    def pack(self, weights: Weights) -> Float[Tensor, "models size"]:
        """The rows that hold these weights (models, …), float32; refuses what does not fit."""
        check_names(set(self.shapes), set(weights))
        models = len(next(iter(weights.values())))
        flat = torch.zeros(models, self.size)
        for name, view in self(flat).items():
            if view.shape != weights[name].shape:
                raise MaskwalkError(
                    f"Weight {name} has shape {tuple(weights[name].shape[1:])}, where the network "
                    f"has {tuple(view.shape[1:])}: the file belongs to another configuration."
                )
            view.copy_(weights[name])
        return flat

    def initial(self, seeds: list[int]) -> Float[Tensor, "models size"]:
        """Fresh weights, a pure function of each model's seed."""
        flat = torch.zeros(len(seeds), self.size)
        for name, view in self(flat).items():
            bound = self.bounds[name]
            if bound < 0:
                view.fill_(1.0)
            elif bound > 0:
                stream = list(self.shapes).index(name)
                for model, seed in zip(view, seeds):
                    u = block_uniforms(seed, Purpose.TRAIN, 0, 1, model.numel(), stream)
                    model.copy_(torch.from_numpy((2 * u - 1) * bound).view(model.shape))
        return flat


def check_names(wanted: set[str], given: set[str]) -> None:
    """Refuses a set of weights that is not the network's."""
    missing, extra = sorted(wanted - given), sorted(given - wanted)
    if missing or extra:
        said = [f"lacks {missing[0]}"] * bool(missing) + [f"has {extra[0]}"] * bool(extra)
        raise MaskwalkError(
            f"These are not the weights of this network: the file {' and '.join(said)} "
            f"({len(missing)} missing, {len(extra)} unknown). Check the configuration beside it."
        )


@cache
def layout(config: DDiTConfig) -> Layout:
    """The layout of a configuration's rows."""
    entries = _shapes(config)
    spans = [-(-math.prod(shape) // ALIGN) * ALIGN for _, shape, _ in entries]
    return Layout(
        {name: shape for name, shape, _ in entries},
        {name: bound for name, _, bound in entries},
        spans,
        8 * config.blocks + 4,
    )


class _Embed(torch.autograd.Function):
    """Row look-up whose gradient is a product with the one-hot tokens.

    Half of a batch is the mask token: adding its gradients one by one means thousands of atomic
    additions to the same row. The product is faster, and gives the same bits every time.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, tokens: Tensor, dtype: torch.dtype) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.rows, ctx.dtype = table.shape[1], dtype
        models = torch.arange(len(table), device=table.device)[:, None]
        return table[models, tokens]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (tokens,) = ctx.saved_tensors
        gradient = gradients[0]
        padded = -(-ctx.rows // 8) * 8
        ids = torch.arange(padded, device=tokens.device)
        hot = (tokens[..., None] == ids).to(ctx.dtype)
        product = torch.bmm(hot.transpose(1, 2), gradient.to(ctx.dtype))
        return product[:, : ctx.rows].to(gradient.dtype), None, None


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x·Wᵀ + b per model; x is (models, rows, inputs), in the weight's dtype."""
    out = torch.bmm(x.to(weight.dtype), weight.transpose(1, 2))
    return out if bias is None else out + bias[:, None]


class Modulation(NamedTuple):
    """What the conditioning does at one norm: h = norm(x)·factor + shift, and the branch's gate."""

    factor: Float[Tensor, "models batch hidden"]  # batch is 1 without time conditioning
    shift: Float[Tensor, "models batch hidden"]
    gate: Float[Tensor, "models batch hidden"]  # the output layer has no branch and no use for it


def modulations(
    config: DDiTConfig, weights: Weights, sigma: Float[Tensor, "models batch"] | None = None
) -> list[Modulation]:
    """Both norms of every block, then the output layer's, in float32."""
    if sigma is None:
        sigma = weights["vocab_embed.embedding"].new_zeros(len(weights["sigma_map.mlp.0.bias"]), 1)
    half = FREQUENCIES // 2
    rates = torch.exp(-math.log(10_000.0) * torch.arange(half, device=sigma.device) / half)
    angles = sigma[..., None] * rates
    c = torch.cat([angles.cos(), angles.sin()], dim=-1)
    c = F.silu(linear(c, weights["sigma_map.mlp.0.weight"], weights["sigma_map.mlp.0.bias"]))
    c = F.silu(linear(c, weights["sigma_map.mlp.2.weight"], weights["sigma_map.mlp.2.bias"]))

    def chunks(prefix: str, count: int) -> tuple[Tensor, ...]:
        key = f"{prefix}.adaLN_modulation"
        return linear(c, weights[f"{key}.weight"], weights[f"{key}.bias"]).float().chunk(count, -1)

    def factor(name: str, scale: Tensor) -> Tensor:
        return weights[f"{name}.weight"][:, None] * (1 + scale)

    result = []
    for n in range(config.blocks):
        shift1, scale1, gate1, shift2, scale2, gate2 = chunks(f"blocks.{n}", 6)
        result.append(Modulation(factor(f"blocks.{n}.norm1", scale1), shift1, gate1))
        result.append(Modulation(factor(f"blocks.{n}.norm2", scale2), shift2, gate2))
    shift, scale = chunks("output_layer", 2)
    last = factor("output_layer.norm_final", scale)
    return [*result, Modulation(last, shift, torch.zeros_like(shift))]


def join(
    x: Float[Tensor, "models batch length hidden"],
    branch: Float[Tensor, "models rows hidden"] | None,
    bias: Float[Tensor, "models hidden"] | None,
    before: Modulation,
    after: Modulation,
    drop: Dropout | None,
    number: int,
    dtype: torch.dtype,
) -> tuple[Tensor, Float[Tensor, "models rows hidden"]]:
    """Adds a branch (if any) to the stream and normalises it for the next: (x, h)."""
    models, batch, length, hidden = x.shape
    # The fused kernel hashes 32-bit element numbers and holds a row in one power-of-two tile.
    if _fusable(x, dtype) and after.factor.shape[1] == 1:
        from maskwalk.denoisers import fused

        keys, threshold, scale = (drop.keys, drop.threshold, drop.scale) if drop else (None,) * 3
        new, h = fused.join_op(
            x.view(models, -1, hidden),
            branch,
            None if bias is None else bias.float(),
            None if branch is None else before.gate[:, 0],
            after.factor[:, 0],
            after.shift[:, 0],
            keys if branch is not None else None,
            threshold,
            scale,
            drop.first * length * hidden if drop else 0,
            number,
            dtype,
        )
        return (x if branch is None else new.view(x.shape)), h
    if branch is not None:
        y = branch.float() if bias is None else branch.float() + bias[:, None].float()
        y = y.view(x.shape)
        x = x + before.gate[:, :, None] * (y if drop is None else drop(y, number))
    h = F.layer_norm(x, (hidden,)) * after.factor[:, :, None] + after.shift[:, :, None]
    return x, h.to(dtype).view(models, -1, hidden)


def _fusable(x: Tensor, dtype: torch.dtype) -> bool:
    hidden = x.shape[-1]
    return x.is_cuda and dtype != torch.float32 and hidden >= 64 and hidden & (hidden - 1) == 0


def mlp(x: Tensor, h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """GELU(h·Wᵀ + b), the first half of a block's MLP."""
    z = linear(h, weight)
    if _fusable(x, weight.dtype):
        from maskwalk.denoisers import fused

        return fused.gelu(z, bias.float())
    return F.gelu(z + bias[:, None], approximate="tanh")


def hidden_states(
    config: DDiTConfig,
    weights: Weights,
    tokens: Int[Tensor, "models batch length"],
    angles: Float[Tensor, "2 span half"],
    modulation: list[Modulation],
    drop: Dropout | None = None,
) -> Float[Tensor, "models rows hidden"]:
    """What the output layer reads, for every position: rows = batch·length.

    `angles` is the rotary table of the configuration (`config.angles`), `modulation` what
    `modulations` made of the conditioning.
    """
    models, batch, length = tokens.shape
    if config.ends:
        begin = torch.full_like(tokens[..., :1], config.vocab_size + 1)
        tokens = torch.cat([begin, tokens, begin + 1], dim=-1)
    span, dtype = tokens.shape[-1], weights["output_layer.linear.weight"].dtype
    embedded = _Embed.apply(weights["vocab_embed.embedding"], tokens.reshape(models, -1), dtype)
    x: Tensor = embedded.view(models, batch, span, config.hidden)
    x, h = join(x, None, None, modulation[0], modulation[0], drop, 0, dtype)
    for n in range(config.blocks):
        w = f"blocks.{n}"
        first, second, third = modulation[2 * n : 2 * n + 3]
        qkv = linear(h, weights[f"{w}.attn_qkv.weight"]).view(models * batch, span, -1)
        mixed = attend(qkv, config.heads, angles).view(models, batch * span, -1)
        branch = linear(mixed, weights[f"{w}.attn_out.weight"])
        x, h = join(x, branch, None, first, second, drop, 2 * n, dtype)
        inner = mlp(x, h, weights[f"{w}.mlp.0.weight"], weights[f"{w}.mlp.0.bias"])
        branch = linear(inner, weights[f"{w}.mlp.2.weight"])
        x, h = join(x, branch, weights[f"{w}.mlp.2.bias"], second, third, drop, 2 * n + 1, dtype)
    if config.ends:
        h = h.view(models, batch, span, -1)[:, :, 1:-1].reshape(models, batch * length, -1)
    return h


def logits(
    config: DDiTConfig,
    weights: Weights,
    hidden: Float[Tensor, "models rows hidden"],
    single: bool = False,
) -> Float[Tensor, "models rows padded"]:
    """Logits of the clean tokens, padded to a multiple of 8 columns; the mask has none.

    The padding keeps rows aligned for fast kernels: read only the first `vocab_size` columns. They
    come in the matrices' dtype, or (`single`, without gradients) in float32.
    """
    extra = -(-config.vocab_size // 8) * 8 - config.vocab_size
    weight = F.pad(weights["output_layer.linear.weight"][:, : config.vocab_size], (0, 0, 0, extra))
    bias = F.pad(weights["output_layer.linear.bias"][:, : config.vocab_size], (0, extra))
    if not single or weight.dtype == torch.float32:
        return linear(hidden, weight, bias)
    product = torch.bmm(hidden.to(weight.dtype), weight.transpose(1, 2), out_dtype=torch.float32)
    return product + bias[:, None]
