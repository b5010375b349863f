"""Reveal the largest set whose estimated total correlation stays under a budget. No oracle.

A call teaches more than the next tokens: when position j is revealed, KL(p_i after ‖ p_i before) at
a position i that stays masked is an unbiased estimate of the information j carries about i. So each
sequence learns, from calls it makes anyway,

    open(d)   information between positions d apart with nothing revealed between them: the mean of
              what was seen at d, and never more than at a smaller distance
    pass(w)   the share of it that gets past w revealed neighbours (0 for a law of order ≤ w)

and takes I(i, j) ≈ min(H_i, H_j, open(|i−j|) · pass(w)). What it has not seen it assumes to be as
bad as it can be, open = ∞ and pass = 1, so the first round reveals one position (or several that
are nearly certain). A set i_1 < i_2 < … then costs Σ I(i_k, i_{k+1}), the total correlation if each
position depends on the set before it through its neighbour only; the largest set within the budget
(of these one near the centres of the gaps) is found by dynamic programming. One call a round.

Source: this project. A close relative is the entropy bound of EB-Sampler [arXiv 2505.24857], which
uses min(H_i, H_j) alone.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from maskwalk.canvas import Canvas, RoundStreams, State, UnmaskingPolicy, View
from maskwalk.errors import real
from maskwalk.samplers.table import SAMPLERS

WIDEST = 4  # walls of this many revealed neighbours or more are one kind
FAR = 1e3  # nats: stands for "not seen yet"
CENTRAL = 1e-9  # nats that break ties towards the middle of a gap
PULLS = (0.0, 0.1, 1.0, 10.0)  # how hard sets of the same size are pulled there, in budgets


@SAMPLERS.register("dependence_bounded")
@dataclass(frozen=True)
class DependenceBounded(UnmaskingPolicy):
    """The largest set whose dependence, estimated from its own calls, is within `budget` nats."""

    budget: float | int = 0.1
    sweep: ClassVar[tuple[dict[str, Any], ...]] = tuple({"budget": b} for b in (0.1, 0.5, 2.0))

    def __post_init__(self) -> None:
        real("budget", self.budget, 0.0)

    def init(self, canvas: Canvas) -> State:
        """Nothing seen yet."""
        batch, length = canvas.tokens.shape
        device = canvas.tokens.device

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.float64, device=device)

        return {
            "masked": canvas.masked,  # before the last round
            "probs": zeros(batch, length, 0),  # the marginals of the last round
            "seen": zeros(batch, length),  # information seen at each distance, and how often
            "times": zeros(batch, length),
            "passed": zeros(batch, WIDEST + 1),  # what came past walls, and what open would give
            "expected": zeros(batch, WIDEST + 1),
        }

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """Learns from the last round, then takes the largest set within the budget."""
        packed = view.log_marginals.to(torch.float64).exp()
        probs = packed.new_zeros((*view.masked.shape, packed.shape[1]))
        probs[view.masked] = packed
        state = {**state, "probs": probs} if view.round == 0 else _learn(view, state, probs)
        cost = _information(view, state)
        chosen = _largest(view.masked, cost, float(self.budget))
        return chosen, {**state, "masked": view.masked}


def walls(masked: Bool[Tensor, "batch length"]) -> Int[Tensor, "batch length length"]:
    """For i and j: the most neighbouring revealed positions between them, WIDEST at most."""
    place = torch.arange(masked.shape[1], device=masked.device)
    last_masked = torch.where(masked, place, -1).cummax(1).values
    run = place - last_masked  # revealed positions in a row that end here
    above = torch.where(place[None, :] > place[:, None], run[:, None, :], 0)
    widest = above.cummax(2).values
    widest = torch.where(place[None, :] > place[:, None], widest, 0)
    return (widest + widest.transpose(1, 2)).clamp(max=WIDEST)


def open_by_distance(state: State) -> Float64[Tensor, "batch length"]:
    """open(d): the mean seen at d, at most that at smaller distances; FAR if nothing was seen."""
    mean = torch.where(state["times"] > 0, state["seen"] / state["times"].clamp(min=1.0), FAR)
    return mean.cummin(1).values


def _learn(view: View, state: State, probs: Tensor) -> State:
    """What the tokens revealed last have said about the positions still masked."""
    length, device = view.masked.shape[1], view.masked.device
    new = state["masked"] & ~view.masked
    log_ratio = probs.clamp(min=1e-300).log() - state["probs"].clamp(min=1e-300).log()
    gain = torch.where(probs > 0, probs * log_ratio, 0.0).sum(2).clamp(0.0, FAR)
    gain = torch.round(gain / 1e-9) * 1e-9
    # Each position is told by the newly revealed one with the thinnest wall, then the nearest.
    place = torch.arange(length, device=device)
    apart = (place[None, :] - place[:, None]).abs()
    wall = walls(state["masked"])
    key = torch.where(new[:, None, :], wall * length + apart, WIDEST * length + length)
    teller = key.argmin(2)
    thick = wall.gather(2, teller[:, :, None])[:, :, 0]
    distance = (teller - place).abs()
    told = view.masked.to(torch.float64)
    near = told * (thick == 0)
    seen = state["seen"].scatter_add(1, distance, near * gain)
    times = state["times"].scatter_add(1, distance, near)
    state = {**state, "probs": probs, "seen": seen, "times": times}
    usual = open_by_distance(state).gather(1, distance)
    past = told * (thick > 0) * (usual < FAR)
    return {
        **state,
        "passed": state["passed"].scatter_add(1, thick, past * gain),
        "expected": state["expected"].scatter_add(1, thick, past * usual),
    }


def _information(view: View, state: State) -> Float64[Tensor, "batch length length"]:
    """The estimate of I(i, j) for every pair."""
    entropy = view.score("entropy")
    length = entropy.shape[1]
    place = torch.arange(length, device=entropy.device)
    apart = (place[None, :] - place[:, None]).abs().expand(len(entropy), -1, -1)
    usual = open_by_distance(state).gather(1, apart.flatten(1)).view_as(apart)
    share = torch.where(
        state["expected"] > 0, state["passed"] / state["expected"].clamp(min=1e-12), 1.0
    )
    share = share.clamp(max=1.0).cummin(1).values  # a thicker wall never lets more through
    through = share.gather(1, walls(view.masked).flatten(1)).view_as(apart)
    bound = torch.minimum(entropy[:, :, None], entropy[:, None, :])
    return torch.minimum(bound, usual * through)


def _largest(
    masked: Bool[Tensor, "batch length"],
    cost: Float64[Tensor, "batch length length"],
    budget: float,
) -> Bool[Tensor, "batch length"]:
    """The largest set with Σ cost(neighbours) ≤ budget; of these, one near the gaps' centres."""
    length = masked.shape[1]
    place = torch.arange(length, device=masked.device)
    before = torch.where(masked, -1, place).cummax(1).values
    after = torch.where(masked, length, place).flip(1).cummin(1).values.flip(1)
    off_centre = ((after - before) / 2 - torch.minimum(place - before, after - place)) / length
    off_centre = off_centre.to(torch.float64)
    cost = torch.where(place[:, None] < place[None, :], cost, torch.inf)
    cost = cost.masked_fill(~(masked[:, :, None] & masked[:, None, :]), torch.inf)
    size, chosen = None, None
    for pull in PULLS:
        sets, sizes, fits = _paths(
            masked, cost, off_centre * (pull * budget + CENTRAL), budget, size
        )
        if size is None or chosen is None:
            size, chosen = sizes, sets
        else:
            chosen = torch.where(fits[:, None], sets, chosen)
    assert chosen is not None
    return chosen


def _paths(
    masked: Tensor, cost: Tensor, off_centre: Tensor, budget: float, size: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Shortest paths of 1, 2, 3, … members by cost and off-centre together: for each row the set of
    `size` members (the largest that fits, if None), its size, and whether it fits the budget."""
    length, rows = masked.shape[1], torch.arange(len(masked), device=masked.device)
    total = off_centre.masked_fill(~masked, torch.inf)
    step = cost + off_centre[:, None, :]
    price = torch.zeros_like(total)  # the true cost along the path
    parents: list[Tensor] = []
    ends, paid = total.argmin(1), torch.zeros_like(total[:, 0])
    wanted = torch.ones_like(ends) if size is None else size
    while len(parents) < length - 1 and (size is None or len(parents) + 1 < int(wanted.max())):
        best = (total[:, :, None] + step).min(1)
        last = best.indices
        price = price.gather(1, last) + cost.gather(1, last[:, None, :])[:, 0]
        total = best.values
        parents.append(last)
        end = total.argmin(1)
        fits = price[rows, end] <= budget
        if size is None:
            wanted = torch.where(fits, len(parents) + 1, wanted)
            if not bool(fits.any()):
                break
        now = wanted == len(parents) + 1
        ends, paid = torch.where(now, end, ends), torch.where(now, price[rows, end], paid)
    chosen = torch.zeros_like(masked)
    for members in range(len(parents) + 1, 0, -1):
        here = wanted >= members
        chosen[here] = chosen[here].scatter(1, ends[here, None], True)
        if members > 1:
            ends = torch.where(here, parents[members - 2].gather(1, ends[:, None])[:, 0], ends)
    return chosen, wanted, paid <= budget
