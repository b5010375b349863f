"""Samplers that draw first, toss coins, verify or remask, and the presets, against plain loops.

The canvas after every round has to be that of the loop (tests/golden/samplers.py), on 56 toy
networks at temperature 0, with the same coins. Presets run as they are, on canvases of several of
their blocks behind a prompt.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import Draw, preset
from maskwalk.decoding.presets import PRESETS
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from tests.golden import rules, samplers
from tests.golden.plain import Uniforms, blocks_of, reveal_rounds
from tests.golden.test_policies import ARGMAX, SEED, Numbers
from tests.golden.toys import TOYS, Toy

Loop = Callable[[Toy, list[int], Uniforms], Iterator[list[int]]]


def told(function: Callable[..., Iterator[list[int]]], *words: object, **named: object) -> Loop:
    """A loop with its parameters, for those that look at random numbers."""
    return lambda toy, start, uniforms: function(toy, start, uniforms, *words, **named)


def plain(function: Callable[..., Iterator[list[int]]], *words: object, **named: object) -> Loop:
    """The same for those that do not."""
    return lambda toy, start, uniforms: function(toy, start, *words, **named)


HERE = -1  # the mask of a block, to a loop that is to see no other


class Inside:
    """A toy to a loop in one block: masks elsewhere are tokens to it, and masks to the network."""

    mask_id = HERE

    def __init__(self, toy: Toy) -> None:
        self.toy = toy

    def all_of(self, canvas: list[int]) -> list[int]:
        return [self.toy.mask_id if x == HERE else x for x in canvas]

    def probs(self, canvas: list[int]) -> list[list[float]]:
        return self.toy.probs(self.all_of(canvas))


def inside(loop: Loop, size: int) -> Loop:
    """A loop in one block after another; the rounds run on."""

    def everywhere(toy: Toy, start: list[int], uniforms: Uniforms) -> Iterator[list[int]]:
        canvas, done, mask = list(start), 0, toy.mask_id
        yield list(canvas)
        for block in blocks_of(start, mask, size):
            one: Any = Inside(toy)
            part = [HERE if i in block and x == mask else x for i, x in enumerate(canvas)]
            if HERE not in part:
                continue
            story = loop(one, part, lambda what, k, done=done: uniforms(what, done + k))
            next(story)
            for after in story:
                canvas, done = one.all_of(after), done + 1
                yield list(canvas)

    return everywhere


LOOPS: dict[str, Loop] = {
    "ancestral(steps=4)": told(samplers.ancestral, 4),
    "ancestral(steps=9, cached=True)": told(samplers.ancestral, 9),
    "ancestral(steps=5, finish='last', eps=0.2)": told(samplers.ancestral, 5, "last", 0.2),
    "ancestral(steps=5, finish='argmax', eps=0.2)": told(samplers.ancestral, 5, "argmax", 0.2),
    "remdm(kind='cap', steps=12, eta=0.2)": told(samplers.remdm, "cap", 12, 0.2),
    "remdm(kind='cap', steps=12)": told(samplers.remdm, "cap", 12, 0.008),
    "remdm(kind='rescale', steps=12, eta=0.3)": told(samplers.remdm, "rescale", 12, 0.3),
    "remdm(kind='conf', steps=12)": told(samplers.remdm, "conf", 12, 1.0),
    "remdm(kind='loop', steps=20, eta=0.3)": told(samplers.remdm, "loop", 20, 0.3),
    "p2(steps=5)": plain(samplers.p2, 1.0, 5),
    "p2(eta=2.0, steps=7)": plain(samplers.p2, 2.0, 7),
    "p2(eta=0.5, steps=20)": plain(samplers.p2, 0.5, 20),
    "p2(steps=5, rescore=True)": plain(samplers.p2, 1.0, 5, rescore=True),
    "speculative(k=3)": told(samplers.speculative, "left_to_right", 3),
    "speculative('random', k=4)": told(samplers.speculative, "random", 4),
    "blocks(4, ancestral(steps=3))": inside(told(samplers.ancestral, 3), 4),
    "blocks(5, ancestral(steps=4, finish='last', eps=0.2))": inside(
        told(samplers.ancestral, 4, "last", 0.2), 5
    ),
    "blocks(5, remdm(kind='cap', steps=6, eta=0.2))": inside(
        told(samplers.remdm, "cap", 6, 0.2), 5
    ),
    "blocks(4, remdm(kind='rescale', steps=6, eta=0.3))": inside(
        told(samplers.remdm, "rescale", 6, 0.3), 4
    ),
    "blocks(5, remdm(kind='conf', steps=6))": inside(told(samplers.remdm, "conf", 6, 1.0), 5),
    "blocks(5, remdm(kind='loop', steps=9, eta=0.3))": inside(
        told(samplers.remdm, "loop", 9, 0.3), 5
    ),
    "blocks(5, p2(eta=2.0, steps=4))": inside(plain(samplers.p2, 2.0, 4), 5),
    "blocks(5, speculative(k=3))": inside(told(samplers.speculative, "left_to_right", 3), 5),
    "blocks(4, speculative('random', k=4))": inside(told(samplers.speculative, "random", 4), 4),
}


def canvases(spec: str, toy: Toy, starts: list[list[int]], draw: Draw, ties: str) -> list:
    tokens, streams = torch.tensor(starts), Streams(SEED, len(starts))
    rule = SAMPLERS.build(spec)
    result = decode(rule, toy, tokens, streams=streams, draw=draw, ties=ties, trace=True)
    assert result.trace is not None
    return [canvas.tolist() for canvas in result.trace.replay()]


def same(one: list[list[int]], other: list[list[int]]) -> bool:
    """Whether two stories are the same, but for rounds at the end in which nothing changes."""
    rounds = max(len(one), len(other))
    padded = (story + [story[-1]] * (rounds - len(story)) for story in (one, other))
    return next(padded) == next(padded)


@pytest.mark.parametrize("spec", LOOPS)
def test_every_canvas_is_that_of_a_plain_loop(spec: str) -> None:
    for toy in TOYS:
        found = canvases(spec, toy, toy.starts, ARGMAX, "uniform")
        numbers = Numbers(toy, len(toy.starts))
        for row, start in enumerate(toy.starts):
            expected = list(LOOPS[spec](toy, start, numbers.of(row)))
            assert same([canvas[row] for canvas in found], expected), start


# ----------------------------------------------------------------------------------- the presets

# (loop, length of the prompt, length of the answer: several blocks of the preset)
DECODERS: dict[str, tuple[Loop, int, int]] = {
    "llada": (plain(samplers.llada, 128, 128), 5, 256),
    "fast_dllm": (plain(samplers.fast_dllm, 0.9, 32), 5, 96),
    "dinfer": (plain(samplers.dinfer, 0.9, 64), 3, 192),
    "dream_origin": (told(samplers.ancestral, 512, "last", 1e-3), 3, 20),
    "mdlm": (told(samplers.ancestral, 128, "argmax", 1e-5), 0, 20),
    "remdm": (told(samplers.remdm, "cap", 1024, 0.008), 2, 10),
}


@pytest.mark.parametrize("name", DECODERS)
def test_presets_do_what_public_code_does(name: str) -> None:
    """Token for token, in the same rounds; with argmaxes where the preset draws."""
    loop, prompt, answer = DECODERS[name]
    toy = Toy(40 + len(name), prompt + answer)
    behind = [toy.canvas(list(range(prompt)), network)[:prompt] for network in range(3)]
    starts = [some + [toy.mask_id] * answer for some in behind]
    spec, (_, ties) = PRESETS[name].sampler, preset(name)
    assert spec is not None and ties == "index"
    found = canvases(spec, toy, starts, ARGMAX, ties)
    numbers = Numbers(toy, len(starts))
    for row, start in enumerate(starts):
        expected = list(loop(toy, start, numbers.of(row)))
        assert same([canvas[row] for canvas in found], expected)


@pytest.mark.parametrize("temperature", [0.0, 0.2])
def test_dream_ranks_by_what_it_draws_from(temperature: float) -> None:
    """Entropies of the tempered and truncated marginals; 512 steps, those that reveal nothing left
    out; at temperature 0.2 the tokens are those that were drawn."""
    draw, ties = preset("dream")
    assert draw.temperature == 0.2 and draw.top_p == 0.95
    if not temperature:
        draw = Draw(temperature=0, top_p=0.95, scores="shaped")
    for toy in (Toy(71, 14), Toy(72, 21)):
        result = decode(
            SAMPLERS.build(str(PRESETS["dream"].sampler)),
            toy,
            torch.tensor(toy.starts),
            streams=Streams(SEED, len(toy.starts)),
            draw=draw,
            ties=ties,
            trace=True,
        )
        assert result.trace is not None
        rounds = result.trace.reveal_rounds().tolist()
        for row, start in enumerate(toy.starts):
            drawn = result.tokens[row].tolist()
            expected, tokens = reveal_rounds(
                toy,
                start,
                rules.in_late_steps("entropy", 512),
                drawn=drawn if temperature else None,
                shape=lambda p: samplers.shaped(p, temperature or 1.0, 0.95),
            )
            assert rounds[row] == expected and drawn == tokens


@pytest.mark.parametrize("score", ["confidence", "entropy", "margin"])
@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_scores_of_tempered_marginals(score: str, temperature: float) -> None:
    """With scores="shaped" every greedy rule ranks by the marginals the tokens are drawn from; the
    order is another one than the model's."""
    other = 0
    for toy in TOYS:
        draw = Draw(temperature=temperature, scores="shaped")
        tokens = torch.tensor(toy.starts)
        streams = Streams(SEED, len(tokens))
        result = decode(f"{score}(block=2)", toy, tokens, streams=streams, draw=draw, trace=True)
        assert result.trace is not None
        rounds = result.trace.reveal_rounds().tolist()
        for row, start in enumerate(toy.starts):
            drawn, rule = result.tokens[row].tolist(), rules.greedy(score, 2)
            tempered = reveal_rounds(
                toy, start, rule, drawn=drawn, shape=lambda p: samplers.shaped(p, temperature)
            )
            assert rounds[row] == tempered[0]
            other += rounds[row] != reveal_rounds(toy, start, rule, drawn=drawn)[0]
    assert other > 10


def test_ties_of_the_presets_go_to_the_lowest_index() -> None:
    """As torch.topk and argmax do in public code, where all positions are alike."""
    toy = Toy(1, 8)
    toy.outer = toy.outer[:, :1].expand(-1, 8, -1, -1)
    for name in ("llada", "dream", "fast_dllm", "dinfer"):
        draw, ties = preset(name)
        result = decode(
            str(PRESETS[name].sampler),
            toy,
            torch.tensor([[toy.mask_id] * 7 + [1]]),
            streams=Streams(SEED, 1),
            draw=Draw(temperature=0, top_p=draw.top_p, scores=draw.scores),
            ties=ties,
            trace=True,
        )
        assert result.trace is not None
        assert int(result.trace.reveal_rounds()[0].argmin()) == 7  # given
        assert result.trace.reveal_rounds()[0, 0] == 0
