"""Rules within a budget of cost: the best setting of each rule, and who beats whom.

A rule is a family of samplers (one spec name), its settings are its points on the cost axis. In a
panel and for a budget b, a rule stands where its best setting of a mean cost of at most b stands.
That maximum is chosen with the same sequences that measure it, so the comparison pays for it: rule
A beats B when max_i A_i > max_j B_j, and

    p = k_A · ½ erfc(z / √2),   z = (best of A − best of B) / √(se_A² + se_B²),

with k_A the number of settings A could choose from (Bonferroni). B's choice needs no price: if A is
no better, A_i ≤ B_j for the truly best j, and the best estimate of B is at least that of j. That
the best rule is the best takes 2p against the next, however many rules there are (Gutmann & Maymin
1987). Holm's step-down then corrects for all comparisons of a mode. Shaped results (†) take no part
where there are others: they may win by another law.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from maskwalk.report.points import Point, by_panel, front, lawful, level, points_of
from maskwalk.report.study import Study
from maskwalk.stats import LEVEL, combined, holm, two_sided

BUDGETS = (5.0, 8.0, 12.0, 24.0)
MANY = 60  # samplers from which on a report compares rules instead of samplers


@dataclass(frozen=True)
class Stand:
    """A rule within a budget: its best setting, out of how many."""

    rule: str
    point: Point
    choices: int


@dataclass(frozen=True)
class Leader:
    """The best rule of a panel within a budget, the next one, and whether that is noise."""

    panel: int
    budget: float
    best: Stand
    second: Stand | None
    level: list[str]  # the rules that cannot be told from the best, the best among them
    p: float  # of the best against the second, corrected

    @property
    def clear(self) -> bool:
        """Whether the best rule is better than the next beyond the noise."""
        return self.p <= LEVEL


def crowded(study: Study) -> bool:
    """Whether there are too many samplers to compare each with each."""
    return len(study.tried) > MANY


def budgets_of(points: Sequence[Point]) -> tuple[float, ...]:
    """The budgets worth a look: up to the first that lets everybody in.

    Powers of two where half of the samplers would not fit into the largest of the usual ones.
    """
    costs = [p.cost for p in points] or [0.0]
    most, long = max(costs), float(np.median(costs)) > BUDGETS[-1]
    steps = tuple(2.0**i for i in range(3, 20) if 2**i <= most / 2) if long else BUDGETS
    return tuple(b for i, b in enumerate(steps) if not i or steps[i - 1] < most)


def front_samplers(study: Study, mode: int, panels: Sequence[int]) -> set[int]:
    """The samplers on the Pareto front of any of the panels."""
    of_panel: dict[int, list[Point]] = {}
    for point in lawful(points_of(study, mode)):
        of_panel.setdefault(point.panel, []).append(point)
    return {point.sampler for p in panels for point in front(of_panel.get(p, []))}


def stands(study: Study, points: Sequence[Point], budget: float) -> list[Stand]:
    """The rules of one panel within a budget, the best first, the cheaper of equals first."""
    settings: dict[str, list[Point]] = {}
    for point in points:
        if point.cost <= budget:
            settings.setdefault(study.samplers[point.sampler].family, []).append(point)
    tops = [
        Stand(rule, max(mine, key=lambda p: (p.score, -p.cost)), len(mine))
        for rule, mine in settings.items()
    ]
    return sorted(tops, key=lambda s: (-s.point.score, s.point.cost, s.rule))


def beats(one: Stand, other: Stand) -> float:
    """The p-value of `one` being better than `other`, with the price of its choices."""
    joint = combined(one.point.se, other.point.se)
    gap = one.point.score - other.point.score
    if gap <= 0 or joint == 0:
        return 1.0
    return min(one.choices * two_sided(gap / joint) / 2, 1.0)


def leaders(study: Study, mode: int, budgets: Sequence[float] | None = None) -> list[Leader]:
    """The best rule of every panel within every budget; p corrected over all of them."""
    points, winners = lawful(points_of(study, mode)), []
    for panel, mine in by_panel(points).items():
        for budget in budgets_of(points) if budgets is None else budgets:
            order = stands(study, mine, budget)
            if not order:
                continue
            best, second = order[0], order[1] if len(order) > 1 else None
            equal = [s.rule for s in order if level(best.point, s.point)]
            p = min(2 * beats(best, second), 1.0) if second else 1.0
            winners.append(Leader(panel, budget, best, second, equal, p))
    corrected = holm(np.array([one.p for one in winners]), len(winners))
    return [replace(one, p=float(p)) for one, p in zip(winners, corrected)]
