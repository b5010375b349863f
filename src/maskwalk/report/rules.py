"""Rules at matched calls: the best setting of each rule within a budget, and who beats whom.

A rule is a family of samplers (one spec name), its settings are its points on the calls axis. In a
panel and for a budget b, a rule stands where its most coherent setting with at most b calls (their
mean) stands. That maximum is chosen with the same walks that measure it, so the comparison pays for
it: rule A beats B when max_i A_i > max_j B_j, and

    p = k_A · ½ erfc(z / √2),   z = (best of A − best of B) / √(se_A² + se_B²),

with k_A the number of settings A could choose from (Bonferroni). B's choice needs no price: if A is
no better, A_i ≤ B_j for the truly best j, and the best estimate of B is at least that of j. That
the best rule is the best takes 2p against the next, however many rules there are (Gutmann & Maymin
1987). Holm's step-down then corrects for all comparisons of a mode. Where two rules change places
between graphs, both differences must hold, as in flips.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import erfc, hypot, sqrt
from typing import Protocol, runtime_checkable

import numpy as np

from maskwalk.bench.labels import Sampler
from maskwalk.report.flips import LEVEL
from maskwalk.report.layout import pareto_front
from maskwalk.report.study import Study
from maskwalk.report.summary import NOISE, Point, points_of
from maskwalk.stats import holm

BUDGETS = (5.0, 8.0, 12.0, 24.0)
MANY = 60  # samplers from which on a report compares rules instead of samplers


@runtime_checkable
class Sampled(Protocol):
    """A study of graphs or of texts: whatever has samplers."""

    @property
    def samplers(self) -> list[Sampler]:
        """They, in the order of the legend."""


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


@dataclass(frozen=True)
class Turn:
    """Two rules that change places: `first` wins on `here`, `second` on `there`, at one budget."""

    task: str
    budget: float
    first: str
    second: str
    here: int
    there: int
    points: tuple[Point, Point, Point, Point]  # first, second here; first, second there
    swing: float  # the smaller of the two differences
    p: float  # corrected
    places: int  # significant turns of these two rules, over tasks, budgets and pairs of graphs


@dataclass(frozen=True)
class Turns:
    """The significant turns of a mode, one a pair of rules, and the number of comparisons made."""

    found: list[Turn]
    comparisons: int
    of: str = "rules at equal budgets of calls"


def crowded(study: Study) -> bool:
    """Whether there are too many samplers to compare each with each."""
    return len(study.tried) > MANY


def front(points: Sequence[Point], beyond: float = 0.0) -> list[Point]:
    """The Pareto front by calls; steps that gain less than `beyond` standard errors are left out.

    The errors are those of the difference to the step kept before.
    """
    kept: list[Point] = []
    for i in pareto_front([(p.calls, p.value) for p in points], 1):
        step = points[i]
        if not kept or step.value - kept[-1].value > beyond * hypot(step.spread, kept[-1].spread):
            kept.append(step)
    return kept


def front_samplers(study: Study, mode: int, panels: Sequence[int]) -> set[int]:
    """The samplers on the Pareto front of any of the panels."""
    points = points_of(study, mode)
    return {q.sampler for p in panels for q in front([x for x in points if x.panel == p])}


def stands(study: Sampled, points: Sequence[Point], budget: float) -> list[Stand]:
    """The rules within a budget in one panel, the best first, the cheaper of equals first."""
    settings: dict[str, list[Point]] = {}
    for point in points:
        if point.calls <= budget:
            settings.setdefault(study.samplers[point.sampler].family, []).append(point)
    tops = [
        Stand(rule, max(mine, key=lambda p: (p.value, -p.calls)), len(mine))
        for rule, mine in settings.items()
    ]
    return sorted(tops, key=lambda s: (-s.point.value, s.point.calls, s.rule))


def beats(one: Stand, other: Stand) -> float:
    """The p-value of `one` being better than `other`, with the price of its choices."""
    joint = hypot(one.point.spread, other.point.spread)
    gap = one.point.value - other.point.value
    if gap <= 0 or joint == 0:
        return 1.0
    return min(one.choices * 0.5 * erfc(gap / joint / sqrt(2)), 1.0)


def leaders(study: Study, mode: int, budgets: Sequence[float] = BUDGETS) -> list[Leader]:
    """The best rule of every panel within every budget; p corrected over all of them."""
    return leaders_of(study, points_of(study, mode), budgets)


def leaders_of(study: Sampled, points: Sequence[Point], budgets: Sequence[float]) -> list[Leader]:
    """The same for any points of which more is better; `panel` tells apart what is compared."""
    found = []
    for panel in sorted({p.panel for p in points}):
        mine = [p for p in points if p.panel == panel]
        for budget in budgets:
            order = stands(study, mine, budget)
            if not order:
                continue
            best, second = order[0], order[1] if len(order) > 1 else None
            level = [
                s.rule
                for s in order
                if best.point.value - s.point.value
                <= NOISE * hypot(best.point.spread, s.point.spread)
            ]
            p = min(2 * beats(best, second), 1.0) if second else 1.0
            found.append(Leader(panel, budget, best, second, level, p))
    corrected = holm(np.array([f.p for f in found]), len(found))
    return [replace(one, p=float(p)) for one, p in zip(found, corrected)]


def turns(study: Study, mode: int, budgets: Sequence[float] = BUDGETS) -> Turns:
    """Pairs of rules whose order differs between two graphs of a task at one budget."""
    points, tests, comparisons = points_of(study, mode), [], 0
    panels = sorted({p.panel for p in points})
    for budget in budgets:
        held = {
            p: {s.rule: s for s in stands(study, [q for q in points if q.panel == p], budget)}
            for p in panels
        }
        for g, h in combinations(panels, 2):
            if study.panels[g].task != study.panels[h].task:
                continue
            for a, b in combinations(sorted(set(held[g]) & set(held[h])), 2):
                comparisons += 1
                for first, second in ((a, b), (b, a)):  # twice, so twice the p
                    both = (held[g][first], held[g][second]), (held[h][second], held[h][first])
                    p = 2 * max(beats(*both[0]), beats(*both[1]))
                    if p < LEVEL:
                        tests.append((p, budget, first, second, g, h, both))
    corrected = holm(np.array([t[0] for t in tests]), comparisons)
    made: dict[tuple[str, ...], list[Turn]] = {}
    for (_, budget, first, second, g, h, (won, lost)), p in zip(tests, corrected):
        if p > LEVEL:
            continue
        four = (won[0].point, won[1].point, lost[1].point, lost[0].point)
        swing = min(four[0].value - four[1].value, four[3].value - four[2].value)
        turn = Turn(study.panels[g].task, budget, first, second, g, h, four, swing, float(p), 1)
        made.setdefault(tuple(sorted((first, second))), []).append(turn)
    widest = [
        replace(max(mates, key=lambda t: t.swing), places=len(mates)) for mates in made.values()
    ]
    widest.sort(key=lambda t: (-t.swing, t.first, t.second))
    return Turns(widest, comparisons)
