"""Lossless speculation: its rounds and calls from a plain loop, its tokens from the inner sampler.

At temperature 0 a reference in plain Python drafts and verifies one canvas at a time. At any
temperature the tokens are, number for number, those of the inner sampler with the same seed, and
their law is the one enumerated for the inner policy.
"""

import pytest
import torch

from maskwalk.analysis.law import sampler_law, total_variation
from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.kinds import EXACT, SHAPED
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from tests.golden.many import (
    Found,
    Line,
    Row,
    Toys,
    agree,
    batches,
    cold,
    found,
    likeliest,
    open_block,
    prompt_of,
    sure,
)
from tests.test_field_laws import ANY, EMPTY, LEFT, agrees

NO_BLOCKS = 99


def advance(
    toys: Toys, line: Line, rows: dict[int, Row], prompt: int, count: int, size: int
) -> Line:
    """The `count` surest positions of the open block get their likeliest tokens."""
    inside = open_block(toys, line, prompt, size)
    where = sorted(inside, key=lambda i: (-sure(rows[i]), i))[:count]
    return [likeliest(rows[i]) if i in where else x for i, x in enumerate(line)]


def reference(toys: Toys, line: Line, k: int, count: int, size: int) -> Found:
    """Draft and verify, by the book."""
    prompt, mask = prompt_of(line, toys.mask_id), toys.mask_id
    when, calls, number = [-1] * len(line), 0, 0
    drafts: list[Line] = []
    while mask in line:
        asked = [line, *drafts]
        answers = [toys.at(one) for one in asked]
        calls += sum(mask in one for one in asked)
        before = line
        for j, answer in enumerate(answers):
            line = advance(toys, line, answer, prompt, count, size)
            last = answer
            if mask not in line or j + 1 == len(asked) or line != asked[j + 1]:
                break
        when = [number if old != new else t for t, old, new in zip(when, before, line)]
        drafts, guess = [], line
        while len(drafts) < k - 1 and mask in guess:
            guess = advance(toys, guess, last, prompt, count, size)
            drafts.append(guess)
        number += 1
    return line, when, calls


@pytest.mark.parametrize(
    ("k", "count", "size"), [(2, 1, NO_BLOCKS), (4, 1, NO_BLOCKS), (3, 2, NO_BLOCKS), (4, 1, 4)]
)
def test_rounds_and_calls_by_the_book(k: int, count: int, size: int) -> None:
    inner = f"confidence(block={count})"
    inner = inner if size == NO_BLOCKS else f"blocks({size}, {inner})"
    fast = agree(
        f"lossless({inner}, {k})", lambda toys, line: reference(toys, line, k, count, size)
    )
    plain = [one for toys, lines in batches() for one in found(cold(inner, toys, lines))]
    assert [tokens for tokens, _, _ in fast] == [tokens for tokens, _, _ in plain]
    saved = [max(slow) - max(quick) for (_, quick, _), (_, slow, _) in zip(fast, plain)]
    assert min(saved) >= 0 and sum(saved) > len(saved) / 4  # drafts are right often enough


SAME = (
    "entropy(block=2)",
    "random",
    "left_to_right",
    "bisection",
    "random(block='exponential')",
    "entropy(steps=3)",
    "klass(conf=0.5, kl=0.5, window=1)",
    "blocks(4, pc())",
    "threshold_drawn(tau=0.5)",
    "blocks(3, low_confidence(steps=2))",
    "stochastic(confidence(block=1), 0.5)",
)


@pytest.mark.parametrize("inner", SAME)
def test_the_same_tokens_as_the_inner_sampler_alone(inner: str) -> None:
    """Seed for seed, whatever the draw; rows of several prompts get out of step with each other."""
    toys = Toys(8, 20)
    tokens = torch.tensor(toys.start())
    tokens[1::2, :3] = torch.tensor([0, 2, 1])
    tokens[::5, 6] = 1
    steps = 0
    for draw in (Draw(), Draw(temperature=0.3, precision="bfloat16")):
        alone, fast = (
            decode(SAMPLERS.build(spec), toys, tokens, streams=Streams(5, 20), draw=draw)
            for spec in (inner, f"lossless({inner}, 4)")
        )
        assert torch.equal(alone.tokens, fast.tokens)
        assert bool((fast.rounds <= alone.rounds).all())
        steps += int((alone.rounds - fast.rounds).sum())
    assert steps > 0


def test_inside_blocks_the_rounds_run_on() -> None:
    toys = Toys(9, 30)
    tokens = torch.tensor(toys.start())
    tokens[::2, :2] = 1
    for inner in ("random", "random(block='exponential')", "stochastic(entropy(block=1), 0.5)"):
        one, other = (
            decode(SAMPLERS.build(spec), toys, tokens, streams=Streams(6, 30))
            for spec in (f"blocks(4, {inner})", f"blocks(4, lossless({inner}, 3))")
        )
        assert torch.equal(one.tokens, other.tokens) and other.rounds.sum() < one.rounds.sum()


@pytest.mark.parametrize("inner", ["left_to_right", "entropy", "confidence(block=2)"])
@pytest.mark.parametrize("k", [2, 4])
def test_the_law_is_the_inner_policys(inner: str, k: int) -> None:
    law = sampler_law(SAMPLERS.build(inner), ANY, EMPTY)
    assert agrees(f"lossless({inner}, {k})", ANY, law)
    if inner != "left_to_right":
        assert total_variation(law, LEFT) > 0.02
        assert not agrees(f"lossless({inner}, {k})", ANY, LEFT)  # the test can tell


def test_kinds() -> None:
    """Exact where the inner rule is one token at a time or exact itself, else measured."""
    for inner in ("random", "blocks(4, entropy(block=1))", "left_to_right", "first_hitting"):
        assert SAMPLERS.build(f"lossless({inner})").law_kind == EXACT
    for inner in ("random(block=2)", "entropy(steps=9)", "low_confidence", "bisection"):
        assert SAMPLERS.build(f"lossless({inner})").law_kind == SHAPED


def test_what_it_cannot_hold_is_refused() -> None:
    for bad in ("lossless(remdm)", "lossless(k=0)"):
        with pytest.raises(MaskwalkError):
            SAMPLERS.build(bad)
    for inner in ("speculative(k=3)", "punt", "info_gain", "blocks(4, punt())", "lossless(k=2)"):
        with pytest.raises(MaskwalkError, match="its canvas as it is"):
            SAMPLERS.build(f"lossless({inner})")
    SAMPLERS.build("lossless(lossless(k=1))")
