"""Random sizes equal plain loops over their times, have the law these imply, and keep the bound."""

from itertools import pairwise, product
from math import log, prod

import pytest
import torch
from torch import Tensor

from maskwalk.analysis.law import bridge_law
from maskwalk.decoding.decode import decode
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Purpose, Streams
from maskwalk.worlds.walks.oracles import oracle_for
from tests.conftest import small_law
from tests.golden.single import Fill, Run, Toy, agree, follows, in_blocks

BOUNDS = ("tc", "dtc")


def times(total: int, steps: int, bound: str) -> list[float]:
    """t_0 … t_K: each step of "dtc" is 1 + ε times the one before; "tc" is its mirror image."""
    factor = (1 + total) ** (1 / steps)
    widths = [factor**k for k in range(steps)]
    if bound == "tc":
        widths.reverse()
    ends = [0.0]
    for width in widths:
        ends.append(ends[-1] + width / sum(widths))
    return ends


def random_sizes(steps: int, bound: str) -> Fill:
    def fill(run: Run, spots: list[int]) -> None:
        ends, u = times(len(spots), steps, bound), run.uniform(Purpose.CHOICE)
        for low, high in pairwise(ends):
            now = [i for i in spots if low < u[i] <= high]
            if now:
                p = run.ask(now)
                run.end_round({i: run.token(i, p[i]) for i in now})

    return fill


@pytest.mark.parametrize(("steps", "bound"), [(3, "tc"), (4, "dtc"), (20, "tc")])
def test_random_sizes_are_their_loops(steps: int, bound: str) -> None:
    agree(f"random_sizes({steps}, {bound!r})", random_sizes(steps, bound), 50)


def test_in_blocks() -> None:
    agree("blocks(size=4, inner=random_sizes(2))", in_blocks(random_sizes(2, "tc"), 4), 50)


@pytest.mark.parametrize("bound", BOUNDS)
def test_how_many_each_round_reveals(bound: str) -> None:
    """Where every round has a position, the sizes are multinomial numbers, none of them 0."""
    toy, count, steps = Toy(1, 10), 4000, 4
    empty = torch.full((count, 10), toy.mask_id)
    spec = f"random_sizes({steps}, {bound!r})"
    trace = decode(spec, toy, empty, streams=Streams(5, count), trace=True).trace
    assert trace is not None
    ends = times(10, steps, bound)
    rounds = trace.reveal_rounds()
    full = rounds.amax(1) == steps - 1
    expected = _sizes_given_all_rounds(10, [b - a for a, b in pairwise(ends)])
    for k in range(steps):
        found = (rounds[full] == k).double().sum(1)
        error = float(found.std()) / len(found) ** 0.5
        assert abs(float(found.mean()) - expected[k]) < 5 * error


def _sizes_given_all_rounds(total: int, widths: list[float]) -> list[float]:
    """The mean size of each round, given that none is empty: inclusion and exclusion."""
    rounds = range(len(widths))
    chance, sums = 0.0, [0.0 for _ in rounds]
    for left_out in product((False, True), repeat=len(widths)):
        sign = (-1) ** sum(left_out)
        inside = sum(w for w, out in zip(widths, left_out) if not out)
        chance += sign * inside**total
        for k in rounds:
            if not left_out[k]:
                sums[k] += sign * total * widths[k] * inside ** (total - 1)
    return [s / chance for s in sums]


def entropy(table: tuple[Tensor, Tensor], some: list[int]) -> float:
    """H of some positions of a law given as (sequences, probabilities)."""
    weights: dict[tuple[int, ...], float] = {}
    for row, p in zip(table[0].tolist(), table[1].tolist()):
        key = tuple(row[i] for i in some)
        weights[key] = weights.get(key, 0.0) + p
    return -sum(p * log(p) for p in weights.values() if p > 0)


def plans(total: int, steps: int, bound: str) -> list[tuple[float, tuple[int, ...]]]:
    """Every assignment of positions to rounds, with its probability."""
    ends = times(total, steps, bound)
    widths = [b - a for a, b in pairwise(ends)]
    every = product(range(steps), repeat=total)
    return [(prod(widths[k] for k in plan), plan) for plan in every]


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("steps", [2, 3])
def test_the_bound_holds(bound: str, steps: int) -> None:
    """The mean cost over all plans, from entropies of the law, against ε (D + (TC + DTC)/N)."""
    law = small_law("st_er(nodes=4, p=0.2)", "lazy(stay=0.4)", 4)
    mask = oracle_for(law).mask_id
    table, everyone = bridge_law(law, torch.full((4,), mask), mask), [0, 1, 2, 3]
    whole = entropy(table, everyone)
    total = sum(entropy(table, [i]) for i in everyone) - whole
    without = [entropy(table, [j for j in everyone if j != i]) for i in everyone]
    dual = whole - sum(whole - h for h in without)
    cost = 0.0
    for share, plan in plans(4, steps, bound):
        for k in range(steps):
            before = [i for i in everyone if plan[i] < k]
            now = [i for i in everyone if plan[i] == k]
            apart = sum(entropy(table, [*before, i]) - entropy(table, before) for i in now)
            cost += share * (apart - entropy(table, before + now) + entropy(table, before))
    eps = 5 ** (1 / steps) - 1
    least = total if bound == "tc" else dual
    assert 0.05 < cost <= eps * (least + (total + dual) / 4) <= 2 * eps * least + 1e-12


def test_its_law() -> None:
    toy = Toy(6, 3, vocab_size=2, sharp=1.5)
    law: dict[tuple[int, ...], float] = {}
    for share, plan in plans(3, 2, "dtc"):
        for tokens in product((0, 1), repeat=3):
            weight = share
            for k in range(2):
                run = Run(toy, [x if plan[i] < k else 2 for i, x in enumerate(tokens)])
                now = [i for i in range(3) if plan[i] == k]
                p = run.ask(now) if now else {}
                weight *= prod(p[i][tokens[i]] for i in now)
            law[tokens] = law.get(tokens, 0.0) + weight
    table = torch.tensor(list(law)), torch.tensor(list(law.values()), dtype=torch.float64)
    assert follows("random_sizes(2, 'dtc')", toy, table)


def test_kind_and_sentences() -> None:
    assert SAMPLERS.build("random_sizes").law_kind == "factorised"
    for spec in ("random_sizes(0)", "random_sizes(bound='mi')"):
        with pytest.raises(MaskwalkError):
            SAMPLERS.build(spec)
