"""PUNT equals plain loops over its definition: orders, tokens, calls, and its law."""

from math import log

import pytest
import torch

from maskwalk.analysis.law import bridge_law, total_variation
from maskwalk.decoding.decode import decode
from maskwalk.streams import Streams
from maskwalk.worlds.walks.oracles import oracle_for
from tests.conftest import small_law
from tests.golden.single import (
    Fill,
    Marginals,
    Outcomes,
    Run,
    Toy,
    agree,
    follows,
    in_blocks,
    law_by_loops,
)


def kept(run: Run, eps: float, p: Marginals, drawn: dict[int, int]) -> list[int]:
    """What is left of the masked positions after all tests, by recursion over halves."""
    ranked = sorted(p, key=lambda i: (-round(max(p[i]), 9), i))
    width = 1
    while width < len(ranked):
        width *= 2
    alive = set(ranked)
    halves = [ranked]
    while width > 1:
        width //= 2
        # Each part splits into its first `width` positions, by rank, and the rest.
        parts = [(part[:width], part[width:]) for part in halves]
        anchors = [i for first, _ in parts for i in first if i in alive]
        tests = [i for _, second in parts for i in second if i in alive]
        if tests:
            q = run.ask(tests, {i: drawn[i] for i in anchors})
            for i in tests:
                moved = sum(a * (log(a) - log(b)) for a, b in zip(q[i], p[i]) if a > 0)
                if moved > eps + run.denoiser.score_grid / 2:
                    alive.remove(i)
        halves = [part for both in parts for part in both if part]
    return sorted(alive)


def punt(eps: float) -> Fill:
    def fill(run: Run, spots: list[int]) -> None:
        while masked := run.masked(spots):
            p = run.ask(masked)
            drawn = {i: run.token(i, p[i]) for i in masked}
            run.end_round({i: drawn[i] for i in kept(run, eps, p, drawn)})

    return fill


@pytest.mark.parametrize("eps", [0.01, 0.2])
def test_punt_is_its_loops(eps: float) -> None:
    rounds = agree(f"punt(eps={eps})", punt(eps), 50)
    if eps == 0.2:
        assert 60 < rounds < 200  # neither one at a time (221) nor all at once (50)


def test_punt_in_blocks() -> None:
    agree("blocks(size=4, inner=punt(eps=0.1))", in_blocks(punt(0.1), 4), 50)


def test_calls_of_a_round_are_logarithmic() -> None:
    """Nothing is refused at a huge eps: one round of 1 + ⌈log₂ m⌉ calls, 1 if m = 1."""
    for masked, calls in ((1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (8, 4), (9, 5)):
        toy = Toy(4, masked)
        empty = torch.full((1, masked), toy.mask_id)
        got = decode("punt(eps=1e9)", toy, empty, streams=Streams(0, 1))
        assert (int(got.calls), int(got.rounds)) == (calls, 1)


@pytest.mark.parametrize("eps", [0.02, 0.3])
def test_its_law_by_enumeration(eps: float) -> None:
    toy = Toy(5, 4, vocab_size=2, sharp=1.0)

    def one_round(run: Run, drawn: dict[int, int]) -> Outcomes:
        p = run.ask(list(drawn))
        return [(1.0, {i: drawn[i] for i in kept(run, eps, p, drawn)})]

    assert follows(f"punt(eps={eps})", toy, law_by_loops(toy, 4, one_round))


@pytest.mark.parametrize("walk", ["lazy(stay=0.3)", "markov(order=2, seed=3)"])
def test_exact_at_no_tolerance_with_a_perfect_denoiser(walk: str) -> None:
    """On small walks, by enumeration: eps = 0 has the walk's own law, eps = 0.1 has not."""
    law = small_law("st_er(nodes=3, p=0.1)", walk, 4)
    oracle = oracle_for(law)
    truth = bridge_law(law, torch.full((4,), oracle.mask_id), oracle.mask_id)
    for eps, low, high in ((0.0, 0.0, 1e-12), (0.1, 0.05, 0.3)):

        def one_round(run: Run, drawn: dict[int, int], eps: float = eps) -> Outcomes:
            p = run.ask(list(drawn))
            return [(1.0, {i: drawn[i] for i in kept(run, eps, p, drawn)})]

        enumerated = law_by_loops(oracle, 4, one_round)
        assert low <= total_variation(enumerated, truth) < high
        assert follows(f"punt(eps={eps})", oracle, enumerated)
