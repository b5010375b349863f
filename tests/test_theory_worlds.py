"""Theory in other worlds: every claim holds, and every one can fail."""

from dataclasses import replace
from itertools import groupby
from math import log
from typing import Any

import pytest
import torch

from maskwalk import WORLDS
from maskwalk.analysis.plans import best_sets, listed_entropies, plan_cost
from maskwalk.decoding.decode import decode
from maskwalk.paper.theory import Check, Row
from maskwalk.paper.theory.worlds import counterexamples
from maskwalk.paper.theory.worlds.claims import (
    along,
    certainty,
    exact_from,
    one_at_a_time,
    shortest,
)
from maskwalk.paper.theory.worlds.instance import Instance, between_ends, divergence, instance
from maskwalk.paper.theory.worlds.plans import shortest_exact_plan
from maskwalk.paper.theory.worlds.table import ALONG, PLAN, InRounds, even, instances, number
from maskwalk.samplers import Bisection, Planned
from maskwalk.streams import Streams
from maskwalk.worlds.addition import Addition
from maskwalk.worlds.hierarchy import Hierarchy
from maskwalk.worlds.latin import Latin
from maskwalk.worlds.potts import Potts
from maskwalk.worlds.separators import Separator, halved
from maskwalk.worlds.world import World
from tests.computed_theory import computed_claims, computed_laws


@pytest.fixture
def rows() -> list[Row]:
    return computed_laws()


@pytest.fixture
def checks() -> list[Check]:
    return computed_claims()


def at(world: World) -> Instance:
    """A world of the test's own, from a blank canvas."""
    return Instance("mine", "mine", world, torch.full((1, world.length), world.vocab_size))


# ---- what is claimed


def test_every_claim_holds(checks: list[Check]) -> None:
    assert [c.claim for c in checks if not c.holds] == []
    assert len([c for c in checks if c.why]) == 13 and len(checks) > 70


def test_every_world_has_its_rows(rows: list[Row]) -> None:
    named = {row.world.split("(")[0] for row in rows}
    assert named == set(WORLDS) - {"walk", "text", "coins"}
    for world in {row.world for row in rows}:
        mine = [row for row in rows if row.world == world]
        assert mine[-1].sampler == PLAN
        for calls, group in groupby(mine[:-1], key=lambda row: row.calls):
            same = [row.sampler for row in group]
            assert same[0].startswith("random ") and same[1].startswith("entropy ")
            assert all(name.startswith("bisection") for name in same[2:]) and len(same) > 2
            sizes = [int(size) for size in same[0].split()[1].split("+")]
            assert len(sizes) == calls and sorted(sizes) == sizes and sizes[-1] - sizes[0] <= 1


def test_what_the_measures_keep(rows: list[Row]) -> None:
    for row in rows:
        # Pinsker; and what is incoherent is outside the law.
        assert row.tv <= (row.kl / 2) ** 0.5 + 1e-9
        assert (row.coherence is None) == row.world.startswith("potts")
        assert row.coherence is None or row.tv >= 1 - row.coherence - 1e-12
        exact = row.sampler in (ALONG, PLAN)
        assert not exact or (
            row.tv < 1e-12 and row.kl < 1e-12 and row.coherence in (None, pytest.approx(1))
        )


@pytest.mark.parametrize("score", ["", "entropy"])
def test_a_law_is_that_of_decode(score: str) -> None:
    here, count = instance("addition(digits=1, base=2, order='plain')"), 20_000
    policy = InRounds(even(4, 3), score)
    blank = here.canvas.repeat(count, 1)
    made = decode(policy, here.oracle, blank, streams=Streams(0, count)).tokens
    tokens, probs = here.law(policy)
    shares = torch.stack([(made == row).all(1).double().mean() for row in tokens])
    assert float(shares.sum()) == pytest.approx(1)
    assert float((shares - probs).abs().max()) < 0.015


def test_the_calls_are_counted(rows: list[Row]) -> None:
    calls = {(row.world, row.sampler): row.calls for row in rows}
    assert calls["latin(n=3)", "bisection(order=1)"] == 4
    assert calls["potts(height=2, width=3, order='rows')", ALONG] == 4
    assert calls["addition(digits=2, base=2, order='plain')", ALONG] == 6


# ---- the measures and the plans, another way


def test_divergence_is_what_a_plan_loses() -> None:
    here = instance("latin(n=3)")
    sets = [[4], [1, 6], [0, 2, 5, 7], [3, 8]]  # bisection of nine cells
    lost = sum(plan_cost(listed_entropies(Latin(3)), sets))
    assert divergence(here.truth, here.law(Bisection())) == pytest.approx(lost)
    assert lost == pytest.approx(log(2) / 2)


def test_divergence_of_two_laws() -> None:
    tokens = torch.tensor([[0, 1], [1, 0]])
    one, other = (tokens, torch.tensor([0.5, 0.5]).double()), torch.tensor([0.25, 0.75]).double()
    assert divergence(one, (tokens, other)) == pytest.approx(log(2) - log(3) / 2)
    assert divergence(one, (tokens.flip(0), other.flip(0))) == pytest.approx(log(2) - log(3) / 2)
    assert divergence(one, (tokens[:1], torch.ones(1).double())) == float("inf")


def test_the_shortest_plan_is_that_of_the_search_over_all() -> None:
    spec = "walk(graph=st_er(nodes=3, p=1.0), law=lazy(stay=0.6), length=7, seed=0)"
    here = instance(spec)
    joint = listed_entropies(here.world)  # type: ignore[arg-type]
    turns = shortest_exact_plan(here)
    assert max(turns) == 3 and here.distance(Planned(turns)) < 1e-12  # bisection of a chain
    assert best_sets(joint, 7, 3).nats < 1e-9 < 1e-3 < best_sets(joint, 7, 2).nats


def test_given_ends_are_all_pairs_and_their_distances_add_up() -> None:
    free = instance("potts(height=1, width=4)")
    ends = between_ends(free)
    assert ends.masked == [1, 2] and len(ends.canvas[:, [0, -1]].unique(dim=0)) == 4
    assert ends.distance(Bisection()) < 1e-12
    alone = [Instance("", "", free.world, canvas[None]) for canvas in ends.canvas]
    both = Planned((0,))
    assert ends.distance(both) == pytest.approx(sum(one.distance(both) for one in alone))
    assert ends.distance(both) > 0.01


def test_blocks_are_as_equal_as_possible() -> None:
    assert (
        even(9, 4) == (2, 2, 2, 3) and even(7, 6) == (1, 1, 1, 1, 1, 2) and even(6, 3) == (2, 2, 2)
    )


def test_only_zero_is_printed_as_zero() -> None:
    assert [number(x) for x in (None, 1e-14, 1e-5, 0.26875, 0.26875 - 1e-16)] == [
        "–", "0", "0.0000", "0.2688", "0.2688",
    ]  # fmt: skip


# ---- the checks can fail


class OuterFirst(Potts):
    """Takes the first column for the one in the middle."""

    def separators(self) -> Separator:
        first, second, *others = self.cells.T.tolist()
        return halved([second, first, *others])


class ShortColumns(Addition):
    """Forgets that the digit of the sum belongs to its column."""

    def separators(self) -> Separator:
        pairs = list(zip(self.a, self.b))
        return halved([*pairs, *([c] for c in self.c)])


class Levels(Hierarchy):
    """Takes every node for a separator of what stands left and right of it."""

    def separators(self) -> Separator:
        return halved([[i] for i in range(self.length)])


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (Potts(height=2, width=3), OuterFirst(height=2, width=3)),
        (Addition(2, 2), ShortColumns(2, 2)),
        (Hierarchy(2, symbols=3, nodes="shown"), Levels(2, symbols=3, nodes="shown")),
    ],
)
def test_a_wrong_separator_fails(right: World, wrong: World) -> None:
    assert next(along([at(right)])).holds
    assert not next(along([at(wrong)])).holds


class Middling(Latin):
    """An oracle that is right on average, but does not look at what is revealed."""

    def marginals(self, tokens: Any) -> Any:
        return super().marginals(torch.full_like(tokens, self.vocab_size))


def test_a_wrong_oracle_fails() -> None:
    assert next(one_at_a_time([at(Latin(2))])).holds
    assert not next(one_at_a_time([at(Middling(2))])).holds


@pytest.mark.parametrize(
    ("spec", "enough"),
    [
        ("potts(height=2, width=4, order='columns')", 2),
        ("potts(height=2, width=4, order='rows')", 4),
        ("addition(digits=2, base=2, order='reversed')", 3),
    ],
)
def test_a_wrong_order_fails(spec: str, enough: int) -> None:
    here = instance(spec)
    assert exact_from("", here, enough).holds
    assert not exact_from("", here, enough - 1).holds  # some order below is not exact
    assert not exact_from("", here, enough + 1).holds  # this order is


def test_orders_with_a_gap_are_told_one_by_one() -> None:
    check = exact_from("", instance("addition(digits=2, base=2, order='interleaved')"), 2)
    assert not check.holds and check.computed == "k = 2, 4, 5, 6"


def test_a_wrong_prediction_fails() -> None:
    spec = "regular(pattern='(a|ba*b)*', alphabet='ab', length=3)"
    assert counterexamples._missed(instance(spec), 0.5, "").holds
    assert not counterexamples._missed(instance(spec), 0.5 + 1e-9, "").holds
    chain = instance("potts(height=1, width=3)")  # bisection is exact here: no counterexample
    assert not counterexamples._missed(chain, 0.0, "").holds


def test_a_longer_plan_or_a_rank_of_one_kind_fails(rows: list[Row]) -> None:
    every = instances()
    longer = [replace(row, calls=row.calls + 1) if row.sampler == PLAN else row for row in rows]
    plans = [c for c in shortest(every, longer) if c.claim.startswith("shortest")]
    assert len(plans) == 8 and not any(c.holds for c in plans)
    ahead = [replace(row, kl=0.0) if row.sampler.startswith("entropy") else row for row in rows]
    assert not next(certainty(every, ahead)).holds
