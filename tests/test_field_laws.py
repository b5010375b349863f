"""Which of the field's samplers are exact, and by how much the others are not, by enumeration.

A sampler that is no policy is enumerated here from its definition, not from its code; its code is
then compared with that law by chi-square at a false-alarm rate of 1e-6.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product

import numpy as np
import pytest
import torch
from scipy.stats import chi2
from torch import Tensor

from maskwalk.analysis.contract import FALSE_ALARM, goodness_of_fit
from maskwalk.analysis.law import bridge_law, sampler_law, total_variation
from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import Draw
from maskwalk.denoiser import Denoiser
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from maskwalk.worlds.walks.oracles import oracle_for
from tests.conftest import small_law

Law = tuple[Tensor, Tensor]
State = tuple[int, ...]
Step = Callable[[State, list[int], np.ndarray], Iterable[tuple[float, State]]]


@dataclass
class Arbitrary:
    """Marginals with no joint law behind them: a random table, a row for every canvas."""

    length: int = 4
    vocab_size: int = 2
    score_grid: float = 1e-9
    table: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.mask_id = self.vocab_size
        rng = np.random.default_rng(5)
        size = ((self.vocab_size + 1) ** self.length, self.length, self.vocab_size)
        self.table = torch.tensor(rng.dirichlet([0.7] * self.vocab_size, size[:2])).log()

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        at = tokens == self.mask_id if at is None else at
        code = (tokens * (self.vocab_size + 1) ** torch.arange(self.length)).sum(1)
        return self.table[code][at]


def law_of(denoiser: Denoiser, length: int, steps: list[Step]) -> Law:
    """The law after the given rounds, each a function (canvas, masked, probs) -> outcomes."""
    mask = denoiser.mask_id
    weights: dict[State, float] = {(mask,) * length: 1.0}
    for step in steps:
        after: dict[State, float] = {}
        for state, weight in weights.items():
            masked = [i for i, x in enumerate(state) if x == mask]
            if not masked:
                after[state] = after.get(state, 0.0) + weight
                continue
            probs = np.zeros((length, denoiser.vocab_size))
            probs[masked] = denoiser(torch.tensor([state])).exp().numpy()
            for p, new in step(state, masked, probs):
                after[new] = after.get(new, 0.0) + weight * p
        weights = {state: weight for state, weight in after.items() if weight > 0}
    assert not any(mask in state for state in weights)
    return torch.tensor(list(weights)), torch.tensor(list(weights.values()), dtype=torch.float64)


def fill(state: State, where: Iterable[int], tokens: Iterable[int]) -> State:
    new = dict(zip(where, tokens))
    return tuple(new.get(i, x) for i, x in enumerate(state))


def coins(a: float) -> Step:
    """Every masked position unmasks with probability a."""

    def step(state: State, masked: list[int], probs: np.ndarray) -> Iterable[tuple[float, State]]:
        for size in range(len(masked) + 1):
            for some in combinations(masked, size):
                for x in product(range(probs.shape[1]), repeat=size):
                    p = a**size * (1 - a) ** (len(masked) - size)
                    yield (
                        p * float(np.prod([probs[i, t] for i, t in zip(some, x)])),
                        fill(state, some, x),
                    )

    return step


def argmaxes(state: State, masked: list[int], probs: np.ndarray) -> Iterable[tuple[float, State]]:
    yield 1.0, fill(state, masked, probs[masked].argmax(1).tolist())


def draw_first(keep: Callable[[list[float]], int]) -> Step:
    """Draw everywhere; keep as many of the likeliest draws as `keep` says, ties evenly."""

    def step(state: State, masked: list[int], probs: np.ndarray) -> Iterable[tuple[float, State]]:
        for x in product(range(probs.shape[1]), repeat=len(masked)):
            drawn = [float(probs[i, t]) for i, t in zip(masked, x)]
            weight, count = float(np.prod(drawn)), keep(sorted(drawn, reverse=True))
            if weight == 0:
                continue
            bar = sorted(drawn, reverse=True)[count - 1]
            sure = [j for j, p in enumerate(drawn) if p > bar + 1e-9]
            tied = [j for j, p in enumerate(drawn) if abs(p - bar) <= 1e-9]
            ways = list(combinations(tied, count - len(sure)))
            for some in ways:
                kept = [*sure, *some]
                yield (
                    weight / len(ways),
                    fill(state, [masked[j] for j in kept], [x[j] for j in kept]),
                )

    return step


def ancestral(denoiser: Denoiser, length: int, steps: int, end: float = 0.0) -> Law:
    times = [1 - k * (1 - end) / steps for k in range(steps)] + [end]
    rounds = [coins((t - s) / t) for t, s in pairwise(times)]
    return law_of(denoiser, length, [*rounds, argmaxes] if end else rounds)


def agrees(spec: str, denoiser: Denoiser, law: Law, draw: Draw | None = None) -> bool:
    """Whether 20000 sequences of the sampler pass for the law."""
    tokens = torch.full((20000, law[0].shape[1]), denoiser.mask_id)
    result = decode(
        SAMPLERS.build(spec), denoiser, tokens, streams=Streams(3, 20000), draw=draw
    ).tokens
    statistic, freedom = goodness_of_fit(result, *law)
    return bool(chi2.sf(statistic, freedom) > FALSE_ALARM)


ANY = Arbitrary()
EMPTY = torch.full((4,), ANY.mask_id)
RANDOM = sampler_law(SAMPLERS.build("random()"), ANY, EMPTY)
LEFT = sampler_law(SAMPLERS.build("left_to_right"), ANY, EMPTY)
CHAIN = small_law("st_er(nodes=3, p=0.0)", "lazy(stay=0.3)", 3)
ORACLE = oracle_for(CHAIN)
NU = bridge_law(CHAIN, torch.full((3,), 3), 3)


def test_first_hitting_is_random_one_at_a_time_for_any_denoiser() -> None:
    assert agrees("first_hitting()", ANY, RANDOM)
    assert not agrees("first_hitting()", ANY, LEFT)  # the test can tell
    assert agrees("first_hitting()", ORACLE, NU)


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_speculative_is_one_at_a_time_for_any_denoiser(k: int) -> None:
    assert total_variation(LEFT, RANDOM) > 0.05
    assert agrees(f"speculative(k={k})", ANY, LEFT)
    assert agrees(f"speculative('random', {k})", ANY, RANDOM)
    assert agrees(f"speculative(k={k})", ORACLE, NU)


def test_speculative_is_exact_with_draw_options() -> None:
    draw = Draw(temperature=0.6, min_p=0.2)
    law = sampler_law(SAMPLERS.build("left_to_right"), ANY, EMPTY, draw=draw)
    assert total_variation(law, LEFT) > 0.05
    assert agrees("speculative(k=3)", ANY, law, draw)


def test_ancestral_is_random_one_at_a_time_as_steps_grow() -> None:
    laws = {steps: ancestral(ANY, 4, steps) for steps in (1, 2, 4, 8, 16, 64)}
    far = [total_variation(law, RANDOM) for law in laws.values()]
    assert all(b < a for a, b in pairwise(far))
    # Two unmask together with a chance of the order of 1/steps, so the distance is of that order.
    assert far[0] > 0.1 and far[-1] < 0.01 and far[-1] == pytest.approx(far[-2] / 4, rel=0.1)
    for steps in (2, 8):
        assert agrees(f"ancestral({steps})", ANY, laws[steps])
        assert agrees(f"ancestral({steps}, cached=True)", ANY, laws[steps])
    assert not agrees("ancestral(8)", ANY, laws[1])


def test_by_how_much_the_argmax_finish_is_biased() -> None:
    """About eps · length at the public 1e-5; visible when time stops early."""
    fair = ancestral(ORACLE, 3, 16)
    for eps, bias in ((1e-5, 8.27e-6), (0.2, 0.1255)):
        biased = ancestral(ORACLE, 3, 16, eps)
        assert total_variation(biased, fair) == pytest.approx(bias, rel=0.01)
    law = ancestral(ORACLE, 3, 4, 0.2)
    assert agrees("ancestral(4, finish='argmax', eps=0.2)", ORACLE, law)
    assert not agrees("ancestral(4)", ORACLE, law)


def test_by_how_much_drawing_first_is_biased() -> None:
    """One at a time with a perfect denoiser, where every policy is exact, drawing first is not."""
    one = law_of(ORACLE, 3, [draw_first(lambda drawn: 1)] * 3)
    assert agrees("low_confidence(3)", ORACLE, one)
    assert not agrees("low_confidence(3)", ORACLE, NU)
    assert total_variation(one, NU) == pytest.approx(0.2535, abs=1e-4)

    def bar(drawn: list[float]) -> int:
        return max(1, sum(p >= 0.4 - 1e-9 for p in drawn))

    law = law_of(ORACLE, 3, [draw_first(bar)] * 3)
    assert agrees("threshold_drawn(0.4)", ORACLE, law)
    assert total_variation(law, NU) == pytest.approx(0.3291, abs=1e-4)
    choose = sampler_law(SAMPLERS.build("threshold(0.99)"), ORACLE, torch.full((3,), 3))
    assert total_variation(choose, NU) < 1e-12


def test_by_how_much_the_merged_level_of_dus_is_biased() -> None:
    """Length 5 with both ends given: 2, then 1 and 3, is bisection and exact; merged it is not."""
    law = small_law("st_er(nodes=4, p=0.2)", "lazy(stay=0.2)", 5)
    oracle, walk = oracle_for(law), law.sample(1, 0)[0]
    start = torch.full((5,), oracle.mask_id)
    start[0], start[4] = walk[0], walk[4]
    truth = bridge_law(law, start, oracle.mask_id)

    def distance(spec: str) -> float:
        return total_variation(sampler_law(SAMPLERS.build(spec), oracle, start), truth)

    assert distance("dus(merge=False)") < 1e-12
    assert distance("dus()") == pytest.approx(0.4054, abs=1e-4)
