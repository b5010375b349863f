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
from math import erfc, sqrt

import numpy as np

from maskwalk.report.study import Estimate, Study

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


def spread(estimate: Estimate, per_prompt: int = 1) -> float:
    """The standard error used in tests.

    A coherence of exactly 0 or 1 has a plug-in error of 0, which would make any difference certain;
    it gets the error of Agresti and Coull's shrunk proportion over the prompts instead.
    """
    if estimate.se:
        return estimate.se
    n = max((estimate.n or 1) / max(per_prompt, 1), 1.0)
    share = (estimate.value * n + 2) / (n + 4)
    return sqrt(max(share * (1 - share), 0.0) / (n + 4))


def ranking_flips(study: Study, mode: int, metric: str = "coherence") -> Flips:
    """All pairs of samplers whose order differs between two graphs of one task, Holm-corrected."""
    tests: list[tuple[float, str, int, int, int, int]] = []
    comparisons = 0
    values, errors = _grids(study, mode, metric)
    for task in study.tasks:
        for g, h in combinations(study.of_task(task), 2):
            both = np.flatnonzero(~np.isnan(values[g] + values[h]))
            comparisons += len(both) * (len(both) - 1) // 2
            zg, zh = (_scores(values[p][both], errors[p][both]) for p in (g, h))
            certain = np.minimum(zg, -zh)  # how clearly: row better on g, column better on h
            for a, b in np.argwhere(certain > 0):
                p = erfc(certain[a, b] / sqrt(2))
                tests.append((p, task, int(both[a]), int(both[b]), g, h))
    best: dict[tuple[str, int, int], Flip] = {}
    floor = 0.0
    for rank, (p, task, a, b, g, h) in enumerate(sorted(tests)):
        floor = max(floor, min(1.0, p * (comparisons - rank)))
        if floor > LEVEL:
            break
        if a > b:  # one entry a pair, whichever graph comes first
            a, b, g, h = b, a, h, g
        four = tuple(float(values[p_][s]) for p_ in (g, h) for s in (a, b))
        swing = min(four[0] - four[1], four[3] - four[2])
        known = best.get((task, a, b))
        places = known.places + 1 if known else 1
        if known and known.swing >= swing:
            best[task, a, b] = Flip(**{**vars(known), "places": places})
        else:
            best[task, a, b] = Flip(
                task, a, b, g, h, (four[0], four[1], four[2], four[3]), swing, floor, places
            )
    found = sorted(best.values(), key=lambda f: (-f.swing, f.task, f.first, f.second))
    return Flips(found, comparisons)


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
