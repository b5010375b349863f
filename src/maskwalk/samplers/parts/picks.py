"""What several rules share: confidences on the canvas, a fallback, and prefixes of a ranking."""

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from maskwalk.decoding.canvas import INF
from maskwalk.decoding.scores import entropy, score
from maskwalk.decoding.view import View


def confidences(view: View) -> Float64[Tensor, "batch length"]:
    """c_i = max p_i on the canvas, rounded to the grid; -inf where nothing is masked."""
    return -view.unpack(score("confidence", view.log_marginals, view.score_grid))


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

    Equal scores are ranked by entropy, so a prefix's total entropy does not depend on ties.
    """
    nats = view.unpack(torch.round(entropy(view.log_marginals) / view.score_grid) * view.score_grid)
    scores = view.score(by)
    first = nats.argsort(dim=1, stable=True)
    order = first.gather(1, scores.gather(1, first).argsort(dim=1, stable=True))
    scores, sorted_nats = scores.gather(1, order), nats.gather(1, order)
    new = (scores[:, 1:] != scores[:, :-1]) | (sorted_nats[:, 1:] != sorted_nats[:, :-1])
    steps = torch.cat([torch.zeros_like(new[:, :1]), new], 1).cumsum(1).to(torch.float64)
    rank = torch.empty_like(steps).scatter(1, order, steps)
    return rank.masked_fill(~view.masked, INF), sorted_nats


def spread_evenly(
    total: Int[Tensor, " batch"], done: Int[Tensor, " batch"], steps: int
) -> Int[Tensor, " batch"]:
    """How many of `total` fall to step `done` of `steps`: equal shares, the first ones larger."""
    return total // steps + (done < total % steps).to(torch.int64)
