"""The shape of a network, and its weights: named, flat, and fresh.

All weights of a model lie in one row of a flat buffer (models, size), so an optimiser step is one
elementwise pass, a gradient norm one row sum, and a gradient exchange one message. Files use the
keys of the public MDLM checkpoints [Sahoo et al., NeurIPS 2024] without their `backbone.` prefix;
in the buffer, maps that read the same input are stacked into one (`groups`).
"""

import math
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from maskwalk import reading
from maskwalk.denoisers.network.attention import rotation
from maskwalk.denoisers.network.outputs import OUTPUTS, PLAIN, Output
from maskwalk.errors import MaskwalkError, whole
from maskwalk.reading import flag, table, text
from maskwalk.streams import Purpose, block_uniforms

FREQUENCIES = 256  # width of the sinusoidal embedding of σ
ALIGN = 64  # numbers: keeps every group on a 128-byte boundary, as fast matrix kernels want
Weights = dict[str, Tensor]  # name -> (models, …)
LARGEST = {  # of a network's sizes; beyond these a file is damaged, not a model
    "vocab_size": 10_000_000,
    "length": 1_000_000,
    "hidden": 65_536,
    "cond": 65_536,
    "blocks": 1_000,
    "heads": 1_024,
}
FLAGS = ("time_conditioning", "ends", "causal", "tied")
CONFIG = table(
    {name: reading.whole(1, most) for name, most in LARGEST.items()}
    | dict.fromkeys(FLAGS, flag)
    | {"output": text(1, 200)},
    others=None,
    what="a table of the network's sizes",
)


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
    causal: bool = False  # predicts every token from those before it; the mask begins the text
    tied: bool = False  # the output map is the embedding, as is usual for large vocabularies
    output: str = PLAIN  # how logits become marginals, and what is learned (outputs/)

    def __post_init__(self) -> None:
        for name, most in LARGEST.items():
            whole(name, getattr(self, name), 1, most)
        for name in FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise MaskwalkError(f"{name} must be true or false, not {getattr(self, name)!r}.")
        if self.hidden % (2 * self.heads):
            raise MaskwalkError(
                f"hidden must be a multiple of twice the heads (rotary positions turn pairs), "
                f"not {self.hidden} with {self.heads} heads."
            )
        if self.causal and (self.ends or self.time_conditioning):
            raise MaskwalkError("A causal network has no end tokens and no time conditioning.")
        object.__setattr__(self, "output", OUTPUTS.canonical(self.output))
        self.head.check(self)

    @property
    def head(self) -> Output:
        """What stands behind the logits."""
        return OUTPUTS.build(self.output)

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
        first, second = _groups(self)
        return sum(math.prod(group.shape) for group in (first | second).values())

    def angles(self, length: int, device: torch.device | str) -> Float[Tensor, "2 span half"]:
        """The rotary table for walks of this length, on a device."""
        span = length + (2 if self.ends else 0)
        return rotation(span, self.hidden // self.heads // 2).to(device)

    def to_json(self) -> dict[str, Any]:
        """What a model file keeps beside the weights; the usual output is not named."""
        values = asdict(self)
        return {k: v for k, v in values.items() if (k, v) != ("output", PLAIN)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "DDiTConfig":
        """The configuration a model file describes (its shape was checked where it was read)."""
        other = sorted(set(values) - {*LARGEST, *FLAGS, "output"})
        if other:
            raise MaskwalkError(f"The network's config has unknown entries: {', '.join(other)}.")
        return cls(**values)


# The public MDLM model: GPT-2's vocabulary and a mask, 1,024 tokens.
MDLM = DDiTConfig(vocab_size=50_257, length=1024, hidden=768, cond=128, blocks=12, heads=12)


@dataclass(frozen=True)
class Group:
    """Weights that lie together: `members` are their names in files, with their shapes."""

    shape: tuple[int, ...]
    members: dict[str, tuple[int, ...]]
    bound: float  # initially uniform on (-bound, bound); 0 starts at zero and -1 at one

    @property
    def span(self) -> int:
        """Numbers in the buffer, with padding."""
        return -(-math.prod(self.shape) // ALIGN) * ALIGN


def _groups(config: DDiTConfig) -> tuple[dict[str, Group], dict[str, Group]]:
    """(the matrices and their biases, which may be narrow; what stays float32), by group.

    Bounds are those of PyTorch's linear layers, 1/√(inputs); the adaptive modulation and the output
    start at zero, the norms at one. What belongs to an output comes last.
    """
    d, c, b, v = config.hidden, config.cond, config.blocks, config.rows
    layers = [*(f"blocks.{n}" for n in range(b)), "output_layer"]
    norms = [f"blocks.{n}.norm{k}" for n in range(b) for k in (1, 2)] + ["output_layer.norm_final"]

    def one(name: str, shape: tuple[int, ...], bound: float) -> dict[str, Group]:
        return {name: Group(shape, {name: shape}, bound)}

    def adaptive(kind: str, *inputs: int) -> Group:
        rows = {layer: (6 if layer != "output_layer" else 2) * d for layer in layers}
        members = {f"{k}.adaLN_modulation.{kind}": (r, *inputs) for k, r in rows.items()}
        return Group((sum(rows.values()), *inputs), members, 0.0)

    matrices: dict[str, Group] = {}
    extra: dict[str, Group] = {}
    for n in range(b):
        matrices |= one(f"blocks.{n}.attn_qkv.weight", (3 * d, d), d**-0.5)
        matrices |= one(f"blocks.{n}.attn_out.weight", (d, d), d**-0.5)
        matrices |= one(f"blocks.{n}.mlp.0.weight", (4 * d, d), d**-0.5)
        matrices |= one(f"blocks.{n}.mlp.0.bias", (4 * d,), d**-0.5)
        matrices |= one(f"blocks.{n}.mlp.2.weight", (d, 4 * d), (4 * d) ** -0.5)
        matrices |= one(f"blocks.{n}.mlp.2.bias", (d,), (4 * d) ** -0.5)
    if not config.tied:
        matrices |= one("output_layer.linear.weight", (v, d), 0.0)
    matrices |= one("output_layer.linear.bias", (v,), 0.0)
    matrices |= {"adaLN.weight": adaptive("weight", c), "adaLN.bias": adaptive("bias")}
    singles = one("vocab_embed.embedding", (v, d), d**-0.5)
    singles |= one("sigma_map.mlp.0.weight", (c, FREQUENCIES), FREQUENCIES**-0.5)
    singles |= one("sigma_map.mlp.0.bias", (c,), FREQUENCIES**-0.5)
    singles |= one("sigma_map.mlp.2.weight", (c, c), c**-0.5)
    singles |= one("sigma_map.mlp.2.bias", (c,), c**-0.5)
    for name, (shape, bound) in config.head.extra(config.vocab_size).items():
        extra |= one(name, shape, bound)
    members: dict[str, tuple[int, ...]] = {f"{name}.weight": (d,) for name in norms}
    return matrices, singles | {"norms": Group((len(norms), d), members, -1.0)} | extra


@dataclass(frozen=True)
class Layout:
    """Where each group lies in a model's row: first the matrices, then the rest."""

    first: dict[str, Group]
    second: dict[str, Group]

    @property
    def matrices(self) -> int:
        """The length of the part that may be held in a narrower dtype."""
        return sum(group.span for group in self.first.values())

    @property
    def size(self) -> int:
        """The length of a row."""
        return self.matrices + sum(group.span for group in self.second.values())

    def parts(self, flat: Float[Tensor, "models size"]) -> tuple[Tensor, Tensor]:
        """The matrices' part of the rows, and the rest."""
        return flat[:, : self.matrices], flat[:, self.matrices :]

    def grouped(self, matrices: Tensor, singles: Tensor) -> Weights:
        """The groups, (models, …) each, as views of the two parts: what the network reads."""
        result = {}
        for part, groups in ((matrices, self.first), (singles, self.second)):
            # `split`, not slices: its gradient is one concatenation, which kernels write in place.
            pieces = part.split([group.span for group in groups.values()], dim=1)
            for (name, group), piece in zip(groups.items(), pieces):
                count = math.prod(group.shape)
                piece = piece if count == group.span else piece[:, :count]
                result[name] = piece.view(len(part), *group.shape)
        return result

    def named(self, flat: Float[Tensor, "models size"]) -> Weights:
        """Every weight under its name in files, (models, …) each, as views of the rows."""
        result, groups = {}, self.first | self.second
        for name, view in self.grouped(*self.parts(flat)).items():
            rest = view.view(len(flat), -1)
            for member, shape in groups[name].members.items():
                count = math.prod(shape)
                result[member] = rest[:, :count].view(len(flat), *shape)
                rest = rest[:, count:]
        return result

    def pack(self, weights: Weights) -> Float[Tensor, "models size"]:
        """The rows that hold these weights (models, …), float32; refuses what does not fit."""
        one = next(iter(weights.values()), torch.empty(0))
        flat = torch.zeros(len(one), self.size, device=one.device)
        wanted = self.named(flat)
        missing, extra = sorted(set(wanted) - set(weights)), sorted(set(weights) - set(wanted))
        if missing or extra:
            faults = [f"lacks {name}" for name in missing[:1]] + [
                f"has {name}" for name in extra[:1]
            ]
            raise MaskwalkError(
                f"These are not the weights of this network: the file {' and '.join(faults)} "
                f"({len(missing)} missing, {len(extra)} unknown). Check the configuration."
            )
        for name, view in wanted.items():
            if view.shape != weights[name].shape:
                raise MaskwalkError(
                    f"Weight {name} has shape {tuple(weights[name].shape[1:])}, where the network "
                    f"has {tuple(view.shape[1:])}: it belongs to another configuration."
                )
            view.copy_(weights[name])
        return flat

    def initial(self, seeds: list[int]) -> Float[Tensor, "models size"]:
        """Fresh weights, a pure function of each model's seed."""
        flat = torch.zeros(len(seeds), self.size)
        groups = list((self.first | self.second).values())
        for stream, (view, group) in enumerate(
            zip(self.grouped(*self.parts(flat)).values(), groups)
        ):
            if group.bound < 0:
                view.fill_(1.0)
            elif group.bound > 0:
                for model, seed in zip(view, seeds):
                    u = block_uniforms(seed, Purpose.TRAIN, 0, 1, model.numel(), stream)
                    model.copy_(torch.from_numpy((2 * u - 1) * group.bound).view(model.shape))
        return flat


@cache
def layout(config: DDiTConfig) -> Layout:
    """The layout of a configuration's rows."""
    return Layout(*_groups(config))
