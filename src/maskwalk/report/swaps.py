"""Which samplers, or rules within a budget, change places between worlds, beyond the noise.

A and B swap between worlds g and h when A is better in g and B in h. Both differences must hold, so
the p-value of the swap is the larger of the two (intersection-union), doubled because either order
would count. Holm's step-down over all pairs × pairs of worlds × tasks of a mode then bounds the
chance of a single false swap by 5 %, whatever their dependence. Samplers share prompts, so the
errors are, if anything, too big. Shaped results take no part where there are others. What rules
are, and what their choices cost: budgets.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import cast

import numpy as np

from maskwalk.report.budgets import beats, budgets_of, stands
from maskwalk.report.points import Point, lawful, points_of
from maskwalk.report.study import Study
from maskwalk.stats import LEVEL, NORMAL, combined, holm, two_sided

Four = tuple[Point, Point, Point, Point]  # first, second here; first, second there


@dataclass(frozen=True)
class Swap:
    """The widest swap of a pair: `first` wins in panel `here`, `second` in panel `there`."""

    task: str
    first: str  # a sampler, or a rule if there is a budget
    second: str
    here: int
    there: int
    points: Four
    p: float  # corrected
    budget: float | None = None
    places: int = 1  # significant swaps of these two

    @property
    def swing(self) -> float:
        """The smaller of the two differences."""
        a, b, c, d = (point.score for point in self.points)
        return min(a - b, d - c)


@dataclass(frozen=True)
class Swaps:
    """The significant swaps of a mode, one a pair, the widest first; how many comparisons."""

    pairs: list[Swap]
    comparisons: int
    of: str  # what the pairs consist of


def sampler_swaps(study: Study, mode: int) -> Swaps:
    """All pairs of samplers whose order differs between two worlds of one task."""
    points = {(p.panel, p.sampler): p for p in lawful(points_of(study, mode))}
    panels = sorted({panel for panel, _ in points})
    ahead = {panel: _deviates(study, points, panel) for panel in panels}
    comparisons, tests = 0, []
    for g, h in _pairs(study, panels):
        both = sum({(g, s), (h, s)} <= points.keys() for s in range(len(study.samplers)))
        comparisons += both * (both - 1) // 2
        certain = np.minimum(ahead[g], -ahead[h])  # how clearly: row better in g, column in h
        for a, b in zip(*np.nonzero(certain > NORMAL)):  # a p above 5 % stays above it
            tests.append((two_sided(float(certain[a, b])), int(a), int(b), g, h))
    corrected = holm(np.array([test[0] for test in tests]), comparisons)
    swaps = [
        _ordered(study, points, test, float(p)) for test, p in zip(tests, corrected) if p <= LEVEL
    ]
    return Swaps(_widest(swaps), comparisons, "samplers")


def _ordered(
    study: Study,
    points: dict[tuple[int, int], Point],
    test: tuple[float, int, int, int, int],
    p: float,
) -> Swap:
    """One entry a pair, whichever world comes first."""
    _, a, b, g, h = test
    if a > b:
        a, b, g, h = b, a, h, g
    four = (points[g, a], points[g, b], points[h, a], points[h, b])
    names = study.samplers[a].spec, study.samplers[b].spec
    return Swap(study.panels[g].task, *names, g, h, four, p)


def _deviates(study: Study, points: dict[tuple[int, int], Point], panel: int) -> np.ndarray:
    """z of every difference in a panel, row minus column; 0 where one of the two is missing."""
    mine = [points.get((panel, s)) for s in range(len(study.samplers))]
    scores = np.array([0.0 if p is None else p.score for p in mine])
    errors = np.array([np.inf if p is None else p.se for p in mine])
    joint = np.frompyfunc(combined, 2, 1)(errors[:, None], errors[None, :]).astype(np.float64)
    gap = scores[:, None] - scores[None, :]
    deviates: np.ndarray = np.divide(gap, joint, out=np.zeros_like(gap), where=joint > 0)
    return deviates


def rule_swaps(study: Study, mode: int, budgets: Sequence[float] | None = None) -> Swaps:
    """Pairs of rules whose order differs between two worlds of a task within one budget."""
    points, tests, comparisons = lawful(points_of(study, mode)), [], 0
    panels = sorted({p.panel for p in points})
    for budget in budgets_of(points) if budgets is None else budgets:
        rules = {
            p: {s.rule: s for s in stands(study, [q for q in points if q.panel == p], budget)}
            for p in panels
        }
        for g, h in _pairs(study, panels):
            for a, b in combinations(sorted(rules[g].keys() & rules[h].keys()), 2):
                comparisons += 1
                for first, second in ((a, b), (b, a)):  # twice, so twice the p
                    here, there = rules[g], rules[h]
                    wins = beats(here[first], here[second]), beats(there[second], there[first])
                    if 2 * max(wins) < LEVEL:
                        four = tuple(w[r].point for w in (here, there) for r in (first, second))
                        about = (study.panels[g].task, first, second, g, h)
                        tests.append(Swap(*about, cast(Four, four), 2 * max(wins), budget))
    corrected = holm(np.array([test.p for test in tests]), comparisons)
    swaps = [replace(test, p=float(p)) for test, p in zip(tests, corrected) if p <= LEVEL]
    return Swaps(_widest(swaps, by_task=False), comparisons, "rules at equal budgets")


def _pairs(study: Study, panels: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs of panels of one task."""
    for g, h in combinations(panels, 2):
        if study.panels[g].task == study.panels[h].task:
            yield g, h


def _widest(swaps: Sequence[Swap], by_task: bool = True) -> list[Swap]:
    """One swap for every pair (and task): the one with the widest swing."""
    groups: dict[tuple[str, ...], list[Swap]] = {}
    for swap in swaps:
        key = (swap.task if by_task else "", *sorted((swap.first, swap.second)))
        groups.setdefault(key, []).append(swap)
    widest = [
        replace(max(mates, key=lambda s: s.swing), places=len(mates)) for mates in groups.values()
    ]
    return sorted(widest, key=lambda s: (-s.swing, s.task, s.first, s.second))
