"""Statistics: each estimate, interval and front against a closed form or a simulation."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import norm

from maskwalk import stats


def test_half_of_a_95_percent_interval() -> None:
    assert norm.ppf(0.975) == pytest.approx(stats.NORMAL, abs=1e-12)
    assert stats.half_width(0.1) == pytest.approx(0.19599640)
    assert stats.half_width(None) is None


def test_a_share_of_exactly_zero_or_one_is_not_certain() -> None:
    """Agresti and Coull over the prompts; any other share keeps its own error."""
    expected = math.sqrt((2 / 132) * (130 / 132) / 132)
    for value in (0.0, 1.0):
        assert stats.settled_se(value, 0.0, 128) == pytest.approx(expected)
        assert stats.settled_se(value, None, 128) == pytest.approx(expected)
        assert stats.settled_se(value, 0.0, 128, share=False) == 0.0
    assert stats.half_width(stats.settled_se(1.0, 0.0, 128)) == pytest.approx(0.0208, abs=1e-4)
    assert stats.settled_se(0.5, 0.04, 128) == 0.04 and stats.settled_se(0.5, None, 128) is None
    # The more prompts the surer, and never without an error.
    errors = [stats.settled_se(1.0, 0.0, n) or 0.0 for n in (1, 8, 64, 512)]
    assert errors == sorted(errors, reverse=True) and errors[-1] > 0


def test_the_published_spread_is_turned_into_the_error_of_the_mean() -> None:
    rng = np.random.default_rng(0)
    means = rng.normal(0.0, 1.0, (20_000, 4))
    printed = means.std(axis=1)  # numpy's default, as papers print it
    errors = np.array([stats.group_spread_se(s) for s in printed])
    assert np.mean(errors**2) == pytest.approx(means.mean(axis=1).var(), rel=0.03)


def test_an_estimate_of_values_is_clustered_by_prompt() -> None:
    values, prompts = torch.tensor([0.0, 0.0, 1.0, 1.0]), torch.tensor([0, 0, 1, 1])
    assert stats.Estimate.of(values, prompts).se == pytest.approx(0.5)  # two units: 0 and 1
    assert stats.Estimate.of(values).se == pytest.approx(math.sqrt(1 / 3) / 2)


def test_ratio_and_mean_agree_for_equal_sizes() -> None:
    amounts = torch.tensor([1.0, 4.0, 2.0, 5.0])
    plain = stats.plain_mean(amounts / 2)
    found = stats.ratio(amounts, torch.full((4,), 2))
    assert (found.value, found.n) == (plain.value, 4)
    assert found.se == pytest.approx(plain.se)


def test_balanced_halves_give_the_standard_error_of_a_mean() -> None:
    values = np.random.default_rng(1).normal(size=16)
    sides = stats.half_splits(16)
    assert np.array_equal(sides @ sides.T, 16 * np.eye(15)) and not sides.sum(1).any()
    first, second = ((sides == which) @ values / 8 for which in (1, -1))
    assert stats.half_split_se(first, second) == pytest.approx(values.std(ddof=1) / 4)


@pytest.mark.parametrize(("n", "groups"), [(1, 1), (2, 2), (3, 2), (15, 8), (16, 16), (999, 16)])
def test_groups_are_a_power_of_two(n: int, groups: int) -> None:
    assert stats.split_groups(n) == groups


def test_weights_make_exact_sums() -> None:
    values, weights = torch.tensor([1.0, 3.0]), torch.tensor([0.25, 0.75])
    assert stats.weighted_mean(values, weights) == (2.5, 0.0)
    mean, error = stats.weighted_mean(values, None)
    assert mean == 2.0 and error == pytest.approx(1.0)
    assert math.isnan(stats.weighted_mean(torch.tensor([1.0, math.inf]), None)[1])


def test_steps_of_a_front_that_are_noise_are_left_out() -> None:
    points = [(1.0, 0.2), (2.0, 0.25), (4.0, 0.9), (3.0, 0.1)]
    front = stats.pareto_front(points, 1)
    assert front == [0, 1, 2]
    values, errors = [value for _, value in points], [0.05] * 4
    assert stats.clear_steps(values, errors, front, 1) == [0, 2]
    assert stats.clear_steps(values, [0.01] * 4, front, 1) == [0, 1, 2]
    assert stats.pareto_front(points, -1) == [0, 3]


def test_estimates_write_nan_as_null() -> None:
    shown = stats.Estimate(1.0, math.nan, 3, {"by": [1], "spread": math.nan}).as_dict()
    assert shown == {"value": 1.0, "se": None, "n": 3, "by": [1], "spread": None}
