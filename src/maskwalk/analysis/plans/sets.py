"""The best sequence of sets: which positions to reveal together, for a given number of rounds.

A plan is a sequence of sets B_1, B_2, … fixed in advance (adaptive policies may do better: they see
the tokens). It loses Σ_r dependence(B_r | B_1 ∪ … ∪ B_{r−1}) nats with a perfect denoiser.

`best_sets` searches all plans, in 3^L steps per round:
best(U, n) = min_B dependence(B | U) + best(U ∪ B, n − 1).

`best_chain_sets` is exact for first-order laws at any length. Revealed positions cut the walk into
gaps that are independent, and inside a gap (a, b) a set b_1 < b_2 < … costs a sum over neighbours:

    I(X_{b_j}; X_{b_1…b_{j−1}} | X_a, X_b) = H(X_{b_j} | X_a, X_b) − H(X_{b_j} | X_{b_{j−1}}, X_b)

so both the set and what comes after it are found by dynamic programming in O(rounds · L⁴).

`spread_sets` needs no law: as few positions as possible, evenly spread, so that bisection can
finish every gap in the rounds that are left. All its loss is in the first round.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from maskwalk.analysis.plans.entropies import Entropies, Triples, dependence
from maskwalk.errors import MaskwalkError, whole

SEARCHED = 8  # positions for which all plans are searched


@dataclass(frozen=True)
class Plan:
    """Sets of positions, one per round, and the nats they lose."""

    sets: tuple[tuple[int, ...], ...]
    nats: float

    def turns(self, length: int) -> tuple[int, ...]:
        """The round of every position (0 for given ones): what the sampler `planned` takes."""
        turn = {i: r for r, block in enumerate(self.sets) for i in block}
        return tuple(turn.get(i, 0) for i in range(length))


def plan_cost(
    joint: Entropies, sets: Iterable[Iterable[int]], given: Iterable[int] = ()
) -> list[float]:
    """The nats each round of a plan loses."""
    revealed, costs = frozenset(given), []
    for block in sets:
        costs.append(dependence(joint, revealed, block))
        revealed |= frozenset(block)
    return costs


def best_sets(joint: Entropies, length: int, calls: int, given: Iterable[int] = ()) -> Plan:
    """The plan of at most `calls` rounds that loses least, by exact search over all plans."""
    known = frozenset(given)
    free = [i for i in range(length) if i not in known]
    if len(free) > SEARCHED:
        raise MaskwalkError(
            f"All plans are searched for at most {SEARCHED} positions, not {len(free)}; use "
            "best_chain_sets for a first-order law, or spread_sets."
        )
    calls, size = whole("calls", calls, 1), 1 << len(free)
    sets = [known | {free[j] for j in range(len(free)) if mask >> j & 1} for mask in range(size)]
    table = [joint(frozenset(some)) for some in sets]
    single = [[table[m | 1 << j] - table[m] for j in range(len(free))] for m in range(size)]
    full = size - 1
    best: list[float] = [0.0 if mask == full else np.inf for mask in range(size)]
    picks: list[list[int]] = []
    for _ in range(min(calls, len(free))):
        ways = [_best_block(mask, full, table, single[mask], best) for mask in range(size)]
        best, pick = [w[0] for w in ways], [w[1] for w in ways]
        picks.append(pick)
    mask, plan = 0, []
    for pick in reversed(picks):
        block = pick[mask]
        if block:
            plan.append(tuple(free[j] for j in range(len(free)) if block >> j & 1))
        mask |= block
    return Plan(tuple(plan), best[0])


def _best_block(
    mask: int, full: int, table: list[float], single: list[float], after: list[float]
) -> tuple[float, int]:
    """The block after `mask` that loses least in all; 0 (wait) only where nothing is left."""
    if mask == full:
        return 0.0, 0
    rest = full & ~mask
    best, chosen, block = np.inf, 0, rest
    while block:
        if after[mask | block] < np.inf:
            marginals = sum(h for j, h in enumerate(single) if block >> j & 1)
            cost = marginals - (table[mask | block] - table[mask]) + after[mask | block]
            if cost < best - 1e-12:
                best, chosen = cost, block
        block = (block - 1) & rest
    return float(best), chosen


def best_chain_sets(triples: Triples, calls: int, given: Iterable[int] = ()) -> Plan:
    """The same for a first-order law of any length, from its H(X_i | X_a, X_b)."""
    places, calls = len(triples), whole("calls", calls, 1)
    walls = sorted({0, places - 1, *(g + 1 for g in given)})
    empty = np.zeros((places, places))
    for a in range(places):
        empty[a, a + 2 :] = np.inf  # gap (a, b): nothing to reveal only if b = a + 1
    costs, picks = [empty], []
    for _ in range(min(calls, places - 2)):
        cost, pick = np.zeros_like(empty), {}
        for left, right in pairwise(walls):
            for a in range(left, right - 1):
                for b in range(a + 2, right + 1):
                    cost[a, b], pick[a, b] = _best_chain(a, b, triples, costs[-1])
        costs.append(cost)
        picks.append(pick)
    gaps = [gap for gap in pairwise(walls) if gap[1] > gap[0] + 1]
    nats = float(sum(costs[-1][gap] for gap in gaps))
    plan = []
    for pick in reversed(picks):
        blocks = [[a, *pick[a, b], b] for a, b in gaps]
        plan.append(tuple(i - 1 for block in blocks for i in block[1:-1]))
        gaps = [g for block in blocks for g in pairwise(block) if g[1] > g[0] + 1]
        if not gaps:
            break
    return Plan(tuple(plan), max(nats, 0.0))


def _best_chain(a: int, b: int, triples: Triples, after: np.ndarray) -> tuple[float, list[int]]:
    """The best set inside the gap (a, b): a shortest path from a to b over its members."""
    reach = np.full(b - a, np.inf)  # loss so far if a + k is the last member of the set
    reach[0] = 0.0
    parent = np.zeros(b - a, dtype=np.int64)
    for i in range(a + 1, b):
        members = np.arange(a, i)
        # The first member costs nothing; the next ones what they share with the one before.
        shared = triples[a, i, b] - triples[members, i, b]
        ways = reach[: i - a] + shared + after[members, i]
        parent[i - a], reach[i - a] = int(ways.argmin()), ways.min()
    ends = reach[1:] + after[np.arange(a + 1, b), b]
    last = int(ends.argmin()) + 1
    chosen = []
    k = last
    while k:
        chosen.append(a + k)
        k = int(parent[k])
    return float(ends[last - 1]), chosen[::-1]


def spread_sets(length: int, calls: int, given: Iterable[int] = ()) -> tuple[tuple[int, ...], ...]:
    """Evenly spread positions first, then bisection: a plan that looks at no law."""
    calls = whole("calls", calls, 1)
    walls = sorted({-1, length, *given})
    gaps, plan = list(pairwise(walls)), []
    for left in range(calls - 1, -1, -1):
        reach = (1 << left) - 1  # positions that bisection fills in the rounds left
        block: list[int] = []
        for a, b in gaps:
            size = b - a - 1
            count = max(1, -(-(size - reach) // (reach + 1))) if size else 0
            block += [a + (j + 1) * (size + 1) // (count + 1) for j in range(count)]
        if not block:
            break
        plan.append(tuple(block))
        walls = sorted({*walls, *block})
        gaps = list(pairwise(walls))
    return tuple(plan)
