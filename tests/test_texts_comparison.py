"""Differences, predictions and truncation from records of texts."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwalk.bench.records import latest, load_records
from maskwalk.errors import MaskwalkError
from maskwalk.report.comparison import agreements, differences, find, predictions, truncations
from maskwalk.stats import NORMAL
from tests import fake_texts

TOP_P = "draw(top_p=0.9)"


def record(sampler: str, mode: str = "exact", **metrics: Any) -> dict[str, Any]:
    return {"sampler": sampler, "mode": mode, "metrics": metrics}


def number(value: float, se: float | None = 0.1, **more: Any) -> dict[str, Any]:
    return {"value": value, "se": se, "n": 256, **more}


def test_errors_of_independent_texts_add_in_squares() -> None:
    one = record("a", mauve=number(0.5, 0.03), entropy=number(4.0, None))
    other = record("b", mauve=number(0.6, 0.04), entropy=number(4.5, 0.1), rep1=number(0.3))
    first, second = differences(one, other)
    assert (first.metric, second.metric) == ("mauve", "entropy")  # rep1 is not in both
    assert first.value == pytest.approx(-0.1) and first.half == pytest.approx(NORMAL * 0.05)
    assert first.clear and not first.paired
    assert second.half is None and not second.clear


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.1, 3.0))
def test_replayed_passages_are_compared_one_by_one(seed: int, shift: float) -> None:
    """Passages of equal size: the paired interval is that of the mean difference."""
    rng = np.random.default_rng(seed)
    hard, noise = rng.normal(500, 80, 40), rng.normal(0, 1, 40)
    sizes = [1000] * 40
    bits = 1 / np.log(2) / 1000
    values = [hard, hard + 1000 * shift + noise]
    rows = [
        record(
            name,
            replay_bpb=number(float(v.mean() * bits), float(v.std(ddof=1) * bits / 40**0.5))
            | {"nats": v.tolist(), "bytes": sizes, "bound": False},
        )
        for name, v in zip("ab", values)
    ]
    (found,) = differences(rows[1], rows[0])
    assert found.paired and found.clear
    assert found.value == pytest.approx((values[1] - values[0]).mean() * bits)
    expected = NORMAL * (values[1] - values[0]).std(ddof=1) * bits / 40**0.5
    assert found.half == pytest.approx(expected, rel=1e-6)
    other = copy.deepcopy(rows[0])
    other["metrics"]["replay_bpb"]["bytes"][0] = 999  # not the same passages
    assert not differences(rows[1], other)[0].paired


@pytest.mark.parametrize(
    ("bounds", "named", "clear"),
    [
        ((False, False), "", True),
        ((True, False), "first", True),  # ahead, and perhaps by more
        ((False, True), "second", False),  # whose bits may be fewer still
        ((True, True), "both", False),
        ((None, None), "both", False),  # records that do not say
    ],
)
def test_a_bound_can_lead_and_cannot_be_beaten(
    bounds: tuple[bool | None, ...], named: str, clear: bool
) -> None:
    """The replay of a policy that is stochastic is an upper bound."""
    rows = [record(n, replay_bpb=number(v, 0.001)) for n, v in (("a", 1.0), ("b", 2.0))]
    for row, bound in zip(rows, bounds):
        if bound is not None:
            row["metrics"]["replay_bpb"]["bound"] = bound
    (found,), (turned,) = differences(*rows), differences(*rows[::-1])
    assert (found.bound, found.clear, turned.clear) == (named, clear, clear)


def test_ranks_are_compared_among_the_policies_of_one_draw() -> None:
    rows = [record(f"p{i}", own_bpb=number(i), mauve=number(-(i**3))) for i in range(6)]
    rows += [record("held_out", own_bpb=number(99), mauve=number(99))]
    rows += [
        record(f"p{i}", "draw(top_p=0.9)", own_bpb=number(i), mauve=number(i)) for i in range(3)
    ]
    rows += [record("left_to_right()", own_bpb=number(50), mauve=number(50))]
    (found,) = predictions(rows)  # three settings are too few; held-out text and AR no policies
    assert (found.mode, found.one, found.other) == ("exact", "own_bpb", "mauve")
    assert found.rho == pytest.approx(-1.0) and found.n == 6
    assert found.p == pytest.approx(2 / 720)  # of all orders, this one and its reverse
    level = [record(f"p{i}", own_bpb=number(i), mauve=number(1)) for i in range(6)]
    assert predictions(level) == []  # no order, no correlation


def test_a_p_value_of_few_settings_is_counted() -> None:
    from itertools import permutations

    from scipy.stats import spearmanr

    values = [3, 1, 2, 5, 4]
    rows = [record(f"p{i}", own_bpb=number(i), mauve=number(v)) for i, v in enumerate(values)]
    rhos = [spearmanr(range(5), order)[0] for order in permutations(values)]
    (found,) = predictions(rows)
    assert found.rho == pytest.approx(spearmanr(range(5), values)[0])
    assert found.p == pytest.approx(np.mean(np.abs(rhos) >= abs(found.rho) - 1e-9))


def test_truncation_is_the_second_draw_minus_the_first() -> None:
    rows = [
        record("held_out", entropy=number(5)),
        record("p", entropy=number(5.0)),
        record("q", entropy=number(5.0)),
        record("held_out", "draw(top_p=0.9)", entropy=number(5)),
        record("p", "draw(top_p=0.9)", entropy=number(4.0)),
    ]
    (only,) = truncations(rows).items()
    assert only[0] == "p" and only[1][0].value == -1.0
    with pytest.raises(MaskwalkError, match="only one draw"):
        truncations(rows[:3])


def test_agreement_is_the_rank_correlation_between_the_draws() -> None:
    rows = [record(f"p{i}", entropy=number(i), rep1=number(i)) for i in range(5)]
    rows += [
        record(f"p{i}", "draw(top_p=0.9)", entropy=number(-i), rep1=number(i**2)) for i in range(5)
    ]
    rows += [record("held_out", p, entropy=number(9)) for p in ("exact", "draw(top_p=0.9)")]
    assert agreements(rows) == {"entropy": pytest.approx(-1.0), "rep1": pytest.approx(1.0)}
    assert agreements(rows[:4] + rows[5:9]) == {}  # four policies are too few


def test_policies_are_found_by_any_spelling() -> None:
    records = fake_texts.records()
    assert find(records, "bisection( order = 4 )", "exact")["sampler"] == "bisection(order=4)"
    with pytest.raises(MaskwalkError, match="draw"):
        find(records, "bisection(order=4)", "top_k")
    with pytest.raises(MaskwalkError, match="in this run"):
        find(records, "bisection(order=77)", "exact")


def test_the_command(cli: Any, tmp_path: Any) -> None:
    import json

    lines = "".join(json.dumps(row) + "\n" for row in fake_texts.records())
    (tmp_path / "records.jsonl").write_text(lines)
    code, out, _ = cli("text", "compare", str(tmp_path), "bisection(order=4)", "random(block=8)")
    assert code == 0 and "own_bpb" in out and "±" in out
    code, out, _ = cli("text", "compare", str(tmp_path), "--json")
    assert code == 0 and json.loads(out)["predictions"]
    code, out, _ = cli("text", "compare", str(tmp_path))
    assert code == 0 and "rank correlation" in out and "bisection order 4" in out
    code, _, err = cli("text", "compare", str(tmp_path), "random(block=8)")
    assert code == 2 and "two samplers" in err


def test_a_bound_is_not_ranked_among_numbers() -> None:
    rows = latest(load_records(Path(__file__).parent.parent / "results" / "language"))
    exact = [r for r in rows if r["mode"] == "exact" and r["sampler"] != "held_out"]
    replays = [r["metrics"].get("replay_bpb") for r in exact]
    known = [r for r in replays if r and not r.get("bound", True)]
    ranked = [p for p in predictions(rows) if "replay_bpb" in (p.one, p.other)]
    assert ranked and {p.n for p in ranked} == {len(known) - 1}  # AR is another model
