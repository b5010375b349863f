"""Questions to the records of a run on text: which of two policies, what predicts what, what a
truncated draw changes.

Differences come with 95 % intervals. Texts of two policies are treated as independent (they share
random numbers, and a comparison with held-out text its references), so standard errors add in
squares. Replay forces the same passages through every policy, so there the passages are compared
one by one, which takes out how hard each of them is (where records have them). The replay of a
stochastic policy is an upper bound: its bits may be fewer. So a lead of the policy with the bound
counts, and a lead over it does not; of two bounds nothing is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal

import numpy as np
import torch
from scipy.stats import rankdata, spearmanr

from maskwalk.bench import labels
from maskwalk.bench.records import HELD_OUT, Record
from maskwalk.errors import MaskwalkError, unknown
from maskwalk.report.arrange import AUTOREGRESSIVE
from maskwalk.report.estimates import Estimate, estimate
from maskwalk.samplers import SAMPLERS
from maskwalk.stats import NORMAL, combined
from maskwalk.worlds.metrics import COST, METRICS, QUALITY, Metric
from maskwalk.worlds.text.metrics import bits_per_byte

FEWEST, FEW = 5, 8  # settings below which ranks say nothing; up to which p is counted exactly
Which = Literal["", "first", "second", "both"]


@dataclass(frozen=True)
class Difference:
    """A metric of one setting minus that of another."""

    metric: str
    value: float
    half: float | None  # of the 95 % interval
    paired: bool = False
    bound: Which = ""  # which of the two is only an upper bound

    @property
    def clear(self) -> bool:
        """Whether the interval leaves zero out, whatever a bound hides."""
        if self.half is None or abs(self.value) <= self.half or self.bound == "both":
            return False
        return self.bound != ("first" if self.value > 0 else "second")


@dataclass(frozen=True)
class Prediction:
    """Spearman's rank correlation of two metrics over the settings that have both."""

    mode: str
    one: str
    other: str
    rho: float
    p: float
    n: int


def find(records: Sequence[Record], sampler: str, mode: str) -> Record:
    """The record of a policy under a draw."""
    spec = sampler if sampler == HELD_OUT else SAMPLERS.canonical(sampler)
    here = {r["sampler"]: r for r in records if r["mode"] == mode}
    if not here:
        raise unknown("draw", mode, sorted({r["mode"] for r in records}))
    if spec not in here:
        raise unknown(f"sampler in this run under {mode}:", spec, here)
    return here[spec]


def _metrics(records: Sequence[Record]) -> list[Metric]:
    """The metrics with figures of their own that some record holds, as a table would order them."""
    described = {
        key: METRICS.describe(key, record.get("described"))
        for record in records
        for key, numbers in record["metrics"].items()
        if numbers
    }
    order = {key: i for i, key in enumerate(METRICS)}
    metrics = [m for m in described.values() if m.drawn and m.role != COST]
    return sorted(metrics, key=lambda m: order.get(m.key, len(order)))


def _value(record: Record, metric: Metric) -> float | None:
    """The number to rank by; a bound has no place among numbers."""
    number = estimate(record, metric)
    return None if number is None or number.bound else number.value


def differences(one: Record, other: Record) -> list[Difference]:
    """one − other in every metric both have."""
    rows = []
    for metric in _metrics([one, other]):
        a, b = estimate(one, metric), estimate(other, metric)
        if a and b:
            pair = _paired(one["metrics"][metric.key], other["metrics"][metric.key])
            errors = [a.se, b.se] if pair is None else [pair]
            half = None if None in errors else NORMAL * combined(*errors)
            value = a.value - b.value
            rows.append(Difference(metric.key, value, half, pair is not None, _bounded(a, b)))
    return rows


def _bounded(a: Estimate, b: Estimate) -> Which:
    """Which of two are bounds."""
    if a.bound and b.bound:
        return "both"
    return "first" if a.bound else "second" if b.bound else ""


def _paired(a: Any, b: Any) -> float | None:
    """The standard error, passage by passage, if both went through the same passages."""
    if "nats" not in a or "nats" not in b or a["bytes"] != b["bytes"]:
        return None
    first, second = (torch.tensor(x["nats"], dtype=torch.float64) for x in (a, b))
    return bits_per_byte(first - second, torch.tensor(a["bytes"])).se


def _asked(records: Sequence[Record]) -> list[tuple[Metric, Metric]]:
    """Does the first predict the second? Every metric the quality, and those with a direction."""
    metrics = _metrics(records)
    goals = sorted((m for m in metrics if m.better), key=lambda m: m.role != QUALITY)
    return [
        (one, goal)
        for i, goal in enumerate(goals)
        for one in metrics
        if one != goal and one not in goals[:i]
    ]


def predictions(records: Sequence[Record]) -> list[Prediction]:
    """Does one metric put the policies in the order of another?"""
    rows = []
    apart = (HELD_OUT, AUTOREGRESSIVE)  # another model, not another policy of one
    for mode in dict.fromkeys(r["mode"] for r in records):
        policies = [
            r for r in records if r["mode"] == mode and labels.read(r["sampler"]).name not in apart
        ]
        for one, other in _asked(records):
            both = [(_value(r, one), _value(r, other)) for r in policies]
            pairs = [(a, b) for a, b in both if a is not None and b is not None]
            if len(pairs) >= FEWEST and _vary(pairs):
                rho, p = _ranks(pairs)
                rows.append(Prediction(mode, one.key, other.key, rho, p, len(pairs)))
    return rows


def _vary(pairs: list[tuple[float, float]]) -> bool:
    """Whether both columns have an order at all."""
    return all(len(set(column)) > 1 for column in zip(*pairs))


def _ranks(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """Spearman's correlation and its p-value."""
    one, other = (rankdata(column) for column in np.array(pairs).T)
    correlation: Any = spearmanr(one, other)
    rho = float(correlation.statistic)
    if len(pairs) > FEW:
        return rho, float(correlation.pvalue)
    # Few settings: all their orders are counted, the usual approximation is far off.
    orders = np.array(list(permutations(one))) - one.mean()
    spread = one.std() * other.std() * len(pairs)
    every = orders @ (other - other.mean()) / spread
    return rho, float((np.abs(every) >= abs(rho) - 1e-9).mean())


def agreements(records: Sequence[Record]) -> dict[str, float]:
    """Rank correlation of the policies under the first draw with those under the second."""
    first, second = _by_mode(records)
    both = [s for s in first if s in second and s != HELD_OUT]
    correlations = {}
    for metric in _metrics(records):
        numbers = [(_value(first[s], metric), _value(second[s], metric)) for s in both]
        pairs = [(a, b) for a, b in numbers if a is not None and b is not None]
        if len(pairs) >= FEWEST and _vary(pairs):
            correlations[metric.key] = _ranks(pairs)[0]
    return correlations


def _by_mode(records: Sequence[Record]) -> list[dict[str, Record]]:
    """The records of the first two draws, by sampler."""
    modes = list(dict.fromkeys(r["mode"] for r in records))
    if len(modes) < 2:
        raise MaskwalkError(f"This run has only one draw, {', '.join(modes)}: nothing to compare.")
    return [{r["sampler"]: r for r in records if r["mode"] == mode} for mode in modes[:2]]


def truncations(records: Sequence[Record]) -> dict[str, list[Difference]]:
    """For every policy under two draws: the second minus the first, in every metric."""
    first, second = _by_mode(records)
    both = [s for s in first if s in second and s != HELD_OUT]
    return {s: differences(second[s], first[s]) for s in both}
