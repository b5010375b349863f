"""Is a model one law? The log-probability of a text along several orders.

A law gives a text the same probability in whatever order its conditionals are multiplied,

    log p(x) = Σ_j log p(x_σ(j) | x_σ(1), …, x_σ(j−1))        for every order σ,

and a network that answers one masked position at a time need not. With K random orders of a text

    variance    of log p over orders, unbiased, averaged over texts: 0 for a consistent law
    gap         mean of −log p_σ less −log of the mean of p_σ: what one order loses to all of them

The same of blocks: a part U of a text is revealed, a block B is drawn. Together in one call that
costs −Σ_{i∈B} log p(x_i | x_U), one after another, in the order σ, −log p_σ(x_B | x_U). The
difference is what the block's dependence is worth on this text under the model (over texts that
the model itself wrote its mean is the total correlation of B given U); its variance over orders
says how far the model agrees with itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from maskwalk.analysis.paths import Paths
from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError, one_of, real, whole
from maskwalk.stats import Estimate, plain_mean
from maskwalk.streams import Purpose, block_uniforms

LAYOUTS = ("neighbours", "scattered")


@dataclass(frozen=True, eq=False)
class Orders:
    """−log p of texts along orders; `alone` where their tokens are drawn together in one call."""

    nats: Float64[Tensor, "orders texts"]
    alone: Float64[Tensor, " texts"] | None = None

    def __post_init__(self) -> None:
        if len(self.nats) < 2:
            raise MaskwalkError("A variance over orders needs at least two of them.")

    @classmethod
    def of_paths(cls, paths: Paths) -> "Orders":
        """Those of whole texts, from the paths of a random order one at a time."""
        return cls(paths.nats)

    @property
    def variance(self) -> Estimate:
        """Of log p over orders, in nats², averaged over texts."""
        return plain_mean(self.nats.var(0))

    @property
    def sd(self) -> Estimate:
        """Its root, in nats; the error is that of its linearised term."""
        found = self.variance
        root = sqrt(found.value)
        return Estimate(root, found.se / (2 * root) if root else 0.0, found.n)

    @property
    def gap(self) -> Estimate:
        """What one order loses to the mean of all, in nats."""
        mixed = Paths(self.nats, self.nats[0], True).over()
        return plain_mean(self.nats.mean(0) - mixed)

    @property
    def cost(self) -> Estimate:
        """−log p of a text, the mean over orders."""
        return plain_mean(self.nats.mean(0))

    @property
    def dependence(self) -> Estimate | None:
        """What a block loses if its tokens are drawn together: the mean over orders and texts."""
        return None if self.alone is None else plain_mean(self.alone - self.nats.mean(0))

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        parts = {"nats": self.cost, "variance": self.variance, "sd": self.sd, "gap": self.gap}
        found = {name: part.as_dict() for name, part in parts.items()}
        if self.dependence is not None:
            found["dependence"] = self.dependence.as_dict()
        return found | {"orders": len(self.nats)}


def block_orders(
    denoiser: Denoiser,
    tokens: Int[Tensor, "texts length"],
    given: Bool[Tensor, "texts length"],  # the same places in every text
    block: int,
    orders: int,
    *,
    layout: str = "neighbours",
    revealed: float = 0.5,
    seed: int = 0,
    batch: int = 256,
    device: str = "cpu",
    told: Callable[[int], object] = lambda _: None,
) -> Orders:
    """A block of every text along random orders, with a share of the other tokens revealed."""
    whole("orders", orders, 2)
    shown, chosen = blocks(given, block, layout, revealed, seed)
    count, width = chosen.shape
    turns = _shuffled(seed, 3, count * orders, width).view(count, orders, width)
    ordered = chosen[:, None].expand(-1, orders, -1).gather(2, turns)  # text, order, step
    base = torch.where(shown | given, tokens, denoiser.mask_id)
    how = (batch, device, told)
    alone = _asked(denoiser, base, tokens, torch.arange(count)[:, None], chosen, *how)
    steps = []
    canvas = base.repeat_interleave(orders, 0)
    texts = tokens.repeat_interleave(orders, 0)
    every = torch.arange(count * orders)
    for step in ordered.flatten(0, 1).unbind(1):
        steps.append(_asked(denoiser, canvas, texts, every[:, None], step[:, None], *how))
        canvas[every, step] = texts[every, step]
    chain = torch.stack(steps, -1).sum((-1, -2)).view(count, orders)
    return Orders(chain.T.contiguous(), alone.sum(1))


def _asked(
    denoiser: Denoiser,
    canvas: Tensor,
    tokens: Tensor,
    rows: Tensor,
    places: Tensor,
    batch: int,
    device: str,
    told: Callable[[int], object],
) -> Float64[Tensor, "rows places"]:
    """−log p of the texts' own tokens at some places of each row, `batch` rows at a time."""
    at = torch.zeros_like(canvas, dtype=torch.bool)
    at[rows, places] = True
    costs = torch.zeros(canvas.shape, dtype=torch.float64)
    for some in torch.arange(len(canvas)).split(batch):
        row, place = at[some].nonzero(as_tuple=True)
        answers = denoiser(canvas[some].to(device), at[some].to(device))
        own = tokens[some][row, place].to(device)
        costs[some[row], place] = -answers.gather(1, own[:, None])[:, 0].double().cpu()
        told(len(some))
    return costs.gather(1, places)


def blocks(
    given: Bool[Tensor, "texts length"], block: int, layout: str, revealed: float, seed: int
) -> tuple[Bool[Tensor, "texts length"], Int[Tensor, "texts block"]]:
    """(what is revealed, the block's places), drawn for every text by its number."""
    one_of("layout", layout, LAYOUTS)
    real("revealed", revealed, 0.0, 1.0)
    free = ~given[0]
    if not bool((given == given[0]).all()):
        raise MaskwalkError("Texts with different given places have no common blocks.")
    room = int(free.sum())
    whole("block", block, 2, room)
    places = free.nonzero()[:, 0]
    count = len(given)
    if layout == "neighbours":
        first = block_uniforms(seed, Purpose.METRIC, 0, count, 1, stream=1)[:, 0]
        start = torch.from_numpy(np.floor(first * (room - block + 1)).astype(np.int64))
        chosen = places[start[:, None] + torch.arange(block)]
    else:
        chosen = places[_shuffled(seed, 1, count, room)[:, :block]]
    order = _shuffled(seed, 2, count, room)
    rest = torch.ones_like(given)
    rest.scatter_(1, chosen, False)
    rest &= ~given
    rank = torch.zeros(given.shape, dtype=torch.int64)
    rank[:, places] = order.argsort(1)
    rank.masked_fill_(~rest, given.shape[1] + room)
    kept = round(revealed * (room - block))
    return rest & (rank.argsort(1).argsort(1) < kept), chosen


def _shuffled(seed: int, stream: int, count: int, width: int) -> Int[Tensor, "count width"]:
    """A random order of 0..width-1 for every row, by its number."""
    u = block_uniforms(seed, Purpose.METRIC, 0, count, width, stream=stream)
    return torch.from_numpy(u.argsort(1))
