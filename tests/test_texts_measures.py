"""Entropy, repetition and estimates over texts, against closed forms and plain counting."""

import warnings
from collections import Counter
from math import exp, log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from maskwalk.errors import MaskwalkError
from maskwalk.stats import plain_mean
from maskwalk.worlds.text.mauve import _area, mauve
from maskwalk.worlds.text.metrics import (
    bits_per_byte,
    perplexity,
    repetition,
    token_entropy,
)

rectangles = st.tuples(st.integers(1, 5), st.integers(1, 12)).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(0, 4), min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    )
)


@given(rectangles)
def test_entropy_is_that_of_the_counted_frequencies(rows: list[list[int]]) -> None:
    found = token_entropy(torch.tensor(rows))
    assert found.dtype == torch.float64
    for row, value in zip(rows, found.tolist()):
        shares = [count / len(row) for count in Counter(row).values()]
        assert value == pytest.approx(-sum(f * log(f) for f in shares), abs=1e-12)


def test_entropy_of_a_constant_text_is_zero_and_of_different_tokens_log_length() -> None:
    found = token_entropy(torch.stack([torch.full((256,), 8191), torch.arange(256) * 30]))
    assert found[0] == 0
    assert found[1].item() == pytest.approx(log(256))


@given(rectangles, st.integers(1, 4))
def test_repetition_counts_n_grams_that_came_before(rows: list[list[int]], n: int) -> None:
    if len(rows[0]) < n:
        with pytest.raises(MaskwalkError, match=f"have no {n}-grams"):
            repetition(torch.tensor(rows), n)
        return
    for row, value in zip(rows, repetition(torch.tensor(rows), n).tolist()):
        grams = [tuple(row[i : i + n]) for i in range(len(row) - n + 1)]
        seen_before = sum(gram in grams[:i] for i, gram in enumerate(grams))
        assert value == pytest.approx(seen_before / len(grams), abs=1e-12)


def test_repetition_of_long_n_grams_of_a_large_vocabulary() -> None:
    """50,257⁵ does not fit into 64 bits."""
    once = torch.arange(50_257 - 60, 50_257)
    found = repetition(torch.stack([torch.cat([once, once]), torch.arange(120) * 400]), 5)
    assert found.tolist() == pytest.approx([56 / 116, 0])  # 60 of 116 5-grams are different


def test_measures_refuse_what_they_cannot_measure() -> None:
    with pytest.raises(MaskwalkError, match="n must be a whole number at least 1"):
        repetition(torch.zeros((2, 3), dtype=torch.int64), 0)
    with pytest.raises(MaskwalkError, match="length of texts"):
        token_entropy(torch.zeros((2, 0), dtype=torch.int64))
    with pytest.raises(MaskwalkError, match="nothing to measure"):
        bits_per_byte(torch.zeros(0), torch.zeros(0, dtype=torch.int64))
    with pytest.raises(MaskwalkError, match="nothing to measure"):
        perplexity(torch.zeros(2), torch.zeros(2, dtype=torch.int64))


def test_estimate_is_the_mean_with_the_usual_standard_error() -> None:
    values = torch.tensor([1.0, 2.0, 4.0, 9.0])
    expected = float(values.double().std() / 2)
    assert plain_mean(values).as_dict() == {"value": 4.0, "se": pytest.approx(expected), "n": 4}
    assert plain_mean(torch.tensor([3])).as_dict() == {"value": 3.0, "se": None, "n": 1}


positive = st.lists(st.tuples(st.floats(0.1, 500), st.integers(1, 400)), min_size=2, max_size=20)


@given(positive)
def test_perplexity_and_bits_are_ratios_of_totals(pairs: list[tuple[float, int]]) -> None:
    nats = torch.tensor([a for a, _ in pairs], dtype=torch.float64)
    sizes = torch.tensor([b for _, b in pairs])
    ratio = float(nats.sum() / sizes.sum())
    bits = bits_per_byte(nats, sizes)
    assert bits.value == pytest.approx(ratio / log(2))
    assert bits.n == len(pairs)
    if ratio < 300:
        found = perplexity(nats, sizes)
        assert found.value == pytest.approx(exp(ratio))
        assert found.se == pytest.approx(exp(ratio) * bits.se * log(2), rel=1e-6)


@given(positive)
def test_standard_error_of_a_ratio_is_the_textbook_one(pairs: list[tuple[float, int]]) -> None:
    nats, sizes = (np.array(column, dtype=np.float64) for column in zip(*pairs))
    n, ratio = len(pairs), nats.sum() / sizes.sum()
    expected = np.sqrt(n / (n - 1) * ((nats - ratio * sizes) ** 2).sum()) / sizes.sum() / log(2)
    found = bits_per_byte(torch.from_numpy(nats), torch.tensor([b for _, b in pairs]))
    assert found.se == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_standard_error_of_perplexity_is_what_repeated_samples_show() -> None:
    generator = np.random.default_rng(0)
    values, errors = [], []
    for _ in range(400):
        sizes = generator.integers(100, 300, 64)
        nats = sizes * 3 + generator.normal(0, 60, 64)
        found = perplexity(torch.from_numpy(nats), torch.from_numpy(sizes))
        values.append(found.value)
        errors.append(found.se)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.1)


def cloud(count: int, shift: float, seed: int) -> np.ndarray:
    """Features of a mixture of ten kinds of text, moved by `shift`."""
    kinds = np.random.default_rng(99).normal(size=(10, 16))
    generator = np.random.default_rng(seed)
    found = kinds[generator.integers(0, 10, count)] + 0.5 * generator.normal(size=(count, 16))
    found[:, 0] += shift
    return found.astype(np.float32)


def test_mauve_is_near_one_for_one_law_and_small_for_another(
    capfd: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("mauve")
    reference = cloud(300, 0.0, 1)
    same, some, far = (mauve(cloud(200, shift, 2), reference) for shift in (0.0, 1.0, 8.0))
    assert same.value > 0.9 > some.value > far.value
    assert far.value < 0.05
    assert 0 < same.se < 0.1 and 0 < some.se < 0.3
    assert (same.n, same.extra["references"], same.extra["buckets"]) == (200, 300, 20)
    assert mauve(cloud(200, 1.0, 2), reference) == some  # the same seed, the same number
    assert capfd.readouterr() == ("", "")


def test_mauve_of_histograms_is_the_packages() -> None:
    package = pytest.importorskip("mauve")
    found = package.compute_mauve(
        p_features=cloud(900, 1.5, 3), q_features=cloud(900, 0.0, 4), num_buckets=20
    )
    assert 0.01 < found.mauve < 0.99
    assert _area(found.p_hist, found.q_hist) == pytest.approx(found.mauve, abs=1e-12)


def test_the_error_of_mauve_has_two_parts() -> None:
    """Of the mean of five clusterings, and of histograms drawn anew as often as there are texts."""
    package = pytest.importorskip("mauve")
    texts, references, rng = cloud(60, 1.0, 2), cloud(40, 0.0, 1), np.random.default_rng(0)
    values, variances = [], []
    for clustering in range(5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one = package.compute_mauve(p_features=texts, q_features=references, seed=clustering)
        drawn = [
            _area(rng.multinomial(60, one.p_hist) / 60, rng.multinomial(40, one.q_hist) / 40)
            for _ in range(40)
        ]
        values.append(one.mauve)
        variances.append(np.var(drawn, ddof=1))
    found = mauve(texts, references)
    assert found.value == pytest.approx(np.mean(values))
    assert np.var(values) > 1e-6 and np.mean(variances) > 1e-6
    assert found.se**2 == pytest.approx(np.var(values, ddof=1) / 5 + np.mean(variances))


def test_mauve_refuses_few_texts_and_features_of_two_judges() -> None:
    with pytest.raises(MaskwalkError, match="at least 20 texts on either side, not 19"):
        mauve(cloud(19, 0.0, 1), cloud(50, 0.0, 2))
    with pytest.raises(MaskwalkError, match="one judge, and these have 16 and 15"):
        mauve(cloud(30, 0.0, 1), cloud(30, 0.0, 2)[:, :15])
