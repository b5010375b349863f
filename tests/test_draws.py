from itertools import accumulate

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, kstest

from maskwalk.decoding.draw import Draw, preset, race
from maskwalk.errors import MaskwalkError
from maskwalk.kernels.philox import PIECE
from maskwalk.streams import (
    WORD,
    Purpose,
    Streams,
    _first_beyond,
    block_uniforms,
    block_words,
    by_tensors,
    inverse_cdf,
    philox,
)


def test_philox_gives_the_published_answers() -> None:
    """Known answers of Philox4x32-10 from the Random123 distribution (kat_vectors)."""

    def run(counter: list[int], key: tuple[int, int]) -> list[int]:
        words = [torch.tensor(c) for c in counter]
        one, other = philox(words, key), by_tensors(words, key)  # by numpy, and for a compiler
        assert [int(w) for w in one] == [int(w) for w in other]
        return [int(w) for w in one]

    assert run([0, 0, 0, 0], (0, 0)) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    ones = 0xFFFFFFFF
    assert run([ones] * 4, (ones, ones)) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    assert run([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], (0xA4093822, 0x299F31D0)) == [
        0xD16CFE09,
        0x94FDCCEB,
        0x5001E420,
        0x24126EA1,
    ]


def test_a_number_is_a_function_of_its_address() -> None:
    ids = torch.tensor([5, 2**40 + 1, 17])
    streams = Streams(3, ids)
    table = streams.uniform(Purpose.TIE, 4, 6)
    rows, positions = torch.tensor([2, 0, 1]), torch.tensor([5, 0, 3])
    there = streams.uniform_at(Purpose.TIE, 4, rows, positions)
    assert torch.equal(there, table[rows, positions])
    assert torch.equal(streams.select(torch.tensor([1])).uniform(Purpose.TIE, 4, 6), table[1:2])
    others = [
        Streams(4, ids).uniform(Purpose.TIE, 4, 6),
        streams.uniform(Purpose.TOKEN, 4, 6),
        streams.uniform(Purpose.TIE, 5, 6),
        Streams(3, ids - 2**40).uniform(Purpose.TIE, 4, 6),
        Streams(3 + 2**32, ids).uniform(Purpose.TIE, 4, 6),
    ]
    for other in others:
        assert not (other == table).any()


def test_every_token_of_a_place_has_a_word_of_its_own() -> None:
    """Token j takes word j mod 4 of block j // 4, and no place shares a block with another."""
    streams, position = Streams(5, torch.tensor([3, 8])), torch.tensor([2, 2, 0])
    rows = torch.tensor([0, 1, 1])
    found = streams.single_at(Purpose.TOKEN, 6, rows, position, 10)
    for n, (row, place) in enumerate(zip(rows.tolist(), position.tolist())):
        for token in range(10):
            counter = [[3, 8][row], int(Purpose.TOKEN) << 16, place | (token // 4) << 16, 6]
            word = philox([torch.tensor(c) for c in counter], (5, 0))[token % 4]
            assert float(found[n, token]) == (int(word) >> 8) / 2**24
    several = Streams(0, 1).single_at(Purpose.TOKEN, 0, torch.zeros(8).long(), torch.arange(8), 64)
    assert several.unique().numel() > 500  # 512 of 2^24 values: hardly one twice


def test_uniforms_are_uniform_and_uncorrelated() -> None:
    u = Streams(0, 4000).uniform(Purpose.CHOICE, 0, 8)
    assert u.min() >= 0 and u.max() < 1
    assert kstest(u.flatten().numpy(), "uniform").pvalue > 1e-6
    correlation = np.corrcoef(u.numpy().T) - np.eye(8)
    assert np.abs(correlation).max() < 6 / np.sqrt(4000)


def test_block_uniforms_rows_do_not_depend_on_the_slice() -> None:
    whole = block_uniforms(7, Purpose.WALK, 0, 100, 5)
    assert np.array_equal(block_uniforms(7, Purpose.WALK, 40, 10, 5), whole[40:50])
    assert not (block_uniforms(7, Purpose.WALK, 0, 100, 5, stream=1) == whole).any()
    assert not (block_uniforms(7, Purpose.GRAPH, 0, 100, 5) == whole).any()


def test_block_uniforms_are_the_upper_bits_of_the_words() -> None:
    words = block_words(7, Purpose.WALK, 40, 100, 5)
    u = block_uniforms(7, Purpose.WALK, 40, 100, 5)
    assert np.array_equal(u * 2.0**53, words >> np.uint64(11))


@given(st.integers(0, 2**32), st.integers(1, 6), st.floats(0, 1, exclude_max=True))
def test_zero_probability_is_never_drawn(seed: int, positive: int, u: float) -> None:
    """Whatever u, including 0 and the largest float below 1."""
    rng = np.random.default_rng(seed)
    probs = np.zeros(9)
    probs[rng.permutation(9)[:positive]] = rng.random(positive) + 1e-12
    log_probs = torch.tensor(probs / probs.sum()).log().expand(3, -1)
    edge = float(np.nextafter(1.0, 0.0))
    tokens = inverse_cdf(log_probs, torch.tensor([0.0, u, edge], dtype=torch.float64))
    assert (torch.tensor(probs)[tokens] > 0).all()
    assert tokens[0] == probs.nonzero()[0][0]
    assert tokens[2] == probs.nonzero()[0][-1]


def test_inverse_cdf_follows_the_probabilities() -> None:
    probs = torch.tensor([0.5, 0.0, 0.25, 0.125, 0.125], dtype=torch.float64)
    u = Streams(1, 20000).uniform(Purpose.TOKEN, 0, 1)[:, 0]
    counts = torch.bincount(inverse_cdf(probs.log().expand(20000, -1), u), minlength=5)
    expected = probs[probs > 0] * 20000
    statistic = float(((counts[probs > 0] - expected) ** 2 / expected).sum())
    assert counts[1] == 0 and chi2.sf(statistic, 3) > 1e-6


def test_a_uniform_on_the_edge_takes_the_next_token() -> None:
    """The first cumulative probability that exceeds u: equal is not enough."""
    log_probs = torch.tensor([[0.25, 0.25, 0.5]], dtype=torch.float64).log().expand(4, -1)
    edges = torch.tensor([0.0, 0.25, 0.5, 0.75], dtype=torch.float64)
    assert inverse_cdf(log_probs, edges).tolist() == [0, 1, 2, 2]
    probs = log_probs.exp()  # as an accelerator finds it, without a search
    assert _first_beyond(probs, probs.cumsum(-1), edges).tolist() == [0, 1, 2, 2]


def test_the_published_race_truncates() -> None:
    """A token 2^-14 as likely as the first can never win in bfloat16, but is drawn exactly."""
    probs = torch.tensor([1 - 2.0**-14, 2.0**-14], dtype=torch.float64).log().expand(200000, -1)
    streams, rows = Streams(0, 200000), torch.arange(200000)
    zeros = torch.zeros(200000, dtype=torch.int64)
    exact = Draw()(probs, streams, 0, rows, zeros)
    published = Draw(precision="bfloat16")(probs, streams, 0, rows, zeros)
    assert exact.sum() > 0
    assert published.sum() == 0


def test_race_prefers_the_lowest_token_among_equals() -> None:
    log_probs = torch.log(torch.tensor([[0.25, 0.25, 0.5]]))
    same = torch.full((1, 3), 0.5)
    assert race(log_probs, same).item() == 2
    assert race(torch.log(torch.tensor([[0.5, 0.5]])), torch.full((1, 2), 0.5)).item() == 0
    # A float32 uniform that rounds to 1 in bfloat16 becomes 0, the worst draw.
    assert race(torch.log(torch.tensor([[0.9, 0.1]])), torch.tensor([[0.9999, 0.5]])).item() == 1


def test_the_race_is_run_in_bfloat16_with_its_small_numbers() -> None:
    # .3 and .3004 are one number in bfloat16, so the first wins by its place.
    near = torch.log(torch.tensor([[0.3, 0.3004, 0.2]]))
    assert race(near, torch.full((1, 3), 0.5)).item() == 0
    # Without 1e-10 a uniform of 0 would make every quotient 0; with it the likeliest wins.
    assert race(torch.log(torch.tensor([[0.2, 0.3, 0.5]])), torch.zeros((1, 3))).item() == 2


def test_temperature_sharpens() -> None:
    probs = torch.tensor([[0.8, 0.2]], dtype=torch.float64).log()
    assert Draw(temperature=0.5).shape(probs).exp()[0, 0] == pytest.approx(0.64 / 0.68)
    for bad in (1e-9, -1.0, False):
        with pytest.raises(MaskwalkError, match="temperature, if not 0, must be"):
            Draw(temperature=bad)
    with pytest.raises(MaskwalkError):
        Draw(precision="float16")
    with pytest.raises(MaskwalkError, match="as_published"):
        preset("published")


def _plain_philox(counter: list[torch.Tensor], key: tuple[int, int]) -> list[torch.Tensor]:
    """Philox-4x32-10 in Python's integers, a counter at a time."""
    out = []
    for c0, c1, c2, c3 in zip(*(c.flatten().tolist() for c in counter)):
        k0, k1 = key
        for _ in range(10):
            a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
            c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & WORD, (a >> 32) ^ c3 ^ k1, a & WORD
            k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
        out.append([c0, c1, c2, c3])
    return list(torch.tensor(out).T)


def test_philox_of_many_counters_is_that_of_each() -> None:
    """Across the border of two pieces, with counters of any shape and layout."""
    random = torch.Generator().manual_seed(0)
    counter = [torch.randint(0, 2**32, (PIECE + 5,), generator=random) for _ in range(4)]
    key = (2**32 - 3, 12345)
    expected = _plain_philox(counter, key)
    assert all(torch.equal(a, b) for a, b in zip(philox(counter, key), expected))
    table = [c[: 6 * 4].view(6, 4).t() for c in counter]
    for a, b in zip(philox(table, key), expected):
        assert torch.equal(a, b[: 6 * 4].view(6, 4).t())


def test_rounds_computed_ahead_are_the_same_numbers() -> None:
    """Whatever the order of questions, rows that leave on the way, and places off the canvas."""
    plain = Streams(9, torch.tensor([4, 2**41 + 3, 6]))
    ahead, kept = plain._ahead(7), torch.tensor([True, False, True])
    assert ahead._span == 7 and plain._span == 0
    rows, places = torch.tensor([2, 0, 1]), torch.tensor([6, 0, 3])
    for round in [*range(40), 38, 3, 100]:
        for purpose in (Purpose.TIE, Purpose.TOKEN):
            assert torch.equal(ahead.uniform(purpose, round, 7), plain.uniform(purpose, round, 7))
            found = ahead.uniform_at(purpose, round, rows, places)
            assert torch.equal(found, plain.uniform_at(purpose, round, rows, places))
        few = plain.select(kept).uniform(Purpose.TIE, round + 1, 7)
        assert torch.equal(ahead.select(kept).uniform(Purpose.TIE, round + 1, 7), few)
    assert torch.equal(ahead.uniform(Purpose.TIE, 5, 9), plain.uniform(Purpose.TIE, 5, 9))
    beyond = torch.tensor([9, 1, 8])
    found = ahead.uniform_at(Purpose.TIE, 5, rows, beyond)
    assert torch.equal(found, plain.uniform_at(Purpose.TIE, 5, rows, beyond))


def test_what_somebody_writes_into_a_round_stays_there() -> None:
    ahead = Streams(1, 2)._ahead(4)
    first = ahead.uniform(Purpose.CHOICE, 0, 4)
    before = first.clone()
    first.zero_()
    assert torch.equal(ahead.uniform(Purpose.CHOICE, 0, 4), before)


def test_a_search_of_the_sums_finds_what_the_definition_says() -> None:
    random = torch.Generator().manual_seed(1)
    probs = torch.rand((500, 9), generator=random, dtype=torch.float64) ** 8
    probs = probs * (torch.rand((500, 9), generator=random) < 0.5)
    probs[:, 4] += 1e-9
    u = torch.rand(500, generator=random, dtype=torch.float64)
    u[:3] = torch.tensor([0.0, 1 - 2.0**-53, 0.5])
    log_probs = (probs / probs.sum(1, keepdim=True)).log()
    p = log_probs.exp()
    for row, (found, weights) in enumerate(zip(inverse_cdf(log_probs, u).tolist(), p.tolist())):
        sums = list(accumulate(weights))
        bar = float(u[row]) * sums[-1]
        last = max(i for i, w in enumerate(weights) if w > 0)  # rounding may leave none beyond
        beyond = (i for i, s in enumerate(sums) if s > bar and weights[i] > 0)
        assert found == next(beyond, last)
