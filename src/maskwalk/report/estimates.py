"""The numbers of a record as they are read: settled errors, intervals, bounds, published values.

Nothing is computed anew: an estimate is what a record holds, and its errors are those of `stats`.
"""

import math
from dataclasses import dataclass
from typing import Any

from maskwalk.bench.records import Record
from maskwalk.stats import NORMAL, combined, group_spread_se, half_width, settled_se
from maskwalk.worlds.metrics import COST, Metric

NONE = "–"
INTERVAL = "± half of a 95 % interval"  # said wherever a ± stands
SILENT_BOUND = "replay_bpb"  # a record that does not say whether it is a bound may hold one
CERTAIN = 1e-12  # half of an interval below which a number is no estimate
PLAIN = ("value", "se", "n", "by")


@dataclass(frozen=True)
class Estimate:
    """A number with its standard error; `more` holds what else the record says of it."""

    value: float
    se: float | None
    n: int | None
    more: dict[str, Any]

    @property
    def half(self) -> float | None:
        """Half of the 95 % interval."""
        return half_width(self.se)

    @property
    def bound(self) -> bool:
        """Whether it is an upper bound only."""
        return bool(self.more.get("bound"))


@dataclass(frozen=True)
class Published:
    """What a paper prints: `sd` over four groups.

    `away` is ours − theirs in combined standard errors; None where neither has an error.
    """

    value: float
    sd: float | None
    away: float | None

    @property
    def far(self) -> bool:
        """Whether ours lies outside the 95 % interval of the difference."""
        return self.away is not None and abs(self.away) > NORMAL


def finite(value: Any) -> float | None:
    """The number, or None for anything that is not a finite one."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def estimate(record: Record, metric: Metric) -> Estimate | None:
    """One metric of a record; None where the record has none."""
    per_prompt = finite(record.get("per_prompt")) or 1.0
    result = read_estimate(record["metrics"].get(metric.key), metric, per_prompt)
    if result is not None and metric.key == SILENT_BOUND:
        result.more.setdefault("bound", True)
    return result


def read_estimate(numbers: Any, metric: Metric, per_prompt: float = 1.0) -> Estimate | None:
    """The estimate in {"value", "se", "n", …}, with the error to print and to test with."""
    value = finite(numbers.get("value")) if isinstance(numbers, dict) else None
    if value is None:
        return None
    more = {
        key: number if isinstance(number, bool) else finite(number)
        for key, number in numbers.items()
        if key not in PLAIN and not isinstance(number, list)
    }
    n = finite(numbers.get("n"))
    se = settled_se(value, finite(numbers.get("se")), (n or 1.0) / per_prompt, metric.share)
    return Estimate(value, se, None if n is None else int(n), more)


def floor_of(estimate: Estimate) -> Estimate | None:
    """What as many exact sequences get, where the record says so."""
    if "floor" not in estimate.more:
        return None
    floor = finite(estimate.more["floor"])
    return (
        None if floor is None else Estimate(floor, finite(estimate.more.get("floor_se")), None, {})
    )


def published(record: Record, metric: Metric | None) -> Published | None:
    """What a record says a paper prints for this metric: value and sd, and se or z if known."""
    printed = record.get("published")
    value = finite(printed.get("value")) if isinstance(printed, dict) else None
    if value is None or metric is None or not isinstance(printed, dict):
        return None
    sd, away = finite(printed.get("sd")), finite(printed.get("z"))
    ours = estimate(record, metric)
    if away is None and ours is not None:
        se = finite(printed.get("se"))
        joint = combined(ours.se, group_spread_se(sd or 0.0) if se is None else se)
        away = (ours.value - value) / joint if joint else None
    return Published(value, sd, away)


def number(metric: Metric, value: float) -> str:
    """With the digits of its metric; a cost without a needless ".0"."""
    text = f"{value:.{metric.digits}f}"
    return text.removesuffix(".0") if metric.role == COST else text


def bounded_number(metric: Metric, estimate: Estimate) -> str:
    """ "0.932", or "≤ 1.616" for an upper bound."""
    return "≤ " * estimate.bound + number(metric, estimate.value)


def error(metric: Metric, estimate: Estimate) -> str:
    """Half of the interval; a dash if it is not known, nothing for what is certain."""
    if estimate.half is None:
        return NONE
    if metric.role == COST and not float(f"{estimate.half:.{metric.digits}f}"):
        return ""
    return half_text(estimate.half, metric.digits)


def half_text(half: float, digits: int) -> str:
    """Half of an interval as it is printed: never rounded to zero, and nothing where it is zero.

    A share of 0 or 1 has an interval (`settled_se`), so what has none is no estimate: certain.
    """
    return f"{max(half, 10.0**-digits):.{digits}f}" if half > CERTAIN else ""


def plus_minus(half: float, digits: int) -> str:
    """ " ± 0.021", or nothing."""
    text = half_text(half, digits)
    return f" ± {text}" if text else ""


def settled_value(metric: Metric, estimate: Estimate) -> float:
    """The value to compare by: what is better than exact sequences get is no better than they."""
    floor = floor_of(estimate)
    if floor is None or not metric.better:
        return estimate.value
    return metric.better * min(metric.better * estimate.value, metric.better * floor.value)


def with_interval(metric: Metric, estimate: Estimate) -> str:
    """ "0.932 ± 0.021"."""
    half = error(metric, estimate)
    return bounded_number(metric, estimate) + (f" ± {half}" if half else "")
