"""The theory: every check holds, the checks can fail, and the closed forms agree with slow ways."""

import json
from fractions import Fraction
from functools import cache
from math import comb

import numpy as np
import pytest
import torch

from maskwalk.analysis.law import _distinct
from maskwalk.analysis.likelihood import estimate
from maskwalk.analysis.losses import best_plans
from maskwalk.analysis.replay import replay
from maskwalk.decoding.decode import decode
from maskwalk.errors import MaskwalkError
from maskwalk.paper.theory import Check, draw_dags
from maskwalk.paper.theory.bottleneck import (
    bottleneck,
    entropy_two,
    entropy_two_exactly,
    first_passing,
    first_passing_predicted,
    paper_bound,
    random_two,
    random_two_exactly,
)
from maskwalk.paper.theory.check import (
    blank,
    bridged_distance,
    build,
    coherence,
    distance,
    other_law,
    same_law,
    same_number,
)
from maskwalk.paper.theory.depth import calls, guided_bound, plain_bound, worst
from maskwalk.paper.theory.exactness import BISECTION_LAWS, JOINED
from maskwalk.paper.theory.independence import blocks, dependence, splits
from maskwalk.samplers import Bisection, Entropy, GuidedBisection, Random
from maskwalk.streams import Streams
from maskwalk.worlds.walks.oracles import oracle_for
from tests.computed_theory import computed_lemmas


@pytest.fixture(scope="module")
def checks() -> list[Check]:
    return computed_lemmas()


def test_every_check_holds(checks: list[Check]) -> None:
    assert [c.claim for c in checks if not c.holds] == []
    assert len(checks) > 40


def test_the_table_fits_80_columns(checks: list[Check]) -> None:
    # Three separators of three characters and the word "holds".
    widths = [
        max(len(getattr(c, name)) for c in checks) for name in ("claim", "predicted", "computed")
    ]
    assert sum(widths) + 3 * 3 + len("holds") <= 80


def test_checks_are_timed_and_serialisable(checks: list[Check]) -> None:
    assert all(c.seconds > 0 for c in checks)
    json.dumps([c.as_dict() for c in checks])
    assert set(checks[0].as_dict()) == {"claim", "predicted", "computed", "holds", "seconds"}


def test_checks_can_fail() -> None:
    assert not same_law("", 1e-11).holds
    assert not other_law("", 1e-15).holds
    assert not same_number("", 0.5, 0.5 + 1e-11).holds
    # And the distance itself sees a sampler that is not exact.
    law = build(JOINED, "markov(order=1, seed=1)", 5)
    assert distance(Random(2), law) > 0.01
    assert bridged_distance(Random(2), law) > 0.01


def test_the_laws_of_the_bisection_checks_are_nonreversible() -> None:
    law = build(*BISECTION_LAWS[1][1])
    step = law.next_probs(torch.arange(3)[:, None])
    # Kolmogorov: a reversible chain goes round a cycle equally often both ways.
    assert abs(step[0, 1] * step[1, 2] * step[2, 0] - step[0, 2] * step[2, 1] * step[1, 0]) > 1e-3


@pytest.mark.parametrize("k", [1, 2, 3])
def test_bisection_is_exact_on_a_directed_graph(k: int) -> None:
    law = build("directed(nodes=3, p=0.0)", f"markov(order={k}, seed={k})", 2 * k + 3)
    for policy in (Bisection(k), GuidedBisection(k, "margin")):
        assert distance(policy, law) < 1e-12
        assert bridged_distance(policy, law) < 1e-12


@pytest.mark.parametrize("turn", [1, 2, None])
def test_bisection_is_exact_with_a_kernel_per_step(turn: int | None) -> None:
    walk = f"schedule(laws=[markov(seed=1), lazy(stay=0.4), drift(0.8, seed=2)], turn={turn})"
    law = build("st_er(nodes=4, p=0.5)", walk, 6)
    for policy in (Bisection(1), GuidedBisection(1, "margin")):
        assert distance(policy, law) < 1e-12
        assert bridged_distance(policy, law) < 1e-12
    assert distance(Random(2), law) > 0.01
    walks = law.sample(200, 0)
    made = replay(Bisection(1), oracle_for(law), walks, streams=Streams(0, 200), world=law)
    assert abs(estimate([made]).kl) < 1e-12 and torch.allclose(
        made.log_prob.sum(1), law.log_prob(walks), rtol=0, atol=1e-10
    )
    best = best_plans(law, walks, torch.zeros_like(walks, dtype=torch.bool))
    assert best is not None and best(3).nats < 1e-9 < 0.01 < best(2).nats


@pytest.mark.parametrize("length", [6, 7])
def test_distant_needs_one_more_than_its_name(length: int) -> None:
    law = build("st_er(nodes=4, p=0.3)", "distant(K=4, skip_recent=2)", length)
    assert distance(Bisection(4), law) > 1e-3
    assert distance(Bisection(5), law) < 1e-12


def _slow_random_two(K: int, W: int) -> Fraction:
    """Round by round, by the number of whole dangerous pairs and of other masked positions."""

    @cache
    def value(pairs: int, others: int) -> Fraction:
        left = 2 * pairs + others
        if left == 0:
            return Fraction(1)
        ways = [
            (Fraction(pairs, W), pairs - 1, others),  # a dangerous pair, in agreement
            (4 * comb(pairs, 2), pairs - 2, others + 2),  # halves of two pairs
            (2 * pairs * others, pairs - 1, others),  # half a pair and another position
            (comb(others, 2), pairs, others - 2),
        ]
        return sum((n * value(*after) for n, *after in ways if n), Fraction(0)) / comb(left, 2)

    return value(K, 2 * K)


@pytest.mark.parametrize("W", [2, 4])
def test_random_two_formula_is_the_round_by_round_probability(W: int) -> None:
    for K in range(1, 9):
        assert random_two_exactly(K, W) == _slow_random_two(K, W)
        assert random_two(np.array([K]), W)[0] == pytest.approx(float(random_two_exactly(K, W)))


@pytest.mark.parametrize("W", [2, 3, 8])
def test_entropy_two_closed_form_solves_the_recurrence(W: int) -> None:
    for n in range(2, 40):
        right = Fraction(1, W) * entropy_two_exactly(n - 1, W)
        right += (2 * n - 2) * entropy_two_exactly(n - 2, W)
        assert entropy_two_exactly(n, W) * (2 * n - 1) == right
    assert entropy_two_exactly(0, W) == 1 and entropy_two_exactly(1, W) == Fraction(1, W)


def test_large_corridor_counts_lose_no_digits() -> None:
    assert entropy_two(400, 4)[400] == pytest.approx(float(entropy_two_exactly(400, 4)), rel=1e-13)
    q, K, term, total = Fraction(3, 4), 10**6, Fraction(1), Fraction(1)
    for j in range(30):  # the terms beyond are below 1e-35
        term *= -q * Fraction(K - j, (j + 1) * (4 * K - 1 - 2 * j))
        total += term
    assert random_two(np.array([K]), 4)[0] == pytest.approx(float(total), rel=1e-15)


def test_entropy_two_reveals_bottlenecks_first_and_partners_next() -> None:
    K, law = 3, bottleneck(3, 4)
    oracle = oracle_for(law)
    tokens = blank(law).repeat(200, 1)
    decoded = decode(Entropy(2), oracle, tokens, streams=Streams(0, 200), trace=True)
    assert decoded.trace is not None
    events = decoded.trace.events
    rounds = torch.empty_like(tokens)
    rounds[events["sequence"], events["position"]] = events["round"]
    inner = rounds.view(200, K, 4)[:, :, 1:3]
    assert (rounds.view(200, K, 4)[:, :, [0, 3]] < K).all()
    assert (inner >= K).all()
    # A half-known corridor is completed in the very next round: its partner has entropy 0.
    assert set((inner[..., 0] - inner[..., 1]).abs().unique().tolist()) == {0, 1}


def test_first_passing_is_the_first() -> None:
    found, stays = first_passing(4, 10**5)
    assert found == 57_472 and stays
    assert abs(first_passing_predicted(4) / found - 1) < 0.01
    for K, above in ((found - 2, False), (found, True)):
        gap = random_two(np.array([K]), 4)[0] - entropy_two(10**5, 4)[K]
        assert (gap > paper_bound(4)) == above
    assert first_passing(2, 10**4) == (None, False)


def test_index_ties_reveal_every_dangerous_pair_together() -> None:
    assert coherence(Entropy(2), bottleneck(2, 3), ties="index") == pytest.approx(1 / 9)


def test_drawings_show_every_node_and_arc_and_repeat(tmp_path) -> None:
    paths = draw_dags(tmp_path / "new" / "folder")
    again = draw_dags(tmp_path / "again")
    assert [p.name for p in paths] == [
        "tree_line_dag.svg",
        "tree_line_dag.png",
        "bottleneck_dag.svg",
        "bottleneck_dag.png",
    ]
    assert [p.read_bytes() for p in paths] == [p.read_bytes() for p in again]
    # Patches: the background of the figure, the circles and the arrows.
    assert paths[0].read_text().count('id="patch_') == 1 + 7 + 6
    assert paths[2].read_text().count('id="patch_') == 1 + 20 + 25


def test_drawings_refuse_a_file_in_the_way(tmp_path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(MaskwalkError, match="Name another directory"):
        draw_dags(tmp_path / "taken")


@pytest.mark.parametrize("columns", [1, 6, 60])
def test_distinct_rows_are_those_of_unique(columns: int) -> None:
    rows = torch.from_numpy(np.random.Philox(key=columns).random_raw(400 * columns) % 3 == 0)
    rows = rows.view(400, columns).to(torch.float64).cumsum(1)
    rows[200:] = rows[:200]
    first, inverse = _distinct(rows)
    unique, expected = rows.unique(dim=0, return_inverse=True)
    assert torch.equal(rows[first], unique) and torch.equal(inverse, expected)
    assert (first < 200).all()


def test_every_lemma_of_the_paper_has_rows(checks: list[Check]) -> None:
    begins = ("one at a time", "order-1 bridge: independent i", "order-3 bridge: independent b")
    begins += ("bisection k=", "guided k=", "bisection: calls", "guided: calls", "tree-line")
    for begin in begins:
        assert any(c.claim.lower().startswith(begin) for c in checks), begin


def test_dependence_is_that_of_a_plain_sum() -> None:
    """Two coins that agree with probability .8: independent ones would with .5."""
    walks = torch.tensor([[0, a, 0, b, 0] for a in (0, 1) for b in (0, 1)])
    probs = torch.tensor([0.4, 0.1, 0.1, 0.4], dtype=torch.float64)
    parts = ((1,), (3,))
    assert dependence(walks, probs, (0, 2, 4), parts) == pytest.approx(0.3)
    # Two equal coins: half of what the product gives is impossible.
    assert dependence(walks[[0, 3]], probs[[0, 3]] / 0.8, (0, 2, 4), parts) == pytest.approx(0.5)
    # Given what the second shows, nothing depends on anything.
    assert dependence(walks, probs, (0, 2, 3, 4), ((1,),)) == pytest.approx(0.0)


def test_splits_have_wide_chunks_between_intervals_only() -> None:
    some = list(splits(7, 2))
    assert ((0, 2, 3, 6), ((1,), (4, 5))) in some and ((0, 2, 4, 5, 6), ((1,), (3,))) not in some
    assert all(given[0] == 0 and given[-1] == 6 for given, _ in some)
    assert list(blocks(((1,), (4, 5, 6)), 2)) == [((1,), (4, 5)), ((1,), (5, 6))]


def test_depth_bounds_are_the_formulas() -> None:
    assert [plain_bound(n, 1) for n in (1, 2, 3, 4, 7, 8, 24)] == [1, 2, 2, 3, 3, 4, 5]
    assert plain_bound(1024, 32) == 192 and guided_bound(24, 1) == 13 and worst(24, 1) == 8
    assert calls(Bisection(1))[23] == 5  # the paper's walks
    assert int(calls(GuidedBisection(2), 4)[63]) <= worst(64, 2) <= guided_bound(64, 2)


@pytest.mark.parametrize("width", [2, 4])
def test_the_recurrence_of_entropy_two_gives_its_closed_form(width: int) -> None:
    values = entropy_two(12, width)
    for corridors in (0, 1, 2, 3, 7, 12):
        assert values[corridors] == pytest.approx(float(entropy_two_exactly(corridors, width)))
