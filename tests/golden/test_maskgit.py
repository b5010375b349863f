"""MaskGIT and the moment sampler equal plain loops over their definitions, noise and law too."""

from math import cos, floor, log, pi

import pytest
import torch

from maskwalk.decoding.decode import decode
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Purpose, Streams
from tests.golden.single import (
    Fill,
    Outcomes,
    Run,
    Toy,
    agree,
    follows,
    gumbels,
    in_blocks,
    law_by_loops,
    picks,
)


def left_masked(total: int, turn: int, steps: int, masked: int) -> int:
    """How many stay masked after round `turn` (from 0): the public schedule, never all of them."""
    if turn + 1 >= steps:
        return 0
    return min(floor(total * cos(pi / 2 * (turn + 1) / steps) + 1e-12), masked - 1)


def heat(turn: int, steps: int, temperature: float) -> float:
    return temperature * max(0.0, 1 - (turn + 1) / steps)


def maskgit(steps: int, temperature: float) -> Fill:
    def fill(run: Run, spots: list[int]) -> None:
        total, turn = len(spots), 0
        while masked := run.masked(spots):
            p = run.ask(masked)
            token = {i: run.token(i, p[i]) for i in masked}
            noise = gumbels(run.uniform(Purpose.NOISE))
            scale = heat(turn, steps, temperature)
            rank = sorted(masked, key=lambda i: -log(p[i][token[i]]) - scale * noise[i])
            stay = left_masked(total, turn, steps, len(masked))
            run.end_round({i: token[i] for i in rank[: len(masked) - stay]})
            turn += 1

    return fill


def moment(steps: int, temperature: float) -> Fill:
    def fill(run: Run, spots: list[int]) -> None:
        total, turn = len(spots), 0
        while masked := run.masked(spots):
            p = run.ask(masked)
            noise = gumbels(run.uniform(Purpose.NOISE))
            stay = left_masked(total, turn, steps, len(masked))
            if stay:
                power = 1 + 1 / heat(turn, steps, temperature)
                size = {i: log(sum(x**power for x in p[i])) for i in masked}
                rank = sorted(masked, key=lambda i: -size[i] - noise[i])
            else:
                rank = masked
            run.end_round({i: run.token(i, p[i]) for i in rank[: len(masked) - stay]})
            turn += 1

    return fill


@pytest.mark.parametrize(("steps", "temperature"), [(3, 4.5), (5, 0.5)])
def test_maskgit_is_its_loops(steps: int, temperature: float) -> None:
    agree(f"maskgit(steps={steps}, temperature={temperature})", maskgit(steps, temperature), 50)


@pytest.mark.parametrize(("steps", "temperature", "sharpen"), [(3, 4.5, True), (6, 0.3, False)])
def test_moment_is_its_loops(steps: int, temperature: float, sharpen: bool) -> None:
    spec = f"moment(steps={steps}, temperature={temperature}, sharpen={sharpen})"
    agree(spec, moment(steps, temperature), 50)


def test_both_in_blocks() -> None:
    agree("blocks(size=4, inner=maskgit(steps=3))", in_blocks(maskgit(3, 4.5), 4), 50)
    agree("blocks(size=4, inner=moment(steps=3))", in_blocks(moment(3, 4.5), 4), 50)


def test_cosine_counts() -> None:
    """16 positions in 8 rounds: ⌊16 cos(πk/16)⌋ = 15, 14, 13, 11, 8, 6, 3, 0 stay masked."""
    for spec in ("maskgit(steps=8)", "moment(steps=8)"):
        toy = Toy(1, 16)

        empty = torch.full((1, 16), toy.mask_id)
        trace = decode(spec, toy, empty, streams=Streams(0, 1), trace=True).trace
        assert trace is not None
        rounds = trace.reveal_rounds()[0]
        assert [int((rounds > k).sum()) for k in range(8)] == [15, 14, 13, 11, 8, 6, 3, 0]


TOY = Toy(2, 3, vocab_size=2, sharp=1.0)


def test_the_law_of_maskgit() -> None:
    """Gumbel noise of scale α picks in proportion to p(x)^(1/α), one after another."""

    def one_round(run: Run, drawn: dict[int, int]) -> Outcomes:
        p = run.ask(list(drawn))
        stay = left_masked(3, run.round, 3, len(drawn))
        if not stay:
            return [(1.0, drawn)]
        weights = {i: p[i][x] ** (1 / heat(run.round, 3, 0.6)) for i, x in drawn.items()}
        return [
            (share, {i: drawn[i] for i in kept})
            for share, kept in picks(weights, len(drawn) - stay)
        ]

    assert follows("maskgit(steps=3, temperature=0.6)", TOY, law_by_loops(TOY, 3, one_round))


@pytest.mark.parametrize("sharpen", [True, False])
def test_the_law_of_the_moment_sampler(sharpen: bool) -> None:
    """Picks in proportion to moments, tokens from p^β or from p; weights are taken off what
    `law_by_loops` puts on its own draws, which come from p."""

    def one_round(run: Run, drawn: dict[int, int]) -> Outcomes:
        p = run.ask(list(drawn))
        stay = left_masked(3, run.round, 3, len(drawn))
        if not stay:
            return [(1.0, drawn)]
        power = 1 + 1 / heat(run.round, 3, 0.6)
        size = {i: sum(x**power for x in p[i]) for i in drawn}
        outcomes = []
        for share, kept in picks(size, len(drawn) - stay):
            for i in kept if sharpen else ():
                share *= p[i][drawn[i]] ** (power - 1) / size[i]
            outcomes.append((share, {i: drawn[i] for i in kept}))
        return outcomes

    law = law_by_loops(TOY, 3, one_round)
    assert abs(float(law[1].sum()) - 1) < 1e-12
    spec = "moment(steps=3, temperature=0.6, sharpen={})"
    assert follows(spec.format(sharpen), TOY, law)
    assert not follows(spec.format(not sharpen), TOY, law)


def test_kinds_and_sentences() -> None:
    kinds = {spec: SAMPLERS.build(spec).law_kind for spec in ("maskgit", "moment")}
    assert kinds == {"maskgit": "shaped", "moment": "shaped"}
    assert SAMPLERS.build("moment(sharpen=False)").law_kind == "factorised"
    for spec in (
        "maskgit(0)",
        "maskgit(temperature=-1)",
        "moment(temperature=0)",
        "moment(8, 1, 2)",
    ):
        with pytest.raises(MaskwalkError):
            SAMPLERS.build(spec)
