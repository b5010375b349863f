"""Lighter pages: a few settings of every rule, some of the metrics."""

from typing import Any

import pytest

from maskwalk.errors import MaskwalkError
from maskwalk.report.thin import some_metrics, some_settings


def record(sampler: str, calls: float) -> Any:
    return {"sampler": sampler, "metrics": {"calls": {"value": calls}, "coherence": {"value": 1.0}}}


RECORDS = [
    *(record(f"entropy(block={b})", 24 / b) for b in (1, 2, 4, 8)),
    record("entropy(block='exponential')", 5),
    record("bisection(order=1)", 5),
    record("bisection(order=1, along='world')", 7),
    record("guided_bisection(order=1, score='entropy')", 6),
    record("guided_bisection(order=1, score='margin')", 6),
]


def test_a_few_settings_of_every_rule_from_few_calls_to_many() -> None:
    two = [r["sampler"] for r in some_settings(RECORDS, 2)]
    assert two == [
        "entropy(block=1)",
        "entropy(block=8)",
        "bisection(order=1)",
        "bisection(order=1, along='world')",
        "guided_bisection(order=1, score='entropy')",
        "guided_bisection(order=1, score='margin')",
    ]
    assert "entropy(block=4)" in [r["sampler"] for r in some_settings(RECORDS, 1)]
    assert some_settings(RECORDS, 9) == RECORDS
    with pytest.raises(MaskwalkError, match="settings must be"):
        some_settings(RECORDS, 0)


def test_some_metrics_and_nothing_else_changes() -> None:
    few = some_metrics(RECORDS, ["calls"])
    assert [list(r["metrics"]) for r in few] == [["calls"]] * len(RECORDS)
    assert [r["sampler"] for r in few] == [r["sampler"] for r in RECORDS]
    with pytest.raises(MaskwalkError, match="metric of these records"):
        some_metrics(RECORDS, ["cals"])
