"""Which samplers change places between graphs, beyond the noise.

Samplers A and B flip between graphs g and h when A is better on g and B on h. Both differences must
hold, so the p-value of the flip is the larger of the two (intersection-union), doubled because
either order would count: p = erfc(min(|z_g|, |z_h|) / √2), z = difference / √(se_A² + se_B²).
Holm's step-down over all pairs of samplers × pairs of graphs × tasks of a mode then bounds the
chance of a single false flip by 5 %, whatever their dependence. Samplers share prompts, so the
errors are, if anything, too big.
"""

from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np
from scipy.special import erfc

from maskwalk.report.study import Study, spread
from maskwalk.stats import holm

LEVEL = 0.05


@dataclass(frozen=True)
class Flip:
    """The clearest flip of a pair of samplers: `first` wins on `here`, `second` on `there`."""

    task: str
    first: int
    second: int
    here: int
    there: int
    values: tuple[float, float, float, float]  # first, second here; first, second there
    swing: float  # the smaller of the two differences
    p: float  # corrected
    places: int  # significant pairs of graphs for these two samplers


@dataclass(frozen=True)
class Flips:
    """The significant flips of a mode, the widest first, and the number of comparisons made."""

    found: list[Flip]
    comparisons: int
    of: str = "samplers"


def ranking_flips(study: Study, mode: int, metric: str = "coherence") -> Flips:
    """All pairs of samplers whose order differs between two graphs of one task, Holm-corrected."""
    values, errors = _grids(study, mode, metric)
    comparisons, parts = 0, [np.empty((0, 5))]
    for task in study.tasks:
        for g, h in combinations(study.of_task(task), 2):
            both = np.flatnonzero(~np.isnan(values[g] + values[h]))
            comparisons += len(both) * (len(both) - 1) // 2
            zg, zh = (_scores(values[p][both], errors[p][both]) for p in (g, h))
            certain = np.minimum(zg, -zh)  # how clearly: row better on g, column better on h
            a, b = np.nonzero(certain > 0)
            here, there = np.full(len(a), g), np.full(len(a), h)
            p = erfc(certain[a, b] / sqrt(2))
            parts.append(np.stack([p, both[a], both[b], here, there], 1))
    tests = np.concatenate(parts)
    corrected = holm(tests[:, 0], comparisons)
    tests, corrected = tests[corrected <= LEVEL], corrected[corrected <= LEVEL]
    return Flips(_widest(study, values, tests[:, 1:].astype(int), corrected), comparisons)


def _widest(study: Study, values: np.ndarray, tests: np.ndarray, p: np.ndarray) -> list[Flip]:
    """One flip for every pair of samplers and task: the pair of graphs with the widest swing."""
    a, b, g, h = tests.T
    turned = a > b  # one entry a pair, whichever graph comes first
    a, b = np.where(turned, b, a), np.where(turned, a, b)
    g, h = np.where(turned, h, g), np.where(turned, g, h)
    four = np.stack([values[g, a], values[g, b], values[h, a], values[h, b]], 1)
    swing = np.minimum(four[:, 0] - four[:, 1], four[:, 3] - four[:, 2])
    tasks = np.array([study.tasks.index(panel.task) for panel in study.panels], dtype=int)
    order = np.lexsort((-swing, b, a, tasks[g]))
    keys = np.stack([tasks[g], a, b], 1)[order]
    _, first, places = np.unique(keys, axis=0, return_index=True, return_counts=True)
    found = [
        Flip(
            study.panels[g[i]].task, int(a[i]), int(b[i]), int(g[i]), int(h[i]),
            (float(four[i, 0]), float(four[i, 1]), float(four[i, 2]), float(four[i, 3])),
            float(swing[i]), float(p[i]), int(n),
        )
        for i, n in zip(order[first], places)
    ]  # fmt: skip
    return sorted(found, key=lambda f: (-f.swing, f.task, f.first, f.second))


def _grids(study: Study, mode: int, metric: str) -> tuple[np.ndarray, np.ndarray]:
    shape = (len(study.panels), len(study.samplers))
    values, errors = np.full(shape, np.nan), np.full(shape, np.nan)
    for (m, p, s), record in study.cells.items():
        held = study.estimate(m, p, s, metric)
        if m == mode and held:
            values[p, s] = held.value
            errors[p, s] = spread(held, record.get("per_prompt") or 1)
    return values, errors


def _scores(values: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """z of every difference, row minus column."""
    joint = np.sqrt(errors[:, None] ** 2 + errors[None, :] ** 2)
    gap = values[:, None] - values[None, :]
    scores: np.ndarray = np.divide(gap, joint, out=np.zeros_like(gap), where=joint > 0)
    return scores
