"""Samplers as points: how good, at what cost. What a report compares is made of these.

Only numbers with an interval are points: nothing is said to lead that has none, and nobody leads by
an upper bound, which an exact number does not beat. References and AR models are no points. Within
the noise is what the 95 % interval of the difference holds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from maskwalk.decoding.kinds import SHAPED
from maskwalk.report.estimates import Estimate, settled_value
from maskwalk.report.study import Study
from maskwalk.stats import (
    LEVEL,
    NORMAL,
    clear_steps,
    combined,
    half_width,
    holm,
    pareto_front,
    two_sided,
)
from maskwalk.worlds.metrics import Metric


@dataclass(frozen=True)
class Point:
    """A sampler in a panel; `score` is its value, or minus that where lower is better.

    No value is better than what exact sequences get (estimates.settled_value).
    """

    sampler: int
    panel: int
    value: float
    se: float
    cost: float
    cost_max: float
    sign: int = 1
    settled: float | None = None  # the value to compare by, where that is another
    shaped: bool = False

    @property
    def score(self) -> float:
        """More is better."""
        return self.sign * (self.value if self.settled is None else self.settled)

    @property
    def half(self) -> float:
        """Half of the 95 % interval."""
        return half_width(self.se) or 0.0


def points_of(study: Study, mode: int, metric: Metric | None = None) -> list[Point]:
    """Every sampler of a mode in every panel, where the metric and its cost are known."""
    metric = metric or study.quality
    if metric is None:
        return []
    made: dict[tuple[int, str], list[Point]] = study.memory.setdefault("points", {})
    if (mode, metric.key) not in made:
        made[mode, metric.key] = [
            point
            for (m, panel, sampler) in study.cells
            if m == mode and (point := point_at(study, m, panel, sampler, metric))
        ]
    return list(made[mode, metric.key])


def by_panel(points: Iterable[Point]) -> dict[int, list[Point]]:
    """The points of every panel that has some, in the order of the panels."""
    panels: dict[int, list[Point]] = {}
    for point in points:
        panels.setdefault(point.panel, []).append(point)
    return dict(sorted(panels.items()))


def point_at(study: Study, mode: int, panel: int, sampler: int, metric: Metric) -> Point | None:
    """The point of one cell."""
    estimate, cost = (study.estimate(mode, panel, sampler, m) for m in (metric, study.cost))
    if cost is None or sampler in study.causal:
        return None
    if estimate is None or estimate.se is None or estimate.bound:
        return None
    most = cost.more.get("max") or cost.value
    numbers = (estimate.value, estimate.se, cost.value, most)
    shaped = study.kinds[mode, panel, sampler] == SHAPED
    settled = settled_value(metric, estimate)
    return Point(sampler, panel, *numbers, metric.better or 1, settled, shaped)


def lawful(points: Sequence[Point]) -> list[Point]:
    """The points that may lead: exact and factorised ones; all where a panel has no others."""
    panels = {p.panel for p in points if not p.shaped}
    return [p for p in points if not p.shaped or p.panel not in panels]


def ahead_by_shaping(points: Sequence[Point]) -> list[Point]:
    """Shaped points that are better, beyond the noise, than all lawful ones of at most their cost.

    The best of a panel, the cheaper of equals; none where all are shaped.
    """
    out = []
    for mine in by_panel(points).values():
        rest = [p for p in mine if not p.shaped]
        ahead = [p for p in mine if p.shaped and rest and all(_leads(p, q) for q in rest)]
        out += [max(ahead, key=lambda p: (p.score, -p.cost))] if ahead else []
    return out


def _leads(one: Point, other: Point) -> bool:
    return other.cost > one.cost or one.score - other.score > noise(one, other)


def noise(one: Point | Estimate, other: Point | Estimate) -> float:
    """Half of the 95 % interval of a difference."""
    return NORMAL * combined(one.se, other.se)


def level(one: Point, other: Point) -> bool:
    """Whether the difference is within the noise."""
    return abs(one.score - other.score) <= noise(one, other)


def beyond_noise(
    pairs: Sequence[tuple[Point, Point]], comparisons: int | None = None
) -> list[tuple[Point, Point]]:
    """The pairs that differ, after Holm's correction: the widest of many is chosen by its noise.

    Where the pairs are the widest of more, `comparisons` says of how many.
    """
    p = [_p_value(abs(a.score - b.score), combined(a.se, b.se)) for a, b in pairs]
    corrected = holm(np.array(p), comparisons or len(pairs))
    return [pair for pair, chance in zip(pairs, corrected) if chance <= LEVEL]


def _p_value(gap: float, error: float) -> float:
    return two_sided(gap / error) if error else float(not gap)


def front(points: Sequence[Point]) -> list[Point]:
    """The Pareto front by cost, of steps that gain more than the noise."""
    steps = pareto_front([(p.cost, p.score) for p in points], 1)
    steps = clear_steps([p.score for p in points], [p.se for p in points], steps, 1)
    return [points[i] for i in steps]
