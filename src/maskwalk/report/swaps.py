"""Which samplers, or rules within a budget, change places between worlds, beyond the noise.

A and B swap between worlds g and h when A is better in g and B in h. Both differences must hold, so
the p-value of the swap is the larger of the two (intersection-union), doubled because either order
would count. Holm's step-down over all pairs × pairs of worlds × tasks of a mode then bounds the
chance of a single false swap by 5 %, whatever their dependence. Samplers share prompts, so the
errors are, if anything, too big. Shaped results take no part where there are others. What rules
are, and what their choices cost: budgets.py.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import sqrt
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64
from scipy.special import erfc

from maskwalk.report.budgets import Stand, beats, budgets_of, stands
from maskwalk.report.points import Point, by_panel, lawful, points_of
from maskwalk.report.study import Study
from maskwalk.stats import LEVEL, holm

COLUMNS = ("p", "first", "second", "here", "there", "swing", "field")
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


@dataclass(frozen=True)
class Field:
    """Who meets in every panel, and the chance that a lead of row over column is only noise."""

    names: list[str]
    points: dict[tuple[int, int], Point]  # (panel, place in names)
    chances: dict[int, Float64[np.ndarray, "names names"]]
    budget: float | None = None

    def scores(self, panels: Sequence[int]) -> Float64[np.ndarray, "panels names"]:
        """More is better; NaN for who is not there."""
        table = np.full((len(panels), len(self.names)), np.nan)
        for i, panel in enumerate(panels):
            for j in range(len(self.names)):
                if (panel, j) in self.points:
                    table[i, j] = self.points[panel, j].score
        return table


def sampler_swaps(study: Study, mode: int) -> Swaps:
    """All pairs of samplers whose order differs between two worlds of one task."""
    points = {(p.panel, p.sampler): p for p in lawful(points_of(study, mode))}
    names = [one.spec for one in study.samplers]
    chances = {panel: _noise(points, panel, len(names)) for panel in {panel for panel, _ in points}}
    return _swaps(study, [Field(names, points, chances)], "samplers", by_task=True)


def _noise(
    points: dict[tuple[int, int], Point], panel: int, count: int
) -> Float64[np.ndarray, "names names"]:
    """The two-sided p-value of every lead in a panel; 1 where there is none, or one is missing."""
    mine = [points.get((panel, s)) for s in range(count)]
    scores = np.array([0.0 if p is None else p.score for p in mine])
    errors = np.array([np.inf if p is None else p.se for p in mine])
    joint = np.hypot(errors[:, None], errors[None, :])
    gap = scores[:, None] - scores[None, :]
    lead = np.divide(gap, joint, out=np.zeros_like(gap), where=joint > 0)
    return np.where(lead > 0, erfc(lead / sqrt(2)), 1.0)


def rule_swaps(study: Study, mode: int, budgets: Sequence[float] | None = None) -> Swaps:
    """Pairs of rules whose order differs between two worlds of a task within one budget."""
    points = lawful(points_of(study, mode))
    fields = []
    for budget in budgets_of(points) if budgets is None else budgets:
        rules = {
            panel: {s.rule: s for s in stands(study, mine, budget)}
            for panel, mine in by_panel(points).items()
        }
        names = sorted({rule for mine in rules.values() for rule in mine})
        at = {
            (panel, i): mine[rule].point
            for panel, mine in rules.items()
            for i, rule in enumerate(names)
            if rule in mine
        }
        chances = {panel: _price(names, mine) for panel, mine in rules.items()}
        fields.append(Field(names, at, chances, budget))
    return _swaps(study, fields, "rules at equal budgets", by_task=False)


def _price(names: list[str], mine: dict[str, Stand]) -> Float64[np.ndarray, "names names"]:
    """Twice the p-value of one rule being better than another, with the price of its choices."""
    chance = np.ones((len(names), len(names)))
    for i, j in permutations(range(len(names)), 2):
        if names[i] in mine and names[j] in mine:
            chance[i, j] = 2 * beats(mine[names[i]], mine[names[j]])
    return chance


def _swaps(study: Study, fields: Sequence[Field], of: str, by_task: bool) -> Swaps:
    """What of all that is compared is a swap, after Holm's correction: the widest of each pair."""
    comparisons, found = 0, []
    for number, field in enumerate(fields):
        for panels in _by_task(study, field.chances):
            scores = field.scores(panels)
            there = (~np.isnan(scores)).astype(np.int64)
            both = there @ there.T
            comparisons += int(np.triu(both * (both - 1) // 2, 1).sum())
            found.append(_crossings(field, panels, scores, number))
    tests = {key: np.concatenate([one[key] for one in found]) for key in COLUMNS} if found else {}
    if not tests:
        return Swaps([], comparisons, of)
    corrected = holm(tests["p"], comparisons)
    (kept,) = np.nonzero(corrected <= LEVEL)
    pairs = _pairs(study, fields, {key: column[kept] for key, column in tests.items()}, by_task)
    order = kept[np.lexsort((-tests["swing"][kept], pairs))]  # of each pair the widest first
    _, first, counts = np.unique(np.sort(pairs), return_index=True, return_counts=True)
    widest = []
    for i, places in zip(order[first].tolist(), counts.tolist()):
        test = {key: column[i].item() for key, column in tests.items()}
        swap = _swap(study, fields[test["field"]], test, float(corrected[i]), by_task)
        widest.append(replace(swap, places=places))
    ordered = sorted(widest, key=lambda s: (-s.swing, s.task, s.first, s.second))
    return Swaps(ordered, comparisons, of)


def _pairs(
    study: Study, fields: Sequence[Field], tests: dict[str, np.ndarray], by_task: bool
) -> Int64[np.ndarray, " tests"]:
    """A number for the pair (and task) of each test, whoever is the first of the two."""
    names = sorted({name for field in fields for name in field.names})
    number = {name: i for i, name in enumerate(names)}
    ends = np.zeros((2, len(tests["p"])), dtype=np.int64)
    for i, field in enumerate(fields):
        mine = tests["field"] == i
        table = np.array([number[name] for name in field.names], dtype=np.int64)
        ends[:, mine] = table[tests["first"][mine]], table[tests["second"][mine]]
    pair = ends.min(0) * len(names) + ends.max(0)
    if by_task:
        tasks = np.array([study.tasks.index(panel.task) for panel in study.panels])
        pair += tasks[tests["here"]] * len(names) ** 2
    return np.asarray(pair)


def _crossings(
    field: Field, panels: list[int], scores: Float64[np.ndarray, "panels names"], number: int
) -> dict[str, np.ndarray]:
    """Who beats whom in one panel and is beaten in a later one, both beyond the noise: columns."""
    chances = np.stack([field.chances[panel] for panel in panels])
    parts: list[tuple[np.ndarray, ...]] = []
    for g in range(len(panels) - 1):
        p = np.maximum(chances[g], chances[g + 1 :].transpose(0, 2, 1))
        later, a, b = np.nonzero(p < LEVEL)  # a p above 5 % stays above it
        h = later + g + 1
        swing = np.minimum(scores[g, a] - scores[g, b], scores[h, b] - scores[h, a])
        here = np.full(len(a), panels[g])
        parts.append((p[later, a, b], a, b, here, np.array(panels)[h], swing))
    columns = [np.concatenate(column) for column in zip(*parts)] if parts else [np.zeros(0)] * 6
    whole = {"first", "second", "here", "there", "field"}
    columns.append(np.full(len(columns[0]), number))
    return {
        key: column.astype(np.int32) if key in whole else column
        for key, column in zip(COLUMNS, columns)
    }


def _swap(study: Study, field: Field, test: dict[str, Any], p: float, samplers: bool) -> Swap:
    """One test as a swap; of samplers the first in the list comes first, whichever world does."""
    a, b, g, h = (test[key] for key in ("first", "second", "here", "there"))
    if samplers and a > b:
        a, b, g, h = b, a, h, g
    at = field.points
    four = (at[g, a], at[g, b], at[h, a], at[h, b])
    return Swap(study.panels[g].task, field.names[a], field.names[b], g, h, four, p, field.budget)


def _by_task(study: Study, panels: Iterable[int]) -> list[list[int]]:
    """Panels by their task, in order."""
    tasks: dict[str, list[int]] = {}
    for panel in sorted(panels):
        tasks.setdefault(study.panels[panel].task, []).append(panel)
    return list(tasks.values())
