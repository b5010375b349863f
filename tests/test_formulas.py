"""Small formulas that a verdict or a report rests on, each with numbers worked out by hand."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from maskwalk.analysis.losses import _rounds, least
from maskwalk.analysis.replay import Replayed
from maskwalk.bench.kinds import Departures
from maskwalk.bench.plan import Job, Plan
from maskwalk.bench.verdict.law import departure
from maskwalk.bench.verdict.outcomes import Outcome
from maskwalk.bench.verdict.read import EVALUATION, SETTING
from maskwalk.bench.verdict.result import Evaluation
from maskwalk.bench.verdict.verdict import Comparison
from maskwalk.bench.verdict.words import _listed, calls
from maskwalk.reading import Wrong, number, table
from maskwalk.report.estimates import Estimate
from maskwalk.report.points import Point, beyond_noise
from maskwalk.report.series import Line, Series, _shared
from maskwalk.report.series import Point as OnLine
from maskwalk.report.standings import _budgets
from maskwalk.report.study import Study
from maskwalk.report.summary import _gap
from maskwalk.worlds.exact.chance import pick, sparse_rows
from maskwalk.worlds.metrics import METRICS

NONE = np.zeros(1)


# ---- the distance to the law


def measured(value: float, se: float) -> Outcome:
    record: Any = {"sampler": "s", "metrics": {"rank_tv": {"value": value, "se": se, "n": 1}}}
    return Outcome(record, NONE, NONE)


def test_a_departures_p_value_is_one_sided() -> None:
    """To be nearer to the law than the reference is no evidence of being off it."""
    above, below = measured(0.2, 0.03), measured(0.1, 0.04)
    far, near = departure(above, below), departure(below, above)
    assert far is not None and near is not None
    assert far.p == pytest.approx(0.02275, abs=1e-4) and near.p == pytest.approx(0.97725, abs=1e-4)
    assert far.value == pytest.approx(0.1) and near.value == pytest.approx(-0.1)


def test_a_departures_error_is_of_both() -> None:
    found = departure(measured(0.2, 0.03), measured(0.1, 0.04))
    assert found is not None
    assert found.high - found.value == pytest.approx(1.96 * 0.05, abs=1e-4)
    assert found.value - found.low == pytest.approx(1.96 * 0.05, abs=1e-4)


def test_the_reference_of_the_law_is_left_to_right_whatever_comes_first() -> None:
    """Not the first by name, nor the first of the file."""

    def record(sampler: str, kind: str, value: float) -> Any:
        about = {"world": "w", "task": "t", "denoiser": "d", "count": 8, "per_prompt": 1}
        metrics = {"rank_tv": {"value": value, "se": 0.0, "n": 8}}
        return {**about, "sampler": sampler, "kind": kind, "metrics": metrics}

    shaped = record("p2()", "shaped", 0.5)
    others = [
        record("entropy(block=1)", "exact", 0.1),
        record("left_to_right()", "exact", 0.2),
        record("random(block=1)", "exact", 0.3),
    ]
    for some in (others, others[::-1]):
        found = Departures([shaped, *some]).of(shaped)
        assert found is not None and found.value == pytest.approx(0.3)


# ---- points beyond the noise


def point(score: float, se: float = 0.1) -> Point:
    return Point(sampler=0, panel=0, value=score, se=se, cost=1.0, cost_max=1.0)


def test_the_widest_of_many_pairs_is_measured_by_their_number() -> None:
    """A gap of 2.5 errors is beyond the noise of one comparison, not of the widest of 50."""
    pair = (point(0.0), point(2.5 * 0.1 * 2**0.5))
    assert beyond_noise([pair]) == [pair] and beyond_noise([pair], 1) == [pair]
    assert beyond_noise([pair], 50) == []


def test_a_difference_counts_in_either_direction_and_needs_no_error() -> None:
    up, down = (point(0.0), point(1.0)), (point(1.0), point(0.0))
    assert beyond_noise([up, down]) == [up, down]
    same, apart = (point(0.5, 0), point(0.5, 0)), (point(0.5, 0), point(0.6, 0))
    assert beyond_noise([same, apart]) == [apart]
    assert replace(point(0.3), sign=-1).score == -0.3


def test_the_widest_gap_of_a_crowd_is_one_of_many() -> None:
    """Eleven samplers at equal cost are 55 pairs; the ends of such a crowd differ by chance."""
    study = object.__new__(Study)  # nothing is said, so nobody is named
    crowd = [point(0.25 * 2**0.5 * k / 10) for k in range(11)]
    assert _gap(study, METRICS.cost, crowd) is None


# ---- what has to be run


def test_a_result_without_its_files_or_of_another_cell_is_run_again(tmp_path: Path) -> None:
    job = Job("k", "cell", {}, says={"sampler": "s"}, metrics=("a", "b"), writes=(tmp_path / "f",))
    row = {"key": "k", "sampler": "s", "metrics": {"b": 1, "a": 2}}
    assert Plan.of([job], [row]).todo == [job]  # its file is missing
    (tmp_path / "f").write_text("")
    assert Plan.of([job], [row]).todo == []
    assert Plan.of([job], [{**row, "metrics": {"a": 2}}]).todo == [job]
    assert Plan.of([job], [{**row, "sampler": "other"}]).todo == [job]
    assert Plan.of([job], [row, {**row, "sampler": "other"}]).todo == [job]  # the newest counts


# ---- words


def test_numbers_and_lists_in_words() -> None:
    assert [calls(n) for n in (1.0, 1.001, 5.0)] == ["1 call", "1 call", "5 calls"]
    assert _listed(["a"], 1) == "a" and _listed(["a", "b"], 2) == "every structure"
    assert _listed(["a", "b", "c"], 4) == "a, b and c"


# ---- shapes of what is read


def test_the_ends_of_a_range_are_in_it() -> None:
    share = number(0, 1)
    for fine in (0, 1, 0.5):
        share(fine)
    for wrong in (-0.001, 1.001, float("nan"), True, "1", None):
        with pytest.raises(Wrong):
            share(wrong)
    row = table({"a": share, "b": share}, ("a",))
    row({"a": 1})
    with pytest.raises(Wrong):
        row({"b": 1})


# ---- what an evaluation says, and how it is read back


def test_what_a_truncated_draw_leaves_out_is_said_from_least_to_most() -> None:
    def said(draw: str, *lost: float) -> str:
        rows = tuple(object.__new__(Comparison) for _ in lost)
        for row, x in zip(rows, lost):
            object.__setattr__(row, "loss", {"lost": x})
        return Evaluation("p", "own", ("p",), {}, rows, {}, 0.0, draw)._left_out()

    assert said("draw(floor=0.2)", 0.25, 0.5, 0.1).endswith(
        "make 10% to 50% of the law's sequences."
    )
    assert said("draw(floor=0.2)", 0.25, 0.25).endswith("make 25% of the law's sequences.")
    assert said("draw(floor=0.2)", 0.0) == said("exact", 0.25) == ""


def test_an_edited_evaluation_is_refused() -> None:
    fine = {"setting": "s", "calls": 3, "coherence": 1.0, "position": "on", "p_holm": 1}
    SETTING(fine)
    for key, value in (("coherence", 1.1), ("calls", -1), ("p_holm", 1.5), ("position", None)):
        with pytest.raises(Wrong):
            SETTING({**fine, key: value})
    with pytest.raises(Wrong):
        EVALUATION({"policy": "p"})


# ---- losses


def test_the_least_loss_for_calls_between_two_plans_is_their_mixture() -> None:
    nats = {1: 8.0, 4: 2.0, 5: 1.0}

    def plans(calls: int) -> Any:
        return SimpleNamespace(nats=nats[calls])

    assert least(plans, 4.0) == 2.0 and least(plans, 4.25) == pytest.approx(1.75)
    assert least(plans, 0.5) == 8.0


def test_rounds_add_up_to_the_loss() -> None:
    """Three walks of three positions; the first position of the last walk is given."""
    where = torch.tensor([[0, 1, 0], [0, 1, 0], [-1, 0, 1]])
    cost = torch.tensor([[1.0, 2.0, 4.0], [1.0, 2.0, 4.0], [0.0, 8.0, 16.0]], dtype=torch.float64)
    replayed = Replayed(where, -cost, torch.tensor([2, 2, 2]), False, None, {"dependence": cost})
    first, second = _rounds(replayed)
    assert first["dependence"] == pytest.approx((5 + 5 + 8) / 3) == first["nll"]
    assert second["dependence"] == pytest.approx((2 + 2 + 16) / 3)
    assert first["positions"] == [0, 2] and first["share"] == pytest.approx(2 / 3)
    assert first["cost"] == pytest.approx(5) and first["revealed"] == pytest.approx(5 / 3)
    assert first["walks"] == 1.0 and first["denoiser"] is None


# ---- worlds


def test_a_pick_is_the_first_option_above_its_share() -> None:
    weights = np.array([[1.0, 0.0, 3.0]] * 4).cumsum(1)
    assert pick(weights, np.array([0.0, 0.2499, 0.25, 0.9999])).tolist() == [0, 0, 2, 2]


def test_random_rows_are_distributions_with_so_many_entries() -> None:
    rows = sparse_rows(5, 7, 3, seed=1, stream=2, chained=True)
    assert np.allclose(rows.sum(1), 1) and ((rows > 0).sum(1) == 3).all()
    assert all(rows[i, i + 1] > 0 for i in range(5))


# ---- lines and words of a report


def test_an_axis_of_powers_is_logarithmic() -> None:
    def over(*places: float) -> Series:
        points = [OnLine(x, Estimate(1.0, None, 1, {}), 0) for x in places]
        return Series("a", "t", "t", METRICS.cost, [], [Line(0, "l", "f", points)])

    assert over(1, 4, 16).logarithmic and not over(1, 4, 15).logarithmic
    assert not over(0, 4, 64).logarithmic and not over(1, 64).logarithmic
    assert over(16, 1, 4, 4).values == [1, 4, 16]


def test_titles_share_their_first_words() -> None:
    assert _shared(["Chain, m = 1", "Chain, m = 10"]) == "Chain, m ="
    assert _shared(["Tree", "Chain"]) == "Tree / Chain" and _shared(list("abcd")) == "4 worlds"
    assert _budgets([4.0, 8.0, 2.5]) == "4, 8 and 2.5"
