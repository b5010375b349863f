"""The largest set of positions whose neighbours cost no more than a budget, together.

A set is a path through the masked positions from left to right, and its cost the sum over its
steps, so the cheapest path of every number of members is a shortest-path recursion, for all
sequences at once.
"""

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

CENTRAL = 1e-9  # nats that break ties towards the middle of a gap
PULLS = (0.0, 0.1, 1.0, 10.0)  # how hard sets of the same size are pulled there, in budgets


def largest_set(
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
