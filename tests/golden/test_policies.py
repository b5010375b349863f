"""The field's policies against plain loops over numbers (tests/golden), on 56 toy networks.

Every policy decodes empty canvases, prompts, tokens given in the middle and both, at temperature 0;
the round of every position and every token have to be those of the plain loop. Rules with random
numbers are given the same ones.
"""

import pytest
import torch

from maskwalk.decoding.decode import Decoded, decode
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.policy import UnmaskingPolicy
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Purpose, Streams
from tests.golden import rules
from tests.golden.plain import Rule, Uniforms, reveal_rounds
from tests.golden.toys import TOYS, Toy

ARGMAX = Draw(temperature=0)
SEED = 5


def decoded(spec: str, toy: Toy, draw: Draw = ARGMAX) -> Decoded:
    tokens = torch.tensor(toy.starts)
    streams = Streams(SEED, len(tokens))
    return decode(SAMPLERS.build(spec), toy, tokens, streams=streams, draw=draw, trace=True)


class Numbers:
    """The random numbers of a batch, as plain lists."""

    def __init__(self, toy: Toy, rows: int) -> None:
        self.streams, self.length = Streams(SEED, rows), toy.length
        self.made: dict[tuple[str, int], list[list[float]]] = {}

    def of(self, row: int) -> Uniforms:
        def uniforms(purpose: str, round: int) -> list[float]:
            key = (purpose, round)
            if key not in self.made:
                whole = self.streams.uniform(Purpose[purpose.upper()], round, self.length)
                self.made[key] = whole.tolist()
            return self.made[key][row]

        return uniforms


POLICIES: dict[str, tuple[Rule, int | None]] = {
    "confidence(block=1)": (rules.greedy("confidence"), None),
    "entropy(block=2)": (rules.greedy("entropy", 2), None),
    "margin(block=3)": (rules.greedy("margin", 3), None),
    "entropy(block='exponential')": (rules.greedy("entropy", "exponential"), None),
    "confidence(steps=4)": (rules.in_steps("confidence", 4), None),
    "margin(steps=5)": (rules.in_steps("margin", 5), None),
    "entropy(steps=40)": (rules.in_steps("entropy", 40), None),
    "entropy(steps=5, spread='late')": (rules.in_late_steps("entropy", 5), None),
    "confidence(steps=16, spread='late')": (rules.in_late_steps("confidence", 16), None),
    "threshold(tau=0.9)": (rules.threshold(0.9), None),
    "threshold(tau=0.6)": (rules.threshold(0.6), None),
    "threshold_drawn(tau=0.6)": (rules.threshold(0.6), None),
    "low_confidence(steps=4)": (rules.in_steps("confidence", 4), None),
    "factor(f=1.0)": (rules.factor(1.0), None),
    "factor(f=2.5)": (rules.factor(2.5), None),
    "entropy_bounded(gamma=0.5)": (rules.entropy_bounded(0.5), None),
    "entropy_bounded(gamma=1.0, score='margin')": (rules.entropy_bounded(1.0, "margin"), None),
    "constant_entropy(h=1.0)": (rules.constant_entropy(1.0), None),
    "dus()": (rules.dus(), None),
    "dus(base=3, merge=False)": (rules.dus(3, False), None),
    "dus(skip=0.5)": (rules.dus(skip=0.5), None),
    "halton(steps=4)": (rules.halton(4), None),
    "halton(steps=8)": (rules.halton(8), None),
    "hierarchy()": (rules.hierarchy(0.4, 0.9), None),
    "hierarchy(low=0.7, high=0.8)": (rules.hierarchy(0.7, 0.8), None),
    "local_leap(anchor=0.8, near=0.5, radius=2)": (rules.local_leap(0.8, 0.5, 2), None),
    "klass(conf=0.6, kl=0.1, window=2)": (rules.klass(0.6, 0.1, 2), None),
    "klass(conf=0.5, kl=0.3, window=1)": (rules.klass(0.5, 0.3, 1), None),
    "pc()": (rules.pc(0.25, 10.0, 1), None),
    "pc(decay=0.05, alpha=0.8, block=2)": (rules.pc(0.05, 0.8, 2), None),
    "spaced(confidence(block=4), gap=3)": (rules.spaced(rules.greedy("confidence", 4), 3), None),
    "spaced(entropy(block=6), gap=2)": (
        rules.spaced(rules.greedy("entropy", 6), 2, "entropy"),
        None,
    ),
    "bisection(order=1)": (rules.bisection, None),
    "random(block=2)": (rules.random(2), None),
    "first_hitting()": (rules.first_hitting, None),
    "stochastic(confidence(), 0.5)": (rules.stochastic("confidence", 0.5, True), None),
    "stochastic(entropy(block=2), 0.5, anneal=False)": (
        rules.stochastic("entropy", 0.5, False, 2),
        None,
    ),
    # Inside blocks, counted from the end of the prompt; the last one is shorter.
    "blocks(4, confidence(block=2))": (rules.greedy("confidence", 2), 4),
    "blocks(4, low_confidence(steps=2))": (rules.in_steps("confidence", 2), 4),
    "blocks(5, threshold_drawn(0.6))": (rules.threshold(0.6), 5),
    "blocks(5, threshold(0.6))": (rules.threshold(0.6), 5),
    "blocks(4, entropy(steps=2))": (rules.in_steps("entropy", 2), 4),
    "blocks(5, entropy_bounded(gamma=0.5))": (rules.entropy_bounded(0.5), 5),
    "blocks(5, factor(f=1.5))": (rules.factor(1.5), 5),
    "blocks(4, dus())": (rules.dus(), 4),
    "blocks(5, dus(merge=False))": (rules.dus(merge=False), 5),
    "blocks(4, halton(steps=3))": (rules.halton(3), 4),
    "blocks(5, hierarchy())": (rules.hierarchy(0.4, 0.9), 5),
    "blocks(5, local_leap(0.8, 0.5, 2))": (rules.local_leap(0.8, 0.5, 2), 5),
    "blocks(5, klass(conf=0.6, kl=0.1))": (rules.klass(0.6, 0.1, 2), 5),
    "blocks(4, pc(block=2))": (rules.pc(0.25, 10.0, 2), 4),
    "blocks(4, stochastic(confidence(), 0.5))": (rules.stochastic("confidence", 0.5, True), 4),
    "blocks(5, stochastic(pc(), 0.0))": (rules.pc(0.25, 10.0, 1), 5),
    "blocks(5, spaced(pc(), gap=1))": (rules.pc(0.25, 10.0, 1), 5),
    "blocks(8, blocks(4, klass(conf=0.6, kl=0.1)))": (rules.klass(0.6, 0.1, 2), 4),
    "blocks(5, spaced(confidence(block=3), gap=2))": (
        rules.spaced(rules.greedy("confidence", 3), 2),
        5,
    ),
    "blocks(4, bisection())": (rules.bisection, 4),
    "blocks(4, constant_entropy(h=1.0))": (rules.constant_entropy(1.0), 4),
    "blocks(5, random(block=2))": (rules.random(2), 5),
    "blocks(5, first_hitting())": (rules.first_hitting, 5),
    # Blocks longer than the canvas, or than the block they lie in.
    "blocks(99, dus())": (rules.dus(), 99),
    "blocks(32, halton(steps=3))": (rules.halton(3), 32),
    "blocks(3, blocks(99, dus()))": (rules.dus(), 3),
    # Wrappers that do nothing: what lasts, the place in the block and the masks outside are kept.
    "blocks(5, early_commit(pc(), 1e6, 1e6, 1e6))": (rules.pc(0.25, 10.0, 1), 5),
    "blocks(5, early_commit(klass(conf=0.6, kl=0.1), 1e6, 1e6, 1e6))": (
        rules.klass(0.6, 0.1, 2),
        5,
    ),
    "blocks(5, lossless(pc(), k=1))": (rules.pc(0.25, 10.0, 1), 5),
    "blocks(5, lossless(halton(steps=3), k=1))": (rules.halton(3), 5),
    "blocks(8, lossless(blocks(4, klass(conf=0.6, kl=0.1)), k=1))": (rules.klass(0.6, 0.1, 2), 4),
    "blocks(5, credit(dus(), alpha=0.0))": (rules.dus(), 5),
    "blocks(5, credit(klass(conf=0.6, kl=0.1), alpha=0.0))": (rules.klass(0.6, 0.1, 2), 5),
}


@pytest.mark.parametrize("spec", POLICIES)
def test_rounds_and_tokens_are_those_of_a_plain_loop(spec: str) -> None:
    rule, size = POLICIES[spec]
    for toy in TOYS:
        result = decoded(spec, toy)
        assert result.trace is not None
        rounds, numbers = result.trace.reveal_rounds().tolist(), Numbers(toy, len(toy.starts))
        for row, start in enumerate(toy.starts):
            expected, tokens = reveal_rounds(toy, start, rule, size, numbers.of(row))
            assert rounds[row] == expected, (toy.length, start)
            assert result.tokens[row].tolist() == tokens
        if isinstance(SAMPLERS.build(spec), UnmaskingPolicy):
            assert torch.equal(result.calls, result.rounds)


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ("entropy_bounded(gamma=0.1)", rules.entropy_bounded(0.1)),
        ("constant_entropy(h=0.1)", rules.constant_entropy(0.1)),
    ],
)
def test_budgets_are_of_exact_entropies(spec: str, rule: Rule) -> None:
    """On a grid so coarse that most entropies round to nothing, as many positions are revealed in
    the first round as the exact ones allow."""
    several = 0
    for seed, length in ((31, 16), (32, 24), (33, 40)):
        toy = Toy(seed, length)
        toy.outer = toy.outer * 2
        toy.score_grid = 0.1
        result = decoded(spec, toy)
        assert result.trace is not None
        first = (result.trace.reveal_rounds() == 0).sum(1).tolist()
        for row, start in enumerate(toy.starts):
            expected = reveal_rounds(toy, start, rule)[0].count(0)
            assert first[row] == expected
            several += expected > 2
    assert several > 10


@pytest.mark.parametrize(
    "inner", ["dependence_bounded(budget=0.5)", "dependence_bounded(budget=2.0)", "halton(steps=3)"]
)
def test_a_block_starts_anew(inner: str) -> None:
    """The second block is decoded as by somebody who was given the first."""
    for toy in TOYS[4:]:
        size = toy.length // 2
        tokens = torch.tensor([toy.canvas([], network) for network in range(8)])
        spec, streams = f"blocks({size}, {inner})", Streams(SEED, 8)
        whole = decode(spec, toy, tokens, streams=streams, draw=ARGMAX, trace=True)
        half = tokens.clone()
        half[:, :size] = whole.tokens[:, :size]
        again = decode(spec, toy, half, streams=streams, draw=ARGMAX, trace=True)
        assert whole.trace is not None and again.trace is not None
        first, second = (x.trace.reveal_rounds()[:, size:-1] for x in (whole, again))
        assert torch.equal(first - first.amin(1, keepdim=True), second)
        assert torch.equal(whole.tokens, again.tokens)
