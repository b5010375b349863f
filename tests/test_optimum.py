"""The optima against brute force, and the samplers that use them."""

from itertools import combinations, pairwise, permutations
from math import ceil, log, log2

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwalk.analysis.likelihood import estimate
from maskwalk.analysis.losses import best_plans, exact_sequences, least
from maskwalk.analysis.plans import (
    Curve,
    best_chain_sets,
    best_sets,
    chain_entropies,
    dependence,
    exact_curve,
    information_curve,
    listed_entropies,
    optimal_sizes,
    plan_cost,
    schedule_cost,
    spread_sets,
    triple_entropies,
    walked_triples,
)
from maskwalk.analysis.replay import replay
from maskwalk.decoding.decode import decode
from maskwalk.errors import MaskwalkError
from maskwalk.samplers.bisection import Bisection
from maskwalk.samplers.dependence_bounded import DependenceBounded
from maskwalk.samplers.optimal_random import OptimalRandom
from maskwalk.samplers.parts.information import walls
from maskwalk.samplers.parts.largest_set import largest_set
from maskwalk.samplers.planned import Planned
from maskwalk.streams import Streams
from maskwalk.worlds.tasks import TASKS
from maskwalk.worlds.walks.laws import ChainLaw
from maskwalk.worlds.walks.oracles import oracle_for
from tests.conftest import FLAT, STANDS, small_law
from tests.test_replay import Noisy
from tests.test_samplers import full, rounds, run

CHAIN = STANDS["chain"]
LONG = small_law("st_er(nodes=20, p=0.05)", "lazy(stay=0.3)", 15)


def test_entropies_of_a_chain_equal_those_of_its_listed_walks() -> None:
    for name in ("chain", "directed"):
        law = STANDS[name]
        assert isinstance(law, ChainLaw)
        one, two = listed_entropies(law), chain_entropies(law)
        for size in range(6):
            for some in combinations(range(5), size):
                assert one(frozenset(some)) == pytest.approx(two(frozenset(some)), abs=1e-10)
        assert two(frozenset(range(5))) == pytest.approx(law.entropy(), abs=1e-10)
    timed = small_law("st_er(nodes=4, p=0.3)", "schedule(laws=[markov(seed=1), lazy(stay=0.6)])", 5)
    one, two = listed_entropies(timed), chain_entropies(timed)
    for size in range(6):
        for some in combinations(range(5), size):
            assert one(frozenset(some)) == pytest.approx(two(frozenset(some)), abs=1e-10)
    # Two steps of a three-node chain by hand: uniform start, so H(X_0) = log 5.
    assert chain_entropies(CHAIN)(frozenset({0})) == pytest.approx(log(5))
    assert dependence(chain_entropies(CHAIN), {2}, {0, 4}) == pytest.approx(0, abs=1e-12)
    assert dependence(chain_entropies(CHAIN), {}, {0, 1}) > 0.1


@pytest.mark.parametrize("name", list(STANDS))
def test_information_curve_against_enumeration(name: str) -> None:
    """h(m) from its definition: a random set of m, then a random position outside it."""
    law = STANDS[name]
    joint = listed_entropies(law)
    curve = exact_curve(joint, law.length)
    for m in range(5):
        each = [
            joint(frozenset({*some, i})) - joint(frozenset(some))
            for some in combinations(range(5), m)
            for i in set(range(5)) - set(some)
        ]
        assert curve.nats[m] == pytest.approx(np.mean(each), abs=1e-10)
    assert curve.nats.sum() == pytest.approx(law.entropy(), abs=1e-9)
    assert (np.diff(curve.nats) < 1e-12).all()
    walks = law.sample(2000, 0)
    sampled = information_curve(oracle_for(law), walks)
    assert sampled.kind == "oracle"
    assert (np.abs(sampled.nats - curve.nats) < 5 * sampled.se + 1e-9).all()
    noisy = information_curve(Noisy(oracle_for(law), 0.2), walks)
    assert noisy.kind == "denoiser" and (noisy.nats > curve.nats - 5 * noisy.se).all()
    assert noisy.nats.sum() > curve.nats.sum() + 0.1
    ends = torch.zeros_like(walks, dtype=torch.bool)
    ends[:, [0, -1]] = True
    between = information_curve(oracle_for(law), walks, ends)
    exact = exact_curve(joint, 5, given=(0, 4))
    assert (np.abs(between.nats - exact.nats) < 5 * between.se + 1e-9).all()


def test_a_denoisers_curve_is_the_oracles_where_it_is_the_oracle() -> None:
    """Noise zero: cross-entropies instead of entropies, the same expectation."""
    walks = CHAIN.sample(4000, 1)
    one, two = (
        information_curve(oracle_for(CHAIN), walks),
        information_curve(Noisy(oracle_for(CHAIN), 0.0), walks),
    )
    assert (np.abs(one.nats - two.nats) < 5 * (one.se + two.se)).all()


def compositions(n: int, parts: int) -> list[tuple[int, ...]]:
    cuts = combinations(range(1, n), parts - 1)
    return [tuple(np.diff([0, *c, n]).tolist()) for c in cuts]


@given(
    st.lists(st.floats(0, 5, allow_nan=False, width=16), min_size=1, max_size=8), st.integers(1, 8)
)
def test_block_sizes_against_brute_force(values: list[float], calls: int) -> None:
    h = np.sort(np.array(values))[::-1].copy()
    curve, calls = Curve(h, np.zeros(len(h)), "exact"), min(calls, len(h))
    sizes = optimal_sizes(curve, calls)
    assert len(sizes) == calls and sum(sizes) == len(h) and min(sizes) >= 1
    best = min(schedule_cost(curve, some) for some in compositions(len(h), calls))
    assert schedule_cost(curve, sizes) == pytest.approx(best, abs=1e-9)
    assert schedule_cost(curve, (1,) * len(h)) == pytest.approx(0, abs=1e-9)


def test_the_cost_of_a_schedule_is_the_mean_over_all_orders() -> None:
    for law in STANDS.values():
        joint = listed_entropies(law)
        for sizes in ((2, 3), (1, 1, 3), (5,)):
            ends = np.cumsum([0, *sizes])
            costs = [
                sum(plan_cost(joint, [order[a:b] for a, b in pairwise(ends)]))
                for order in permutations(range(5))
            ]
            curve = exact_curve(joint, 5)
            assert schedule_cost(curve, sizes) == pytest.approx(np.mean(costs), abs=1e-9)
    with pytest.raises(MaskwalkError, match="add up to 5"):
        schedule_cost(curve, (2, 2))


def ordered_partitions(items: tuple[int, ...], calls: int) -> list[list[tuple[int, ...]]]:
    if not items:
        return [[]]
    if calls == 0:
        return []
    return [
        [block, *rest]
        for size in range(1, len(items) + 1)
        for block in combinations(items, size)
        for rest in ordered_partitions(tuple(i for i in items if i not in block), calls - 1)
    ]


@pytest.mark.parametrize("name", list(STANDS))
def test_best_sets_against_all_ordered_partitions(name: str) -> None:
    law = STANDS[name]
    joint = listed_entropies(law)
    for known in ((), (0, 4)):
        free = tuple(i for i in range(5) if i not in known)
        for calls in (1, 2, 3):
            plans = ordered_partitions(free, calls)
            best = min(sum(plan_cost(joint, plan, known)) for plan in plans)
            found = best_sets(joint, 5, calls, known)
            assert found.nats == pytest.approx(best, abs=1e-9)
            assert sum(plan_cost(joint, found.sets, known)) == pytest.approx(best, abs=1e-9)
            assert sorted(i for block in found.sets for i in block) == list(free)
            assert len(found.sets) <= calls


@settings(max_examples=8)
@given(st.integers(0, 100), st.integers(4, 8), st.sampled_from([(), (0,), "ends", (2,)]))
def test_the_chain_programme_equals_the_search(seed: int, length: int, known: object) -> None:
    pattern = (0, length - 1) if known == "ends" else known
    assert isinstance(pattern, tuple)
    law = small_law("directed(nodes=4, p=0.2)", f"markov(order=1, seed={seed})", length, seed)
    assert isinstance(law, ChainLaw)
    joint, triples = chain_entropies(law), triple_entropies(law)
    for calls in range(1, 5):
        one = best_sets(joint, length, calls, pattern)
        two = best_chain_sets(triples, calls, pattern)
        assert two.nats == pytest.approx(one.nats, abs=1e-9)
        assert sum(plan_cost(joint, two.sets, pattern)) == pytest.approx(one.nats, abs=1e-9)
        spread = spread_sets(length, calls, pattern)
        free = sorted(set(range(length)) - set(pattern))
        assert sorted(i for block in spread for i in block) == free and len(spread) <= calls
        costs = plan_cost(joint, spread, pattern)
        assert sum(costs) > one.nats - 1e-9
        assert sum(costs[1:]) == pytest.approx(0, abs=1e-9)  # all its loss is in the first round


def test_bisection_depth_is_where_the_best_plan_becomes_free() -> None:
    assert isinstance(LONG, ChainLaw)
    triples, depth = triple_entropies(LONG), ceil(log2(LONG.length + 1))
    nats = [best_chain_sets(triples, n).nats for n in range(1, depth + 2)]
    assert nats[depth - 1] < 1e-9 and nats[depth] < 1e-9 < 0.01 < nats[depth - 2]
    assert nats == sorted(nats, reverse=True)
    assert best_chain_sets(triples, depth).sets[0] == (7,)
    joint = chain_entropies(LONG)
    assert nats[0] == pytest.approx(dependence(joint, (), range(15)))
    # What is predicted is what a replay of the plan loses.
    plan = best_chain_sets(triples, depth - 1)
    walks = LONG.sample(1500, 0)
    sampler = Planned(turns=plan.turns(15))
    found = replay(sampler, oracle_for(LONG), walks, streams=Streams(0, 1500), world=LONG)
    got = estimate([found])
    assert found.rounds == depth - 1
    assert abs(got.kl - plan.nats) < 4 * got.kl_se and got.kl_kind == "exact"


def test_triples_along_walks_are_those_of_the_law() -> None:
    assert isinstance(LONG, ChainLaw)
    exact, walks = triple_entropies(LONG), LONG.sample(400, 0)
    found = walked_triples(oracle_for(LONG), walks)
    finite = np.isfinite(exact)
    assert (np.isfinite(found) == finite).all()
    assert np.abs(found[finite] - exact[finite]).max() < 5 * log(20) / 20
    assert np.abs(found[finite] - exact[finite]).mean() < 0.05
    # Given ends cut the places beyond them off.
    ends = walked_triples(oracle_for(LONG), walks[:20], (0, 14))
    assert np.isfinite(ends[1, 2:15, 15]).all() and np.isinf(ends[0, 2:15, 15]).all()


def test_best_plans_per_task() -> None:
    walks, ends = exact_sequences(LONG, TASKS.build("endpoints", world=LONG, prompts=50, seed=0))
    plans = best_plans(LONG, walks, ends)
    assert plans is not None and least(plans, 4) < 1e-9 and least(plans, 100) < 1e-9
    three, four = plans(3).nats, plans(4).nats
    assert three > 0.01 and least(plans, 3.5) == pytest.approx((three + four) / 2)
    law = STANDS["order-2"]
    walks, none = exact_sequences(law, TASKS.build("unconditional", world=law, prompts=5, seed=0))
    small = best_plans(law, walks, none)
    assert small is not None and small(2) == best_sets(listed_entropies(law), 5, 2)
    longer = small_law("st_er(nodes=4, p=0.3)", "markov(order=2, seed=3)", 10)
    walks, none = exact_sequences(
        longer, TASKS.build("unconditional", world=longer, prompts=5, seed=0)
    )
    assert best_plans(longer, walks, none) is None
    with pytest.raises(MaskwalkError, match="at most 8"):
        best_sets(listed_entropies(longer), 10, 2)
    with pytest.raises(MaskwalkError, match="shorter walks"):
        listed_entropies(LONG)


def test_optimal_random_reveals_its_sizes_and_beats_equal_blocks() -> None:
    oracle = oracle_for(LONG)
    walks = LONG.sample(300, 0)
    curve = information_curve(oracle, walks)
    sizes = optimal_sizes(curve, 5)
    assert sizes == tuple(sorted(sizes))  # few at first, when everything depends on everything
    assert schedule_cost(curve, sizes) < schedule_cost(curve, (3,) * 5) - 0.05
    found = [
        replay(OptimalRandom(sizes=s), oracle, walks, streams=Streams(0, 300), world=LONG)
        for s in (sizes, (3,))
    ]
    assert [int((found[0].round[0] == r).sum()) for r in range(5)] == list(sizes)
    one, two = (estimate([f]) for f in found)
    assert one.kl < two.kl and abs(one.kl - schedule_cost(curve, sizes)) < 5 * one.kl_se
    for bad in ((), (0,), (1.5,)):
        with pytest.raises((MaskwalkError, TypeError)):
            OptimalRandom(sizes=bad)  # type: ignore[arg-type]


def test_walls_by_hand() -> None:
    masked = torch.tensor([[1, 0, 1, 1, 0, 0, 1]]).bool()
    found = walls(masked)[0]
    assert found[0, 2] == 1 and found[2, 0] == 1 and found[2, 3] == 0
    assert found[0, 6] == 2 and found[3, 6] == 2 and found[0, 3] == 1


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.floats(0, 3))
def test_the_largest_set_within_the_budget_against_brute_force(seed: int, budget: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    cost = torch.rand((3, 7, 7), generator=generator, dtype=torch.float64)
    masked = torch.rand((3, 7), generator=generator) < 0.7
    masked[:, 3] = True
    chosen = largest_set(masked, cost, budget)
    for row in range(3):
        free = masked[row].nonzero()[:, 0].tolist()
        sets = [s for k in range(1, len(free) + 1) for s in combinations(free, k)]
        price = {s: sum(float(cost[row, a, b]) for a, b in pairwise(s)) for s in sets}
        size = max(len(s) for s in sets if price[s] <= budget)
        got = tuple(chosen[row].nonzero()[:, 0].tolist())
        assert len(got) == size and price[got] <= budget + 1e-9


def test_dependence_bounded_spends_its_budget_and_no_more() -> None:
    """Before anything was seen I(i, j) ≤ min(H_i, H_j): n alike positions cost (n − 1) H."""
    nats = -0.99 * log(0.99) - 0.01 * log(0.01)  # .056
    sure = torch.full((9,), 0.99, dtype=torch.float64)
    for members in (1, 2, 3, 4):
        budget = (members - 0.5) * nats
        first = rounds(run(f"dependence_bounded(budget={budget})", full(9), sure))[0]
        assert first.count(0) == members


def test_dependence_bounded_learns_that_a_revealed_token_separates() -> None:
    """With a perfect denoiser and no budget it loses nothing and still reveals in parallel."""
    law, n = LONG, 200
    walks = law.sample(n, 0)
    found = {}
    for budget in (0.0, 0.1, 2.0):
        got = replay(
            DependenceBounded(budget=budget),
            oracle_for(law),
            walks,
            streams=Streams(0, n),
            world=law,
        )
        found[budget] = (float(got.calls.double().mean()), estimate([got]))
    calls, exact = found[0.0]
    # Bisection takes 4 calls; one more is spent on finding out that a token separates.
    assert exact.kl_kind == "exact" and exact.kl < 1e-9 and calls == 5
    assert found[0.1][1].kl < 0.3 < found[2.0][1].kl and found[2.0][0] < found[0.1][0]
    # Independent tokens: after one look everything is free.
    start = torch.full((4, FLAT.length), FLAT.vocab_size)
    done = decode(DependenceBounded(budget=0.0), oracle_for(FLAT), start, streams=Streams(0, 4))
    assert done.calls.tolist() == [2] * 4


def test_dependence_bounded_on_an_order_two_law() -> None:
    """One revealed token does not separate an order-2 law: bisection is wrong, this one adapts."""
    law = small_law("st_er(nodes=4, p=0.3)", "markov(order=2, seed=3)", 12)
    walks, oracle = law.sample(150, 0), oracle_for(law)
    lost = {}
    for sampler in (Bisection(order=1), DependenceBounded(budget=0.0)):
        got = replay(sampler, oracle, walks, streams=Streams(0, 150), world=law)
        lost[type(sampler).__name__] = estimate([got]).kl
    assert lost["DependenceBounded"] < 0.5 * lost["Bisection"]
