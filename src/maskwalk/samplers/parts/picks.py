"""What several rules share: confidences on the canvas, a fallback, and prefixes of a ranking."""

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from maskwalk.decoding.canvas import INF
from maskwalk.decoding.scores import entropy, score
from maskwalk.decoding.view import View

RELATIVE = 1e-3  # entropies whose logarithms agree to this rank as equals
SLACK = 1e-9  # nats by which a sum of entropies may pass a budget, for rounding


def confidences(view: View) -> Float64[Tensor, "batch length"]:
    """c_i = max p_i on the canvas, rounded to the grid; -inf where nothing is masked."""
    return -view.unpack(score("confidence", view.scored, view.score_grid))


def or_best(
    view: View, passed: Bool[Tensor, "batch length"], by: str = "confidence"
) -> Bool[Tensor, "batch length"]:
    """What passed; in rows where nothing did, the best position by the named score."""
    none = ~passed.any(1, keepdim=True)
    return passed | view.lowest(view.score(by), 1, none.expand_as(passed))


def entropy_ranking(
    view: View, by: str
) -> tuple[Float64[Tensor, "batch length"], Float64[Tensor, "batch length"]]:
    """(rank to choose by, entropies in that order; infinite at the end where nothing is masked).

    Ranks are by rounded numbers, sums are of exact ones: a thousand entropies below the grid are
    not nothing. Equal scores are ranked by entropy, rounded relative to its own size; among equals
    the largest is counted first, so no way of breaking ties spends more than the sum says.
    """
    nats, scores = view.unpack(entropy(view.scored)), view.score(by)
    size = torch.round(nats.clamp(min=1e-15).log() / RELATIVE)
    order = nats.argsort(dim=1, descending=True, stable=True)
    for key in (size, scores):
        order = order.gather(1, key.gather(1, order).argsort(dim=1, stable=True))
    scores, size, sorted_nats = (x.gather(1, order) for x in (scores, size, nats))
    new = (scores[:, 1:] != scores[:, :-1]) | (size[:, 1:] != size[:, :-1])
    steps = torch.cat([torch.zeros_like(new[:, :1]), new], 1).cumsum(1).to(torch.float64)
    rank = torch.empty_like(steps).scatter(1, order, steps)
    return rank.masked_fill(~view.masked, INF), sorted_nats
