"""Blocks: where they begin, what they show the inner sampler, and which samplers fit inside."""

from dataclasses import dataclass, field
from math import exp

import pytest
import torch
from scipy.stats import chi2
from torch import Tensor

from maskwalk.analysis.contract import FALSE_ALARM, Stand
from maskwalk.analysis.law import sampler_law
from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.kinds import EXACT, FACTORISED, SHAPED
from maskwalk.decoding.policy import chooses_first
from maskwalk.samplers import SAMPLERS
from maskwalk.stats import goodness_of_fit
from maskwalk.streams import Streams
from tests.test_field_samplers import go, remasked, row, trace
from tests.test_samplers import Lookup, full, rounds, run

SURE = (0.6, 0.95, 0.9, 0.8, 0.7, 0.99)


def test_blocks_begin_at_the_end_of_the_prompt() -> None:
    # One token given: the blocks are 1 2 3 and 4 5, not 0 1 2 and 3 4 5.
    masked = torch.tensor([[False, True, True, True, True, True]])
    assert trace("blocks(3, confidence(block=1))", *SURE, masked=masked) == [-1, 0, 1, 2, 4, 3]
    # A prompt of each sequence's own; what is given later moves no block.
    masked = torch.tensor(
        [
            [False, False, True, True, True, True],  # 2 3 4 | 5
            [True, False, True, True, True, True],  # 0 1 2 | 3 4 5
        ]
    )
    both = rounds(run("blocks(3, confidence(block=1))", masked, row(*SURE)))
    assert both == [[-1, -1, 0, 1, 2, 3], [1, -1, 0, 3, 4, 2]]
    # Inside a block positions are counted from its beginning: DUS's strides of 4 are 2, 1.
    masked = full(5).clone()
    masked[0, 0] = False
    assert trace("blocks(4, dus())", *[0.7] * 5, masked=masked) == [-1, 0, 1, 0, 1]


def test_blocks_in_blocks_are_counted_from_the_larger_ones_beginning() -> None:
    # 0 1 | 2 ‖ 3 4 | 5, and not 0 1 | 2 ‖ 3 | 4 5.
    assert trace("blocks(3, blocks(2, confidence(block=1)))", *SURE) == [1, 0, 2, 3, 4, 5]
    idle = "blocks(3, lossless(blocks(2, confidence(block=1)), k=1))"
    assert trace(idle, *SURE) == [1, 0, 2, 3, 4, 5]
    # What is given at the beginning of a larger block moves no block: 0 1 | 2 ‖ 3 4 | 5.
    for inner in ("low_confidence(steps=2)", "confidence(block=1)"):
        start = torch.tensor([[2, 2, 2, 1, 2, 2]])
        result = go(f"blocks(3, blocks(2, {inner}))", Lookup(row(*SURE)), start)
        assert rounds(result) == [[1, 0, 2, -1, 3, 4]]


@dataclass
class Asked(Lookup):
    """Notes where it is asked, and how many masks it reads."""

    asked: list[tuple[int, int]] = field(default_factory=list)

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Tensor:
        at = tokens == self.mask_id if at is None else at
        self.asked.append((int(at.sum()), int((tokens == self.mask_id).sum())))
        return super().__call__(tokens, at)


INNER = ["low_confidence(steps=2)", "p2(steps=2)", "speculative(k=2)", "confidence(block=1)"]
INNER += [
    "entropy_bounded()",
    "spaced(entropy(), 1)",
    "stochastic(margin())",
    "blocks(1, random())",
]


@pytest.mark.parametrize("inner", INNER)
def test_an_inner_sampler_reads_everything_and_is_asked_for_its_block(inner: str) -> None:
    denoiser = Asked(row(*SURE))
    go(f"blocks(2, {inner})", denoiser, torch.full((1, 6), 2))
    assert denoiser.asked[0][1] == 6  # every mask is in the input
    assert max(asked for asked, _ in denoiser.asked) <= 2
    outer = Asked(row(*SURE))
    go("stochastic(blocks(2, confidence()))", outer, torch.full((1, 6), 2))
    assert max(asked for asked, _ in outer.asked) == 2 and len(outer.asked) == 6


def test_a_rule_that_asks_for_everything_does_so_once() -> None:
    denoiser = Asked(row(*SURE))
    result = go("blocks(2, pc())", denoiser, torch.full((1, 6), 2))
    assert [asked for asked, _ in denoiser.asked] == [6, 1, 2, 1, 2, 1]
    assert result.calls.tolist() == [6]


def test_low_confidence_inside_blocks_by_hand() -> None:
    # Two steps of three: two, then one. Block 0: .95 .9, then .6; block 1: .99 .8, then .7.
    result = go("blocks(3, low_confidence(steps=2))", Lookup(row(*SURE)), torch.full((1, 6), 2))
    assert rounds(result) == [[1, 0, 0, 2, 3, 2]]
    assert result.calls.tolist() == [4]
    # Behind a prompt of two the blocks are 2 3 4 and 5.
    result = go(
        "blocks(3, low_confidence(steps=2))", Lookup(row(*SURE)), torch.tensor([[0, 1, 2, 2, 2, 2]])
    )
    assert rounds(result) == [[-1, -1, 0, 0, 1, 2]]


def test_a_sampler_that_remasks_stays_in_its_block() -> None:
    """P2 in blocks of three is P2 on each block: with marginals that never change, token by token
    the same as on a canvas of that block alone."""
    sure = row(0.6, 0.7, 0.8)
    tokens = torch.full((300, 6), 2)
    both = go("blocks(3, p2(steps=3))", Lookup(sure.repeat(2)), tokens, Draw())
    one = go("p2(steps=3)", Lookup(sure), tokens[:, :3], Draw())
    assert torch.equal(both.tokens[:, :3], one.tokens)
    assert remasked(both) and both.calls.tolist() == [6] * 300
    for _, round, position in remasked(both):
        assert position // 3 == round // 3
    # Every row keeps its own time: one with half a prompt is in its second block sooner.
    tokens[::2, :3] = 1
    mixed = go("blocks(3, remdm(steps=4))", Lookup(sure.repeat(2)), tokens, Draw())
    assert bool((mixed.tokens < 2).all()) and bool((mixed.tokens[::2, :3] == 1).all())
    assert mixed.rounds.tolist() == [4, 8] * 150


def test_blocks_have_the_kind_of_what_is_inside() -> None:
    kinds = {
        "blocks(2, confidence())": FACTORISED,
        "blocks(2, speculative(k=2))": EXACT,
        "blocks(2, ancestral(4))": FACTORISED,
        "blocks(2, low_confidence())": SHAPED,
        "blocks(2, blocks(2, p2()))": SHAPED,
    }
    for spec, kind in kinds.items():
        sampler = SAMPLERS.build(spec)
        assert sampler.law_kind == kind, spec
        assert chooses_first(sampler) == (spec == "blocks(2, confidence())")


def test_speculation_inside_blocks_is_exact(stand: Stand) -> None:
    start = torch.full((4000, stand.length), stand.denoiser.mask_id)
    law = sampler_law(SAMPLERS.build("left_to_right"), stand.denoiser, start[0])  # type: ignore[arg-type]
    spec = "blocks(3, speculative(k=3))"
    tokens = decode(spec, stand.denoiser, start, streams=Streams(5, 4000)).tokens
    statistic, freedom = goodness_of_fit(tokens, *law)
    assert chi2.sf(statistic, freedom) > FALSE_ALARM


@pytest.mark.parametrize("inner", ["first_hitting()", "planned((0, 1))", "dependence_bounded()"])
def test_corrected_leaves_what_was_given_and_the_neighbours(inner: str, stand: Stand) -> None:
    """Rows that refill beside rows that have begun: no rule sees a row with nothing masked."""
    tokens = stand.canvas(200)
    spec = f"corrected({inner}, floor=1.0, passes=3)"
    whole = decode(spec, stand.denoiser, tokens, streams=Streams(3, 200), trace=True)
    assert remasked(whole)
    given = tokens != stand.denoiser.mask_id
    assert torch.equal(whole.tokens[given], tokens[given])
    for i in range(0, 200, 9):
        alone = decode(spec, stand.denoiser, tokens[[i]], streams=Streams(3, torch.tensor([i])))
        assert torch.equal(alone.tokens[0], whole.tokens[i])
        assert alone.calls[0] == whole.calls[i]


def test_dependence_bounded_learns_anew_in_every_block(stand: Stand) -> None:
    """Also where sequences are in different blocks, and one is in its first round."""
    tokens = stand.canvas(64)
    spec = "blocks(2, dependence_bounded(budget=0.1))"
    whole = decode(spec, stand.denoiser, tokens, streams=Streams(3, 64))
    assert bool((whole.tokens < stand.denoiser.vocab_size).all())
    for i in range(8):
        alone = decode(spec, stand.denoiser, tokens[[i]], streams=Streams(3, torch.tensor([i])))
        assert torch.equal(alone.tokens[0], whole.tokens[i])


@pytest.mark.parametrize("prompt", [0, 28])
def test_the_noise_of_stochastic_is_of_what_was_masked(prompt: int) -> None:
    """In the first block of four of 32, or behind a long prompt, the first pick is as on an empty
    canvas of four: softmax(c / T)."""
    sure = row(0.6, 0.9, 0.8, 0.7)
    masked = torch.ones((20000, 32), dtype=torch.bool)
    masked[:, :prompt] = False
    result = run("blocks(4, stochastic(temperature=0.5))", masked, sure.repeat(8))
    first = torch.tensor(rounds(result))[:, prompt : prompt + 4] == 0
    expected = torch.softmax(sure / 0.5, 0) * 20000
    assert expected[1] / 20000 == pytest.approx(exp(1.8) / sum(map(exp, (1.2, 1.8, 1.6, 1.4))))
    statistic = float(((first.sum(0) - expected) ** 2 / expected).sum())
    assert chi2.sf(statistic, 3) > FALSE_ALARM


def test_pc_has_one_table_of_frequencies_for_a_sequence() -> None:
    # Over all six positions f(1) = .49 and f(0) = .51; in the first block alone f(1) = .2. There
    # position 1 is sure of the common token 0: .9 · .673 = .606 against .6 · .713 = .428 for 0 of
    # token 1; with the block's own f it would be .9 · .223 = .2 against .6 · 1.609 = .97.
    sure = (0.6, 0.1, 0.1, 0.1, 0.99, 0.99)
    mean = sum(sure) / 6
    assert mean == pytest.approx(0.48)
    assert trace("blocks(3, pc(decay=0.0))", *sure)[:3][0] != 0
    assert trace("blocks(3, pc(decay=0.0))", *sure)[0] == trace("pc(decay=0.0)", *sure[:3])[0] + 2
