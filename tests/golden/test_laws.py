"""The laws of remasking and of noisy rules at temperature 1, enumerated from their formulas.

What tests/test_field_laws.py enumerates (ancestral, first hitting, draw-first rules, speculation)
is not repeated. A state is a canvas and what a rule remembers; every coin and every token of a
round is gone through, and the samplers' sequences are compared by chi-square at 1e-6.
"""

from collections.abc import Callable, Iterable
from itertools import combinations, product
from math import exp, log, prod

import pytest
import torch
from scipy.stats import chi2
from torch import Tensor

from maskwalk.analysis.contract import FALSE_ALARM, goodness_of_fit
from maskwalk.analysis.law import sampler_law, total_variation
from maskwalk.decoding.decode import decode
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from tests.golden.samplers import loop_alpha
from tests.test_field_laws import Arbitrary

Memory = tuple[float, ...]
State = tuple[tuple[int, ...], Memory]
Round = Callable[[State, int], Iterable[tuple[float, State]]]
LENGTH = 3
ANY = Arbitrary(length=LENGTH)
MASK = ANY.mask_id


def marginals(canvas: tuple[int, ...]) -> list[list[float]]:
    everywhere = torch.ones((1, LENGTH), dtype=torch.bool)
    return ANY(torch.tensor([canvas]), everywhere).exp().tolist()


def law_of(step: Round, rounds: int) -> tuple[Tensor, Tensor]:
    weights: dict[State, float] = {((MASK,) * LENGTH, (0.0,) * LENGTH): 1.0}
    for k in range(rounds):
        after: dict[State, float] = {}
        for state, weight in weights.items():
            for p, new in step(state, k):
                after[new] = after.get(new, 0.0) + weight * p
        weights = after
    law: dict[tuple[int, ...], float] = {}
    for (canvas, _), weight in weights.items():
        law[canvas] = law.get(canvas, 0.0) + weight
    assert sum(law.values()) == pytest.approx(1) and not any(MASK in x for x in law)
    return torch.tensor(list(law)), torch.tensor(list(law.values()), dtype=torch.float64)


def remdm(kind: str, steps: int, eta: float) -> Round:
    """A masked position stays or becomes a token; a revealed one stays or is masked."""

    def step(state: State, k: int) -> Iterable[tuple[float, State]]:
        canvas, p_then = state
        t, s = 1 - k / steps, 1 - (k + 1) / steps
        now, then = (loop_alpha(t), loop_alpha(s)) if kind == "loop" else (1 - t, 1 - s)
        most = min(1.0, (1 - then) / now) if now > 0 else 1.0
        p, total = marginals(canvas), sum(exp(-q) for q, x in zip(p_then, canvas) if x != MASK)
        ways: list[list[tuple[float, int, float]]] = []
        for i, x in enumerate(canvas):
            sigma = {"cap": min(eta, most), "rescale": eta * most}.get(kind, 0.0)
            if kind == "fb" and now > 0:
                sigma = min((then - now) / now, most)
            if kind == "loop" and 0.05 < t <= 0.55:
                sigma = min(eta, most)
            if kind == "conf" and x != MASK:
                sigma = most * exp(-p_then[i]) / total
            if x != MASK:
                ways.append([(1 - sigma, x, p_then[i]), (sigma, MASK, 0.0)])
            else:
                a = (then - (1 - sigma) * now) / (1 - now)
                drawn = [(a * q, token, q) for token, q in enumerate(p[i])]
                ways.append([(1 - a, MASK, 0.0), *drawn])
        for way in product(*ways):
            weight = prod(one[0] for one in way)
            if weight > 0:
                yield weight, (tuple(one[1] for one in way), tuple(one[2] for one in way))

    return step


def p2(eta: float, steps: int) -> Round:
    """Every masked position draws; the lowest log p are masked, those of revealed ones times η."""

    def step(state: State, k: int) -> Iterable[tuple[float, State]]:
        canvas, known = state
        p, masked = marginals(canvas), [i for i, x in enumerate(canvas) if x == MASK]
        for drawn in product(range(ANY.vocab_size), repeat=len(masked)):
            tokens, log_p, weight = list(canvas), list(known), 1.0
            for i, x in zip(masked, drawn):
                tokens[i], log_p[i], weight = x, log(p[i][x]), weight * p[i][x]
            score = [q if i in masked else eta * q for i, q in enumerate(log_p)]
            order = sorted(range(LENGTH), key=lambda i: score[i])
            hidden = order[: LENGTH * (steps - k - 1) // steps] if masked else []
            left = tuple(MASK if i in hidden else x for i, x in enumerate(tokens))
            yield weight, (left, tuple(log_p))

    return step


def core(redraw: bool) -> Round:
    """One position a step; from the second on the revealed token that a context with the two of
    smallest margin masked supports least is drawn anew from it, or masked; the last fills."""

    def margin(p: list[float]) -> float:
        one, two = sorted(p, reverse=True)[:2]
        return one - two

    def step(state: State, k: int) -> Iterable[tuple[float, State]]:
        canvas, known = state
        p, masked = marginals(canvas), [i for i, x in enumerate(canvas) if x == MASK]
        last = k + 1 == LENGTH
        chosen = sorted(masked, key=lambda i: -max(p[i]))[: len(masked) if last else 1]
        weak = sorted(set(range(LENGTH)) - set(masked), key=lambda i: known[i])[:2]
        hidden = tuple(MASK if i in weak else x for i, x in enumerate(canvas))
        ahead = marginals(hidden)
        brittle = sorted(weak, key=lambda i: ahead[i][canvas[i]])[: 0 if last else 1]
        ways = [[(q, i, x, margin(p[i])) for x, q in enumerate(p[i])] for i in chosen]
        for i in brittle:
            again = [(q, i, x, margin(ahead[i])) for x, q in enumerate(ahead[i])]
            ways.append(again if redraw else [(1.0, i, MASK, 0.0)])
        for way in product(*ways):
            tokens, margins = list(canvas), list(known)
            for _, i, x, m in way:
                tokens[i], margins[i] = x, m
            yield prod(one[0] for one in way), (tuple(tokens), tuple(margins))

    return step


def at_random(block: int) -> Round:
    """Every set of `block` masked positions is as likely."""

    def step(state: State, k: int) -> Iterable[tuple[float, State]]:
        canvas, memory = state
        masked = [i for i, x in enumerate(canvas) if x == MASK]
        sets = list(combinations(masked, min(block, len(masked))))
        yield from _filled(canvas, memory, {some: 1 / len(sets) for some in sets})

    return step


def noisy(temperature: float) -> Round:
    """Position i first with probability ∝ exp(c_i / (T m)), m the share that is masked."""

    def step(state: State, k: int) -> Iterable[tuple[float, State]]:
        canvas, memory = state
        masked, p = [i for i, x in enumerate(canvas) if x == MASK], marginals(canvas)
        share = len(masked) / LENGTH
        weight = {(i,): exp(max(p[i]) / (temperature * share)) for i in masked}
        total = sum(weight.values())
        yield from _filled(canvas, memory, {some: w / total for some, w in weight.items()})

    return step


def _filled(
    canvas: tuple[int, ...], memory: Memory, sets: dict[tuple[int, ...], float]
) -> Iterable[tuple[float, State]]:
    p = marginals(canvas)
    for some, chance in sets.items():
        for drawn in product(range(ANY.vocab_size), repeat=len(some)):
            new = dict(zip(some, drawn))
            weight = chance * prod(p[i][x] for i, x in new.items())
            yield weight, (tuple(new.get(i, x) for i, x in enumerate(canvas)), memory)


def agrees(spec: str, law: tuple[Tensor, Tensor], count: int = 20000) -> bool:
    tokens = torch.full((count, LENGTH), MASK)
    result = decode(SAMPLERS.build(spec), ANY, tokens, streams=Streams(3, count)).tokens
    statistic, freedom = goodness_of_fit(result, *law)
    return bool(chi2.sf(statistic, freedom) > FALSE_ALARM)


REMDM = {
    "remdm(kind='cap', steps=4, eta=0.4)": remdm("cap", 4, 0.4),
    "remdm(kind='rescale', steps=4, eta=0.6)": remdm("rescale", 4, 0.6),
    "remdm(kind='conf', steps=4)": remdm("conf", 4, 1.0),
    "remdm(kind='loop', steps=5, eta=0.4)": remdm("loop", 5, 0.4),
    "remdm(kind='fb', steps=4)": remdm("fb", 4, 0.0),
}


@pytest.mark.parametrize("spec", REMDM)
def test_the_law_of_remdm(spec: str) -> None:
    steps = 5 if "loop" in spec else 4
    assert agrees(spec, law_of(REMDM[spec], steps))
    assert not agrees(spec, law_of(at_random(1), LENGTH))  # the test can tell


@pytest.mark.parametrize(("eta", "steps"), [(1.0, 3), (2.0, 4), (0.3, 3)])
def test_the_law_of_p2(eta: float, steps: int) -> None:
    assert agrees(f"p2(eta={eta}, steps={steps})", law_of(p2(eta, steps), steps))
    assert not agrees(f"p2(eta={eta}, steps={steps})", law_of(at_random(1), LENGTH))


@pytest.mark.parametrize("redraw", [True, False])
def test_the_law_of_core(redraw: bool) -> None:
    spec = f"core(steps=3, every=1, candidates=2, start=0.0, end=1.0, redraw={redraw})"
    assert agrees(spec, law_of(core(redraw), LENGTH))
    assert not agrees(spec, law_of(at_random(1), LENGTH))
    assert not agrees(spec, law_of(core(not redraw), LENGTH))


@pytest.mark.parametrize("block", [1, 2])
def test_the_law_of_random(block: int) -> None:
    start = torch.full((LENGTH,), MASK)
    enumerated = sampler_law(SAMPLERS.build(f"random(block={block})"), ANY, start)
    plain = law_of(at_random(block), -(-LENGTH // block))
    assert total_variation(enumerated, plain) < 1e-12
    assert agrees(f"random(block={block})", plain)
    assert total_variation(plain, law_of(at_random(3 - block), LENGTH)) > 0.01


def test_the_law_of_annealed_noise() -> None:
    law = law_of(noisy(0.3), LENGTH)
    assert agrees("stochastic(confidence(), temperature=0.3)", law)
    assert not agrees("stochastic(confidence(), temperature=0.02)", law)
