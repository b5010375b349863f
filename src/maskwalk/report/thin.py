"""Fewer records for a lighter page: a few settings of every rule, and some of the metrics."""

from collections.abc import Collection, Sequence
from typing import cast

from maskwalk.bench.law_cells import only_law
from maskwalk.bench.records import HELD_OUT, Record
from maskwalk.errors import unknown, whole
from maskwalk.specs import Spec, parse
from maskwalk.worlds.metrics import METRICS


def some_settings(records: Sequence[Record], most: int) -> list[Record]:
    """At most so many settings of every rule, from its fewest calls to its most.

    A rule is a sampler with its parameters in words (a score, a direction); numbers are settings.
    """
    whole("settings", most, 1)
    cost: dict[str, list[float]] = {}
    for record in records:
        if only_law(record):
            continue
        calls = record["metrics"].get(METRICS.cost.key) or {}
        cost.setdefault(record["sampler"], []).append(calls.get("value") or 0.0)
    mean = {sampler: sum(calls) / len(calls) for sampler, calls in cost.items()}
    rules: dict[str, list[str]] = {}
    for sampler in sorted(mean, key=lambda sampler: mean[sampler]):
        rules.setdefault(_rule(sampler), []).append(sampler)
    kept = {sampler for curve in rules.values() for sampler in _spread(curve, most)}
    return [record for record in records if record["sampler"] in kept or only_law(record)]


def some_metrics(records: Sequence[Record], names: Collection[str]) -> list[Record]:
    """The same records with these metrics only; what says how far others are from the law stays."""
    known = {key for record in records for key in record["metrics"]}
    for name in names:
        if name not in known:
            raise unknown("metric of these records:", name, known)
    return [record if only_law(record) else _with(record, names) for record in records]


def _with(record: Record, names: Collection[str]) -> Record:
    metrics = {key: value for key, value in record["metrics"].items() if key in names}
    return cast(Record, {**record, "metrics": metrics})


def _rule(sampler: str) -> str:
    """A sampler's name with what it says in words."""
    if sampler == HELD_OUT:
        return sampler
    spec = parse(sampler)
    words = {k: v for k, v in spec.kwargs.items() if isinstance(v, str) and k != "block"}
    return str(Spec(spec.name, (), words))


def _spread(curve: list[str], most: int) -> list[str]:
    """At most so many, evenly; of one, the middle."""
    if len(curve) <= most:
        return curve
    if most == 1:
        return [curve[(len(curve) - 1) // 2]]
    return [curve[round(i * (len(curve) - 1) / (most - 1))] for i in range(most)]
