"""What a search found: the best setting by each measure, what is not told apart, the front.

The best is the best among those that keep the budget. Against it every other setting is tested,
passage by passage where each one's nats are known, and Holm's correction counts the comparisons;
what is left above 5 % is not told apart. The likelihood of a stochastic policy is an upper bound
and is compared as it stands: such a policy may be better than shown, not worse. A shaped rule (†)
may look good because its sequences are others than the law's: it is measured and never the best.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maskwalk.decoding.kinds import SHAPED
from maskwalk.stats import LEVEL, combined, holm, normal_difference, pareto_front, two_sided

MEASURES = ("likelihood", "quality")
SLACK = 1e-9
Row = dict[str, Any]


@dataclass(frozen=True)
class Choice:
    """The best by one measure, and those that are not told apart from it."""

    measure: str
    best: str
    level: tuple[str, ...]


def within(rows: Sequence[Row], calls: float) -> list[Row]:
    """The settings that keep a budget on average."""
    return [row for row in rows if row["calls"]["value"] <= calls + SLACK]


def value(row: Row, measure: str) -> float | None:
    """A measured number, more being better; None where there is none."""
    found = row.get(measure)
    if found is None or found["value"] is None:
        return None
    return float(found["value"]) * int(found["better"])


def choose(rows: Sequence[Row], measure: str) -> Choice | None:
    """The best by a measure among the rows, and what is not told apart from it."""
    known = [row for row in rows if value(row, measure) is not None and row["kind"] != SHAPED]
    if not known:
        return None
    best = max(known, key=lambda row: (value(row, measure), -row["calls"]["value"]))
    others = [row for row in known if row is not best]
    p = holm(np.array([_same(best, other, measure) for other in others], dtype=np.float64))
    level = tuple(row["sampler"] for row, each in zip(others, p) if each > LEVEL)
    return Choice(measure, best["sampler"], level)


def _same(best: Row, other: Row, measure: str) -> float:
    """The p-value of no difference; paired where every passage's nats are known."""
    one, two = best[measure], other[measure]
    if one.get("each") and two.get("each") and len(one["each"]) == len(two["each"]):
        return normal_difference(np.array(one["each"]) - np.array(two["each"])).p
    difference = float(one["value"]) - float(two["value"])
    se = combined(one["se"], two["se"])
    if se == 0.0:
        return float(difference == 0.0)
    return two_sided(difference / se)


def front(rows: Sequence[Row], measure: str) -> list[str]:
    """The settings that none with as few calls is better than, by calls."""
    known = [row for row in rows if value(row, measure) is not None and row["kind"] != SHAPED]
    points = [(row["calls"]["value"], float(value(row, measure) or 0.0)) for row in known]
    return [known[i]["sampler"] for i in pareto_front(points, 1)]


def summary(rows: Sequence[Row], budgets: Sequence[int]) -> Row:
    """Everything a reader needs: the rows, the best at every budget, the fronts."""
    chosen: list[Row] = []
    for calls in budgets:
        for measure in MEASURES:
            choice = choose(within(rows, calls), measure)
            if choice is not None:
                chosen.append(
                    {"calls": calls, "by": measure, "best": choice.best, "level": choice.level}
                )
    fronts = {measure: front(rows, measure) for measure in MEASURES}
    return {"best": chosen, "front": fronts, "settings": list(rows)}
