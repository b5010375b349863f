"""WINO equals plain loops over its definition: what is revealed, what is taken back, every call."""

import pytest
import torch

from maskwalk.decoding.decode import decode
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from tests.golden.single import Fill, Run, Toy, agree, follows, in_blocks, questions


def wino(tau: float, back: float, verify: str = "each") -> Fill:
    def fill(run: Run, spots: list[int]) -> None:
        last = 30
        while masked := run.masked(spots):
            p = run.ask(masked)
            token = {i: run.token(i, p[i]) for i in masked}
            sure = {i: p[i][token[i]] for i in masked}
            rank = sorted(masked, key=lambda i: -sure[i])
            most = min(max(int(len(masked) * 0.7), 5), 20)
            accepted = [i for i in rank if sure[i] > tau][:most] or rank[:1]
            seen = [i for i in spots if i not in masked]
            taken: list[int] = []
            if len(accepted) > 1 and last > 1 and seen:
                own = support(run, seen, verify)
                taken = sorted((i for i in seen if own[i] < back), key=lambda i: own[i])
                taken = taken[: last - 1]
            run.end_round({i: token[i] for i in accepted}, taken)
            last = len(accepted)

    return fill


def support(run: Run, seen: list[int], verify: str) -> dict[int, float]:
    """p of each token given the others: one masked at a time, or the even and the odd ones."""
    if verify == "each":
        groups = [[i] for i in seen]
    else:
        groups = [[i for i in seen if i % 2 == odd] for odd in (0, 1)]
    own = {}
    for group in groups:
        if group:
            p = run.ask(group, dict.fromkeys(group, run.mask))
            own |= {i: p[i][run.canvas[i]] for i in group}
    return own


@pytest.mark.parametrize(("tau", "back"), [(0.6, 0.9), (0.35, 0.5)])
@pytest.mark.parametrize("verify", ["each", "halves"])
def test_wino_is_its_loops(tau: float, back: float, verify: str) -> None:
    agree(f"wino({tau}, {back}, {verify!r})", wino(tau, back, verify), 50, longest=11)


def test_the_toys_take_tokens_back_and_meet_the_limits() -> None:
    """The comparison above means something: tokens are taken back, and both limits bite."""
    back = full = 0
    for toy, canvas in questions(50, longest=11):
        run = Run(toy, list(canvas))
        wino(0.35, 0.9)(run, run.masked(list(range(len(canvas)))))
        back += len(run.taken_back)
        full += sum(list(run.when.values()).count(r) == 5 for r in range(run.round))
    assert back > 50 and full > 5


def test_many_positions() -> None:
    """Above 7 masked positions 0.7 of them is the limit, above 28 it is 20."""
    for length, most in ((10, 7), (30, 20)):
        toy = Toy(3, length)
        run = Run(toy, [toy.mask_id] * length)
        wino(0.0, 0.9)(run, list(range(length)))
        empty = torch.full((1, length), toy.mask_id)
        draw, streams = "draw(temperature=0)", Streams(0, 1)
        got = decode("wino(0.0)", toy, empty, streams=streams, draw=draw, trace=True)
        assert got.trace is not None
        events = got.trace.events
        first = (events["round"] == 0) & (events["token"] != toy.mask_id)
        assert int(first.sum()) == most
        assert got.tokens[0].tolist() == run.canvas and int(got.calls) == run.calls


def test_wino_in_blocks() -> None:
    agree("blocks(size=6, inner=wino(0.35))", in_blocks(wino(0.35, 0.9), 6), 50)


def test_its_law() -> None:
    """Three positions, two of which can be taken back at most: by enumeration of all draws."""
    toy = Toy(9, 3, vocab_size=2, sharp=1.0)
    law: dict[tuple[int, ...], float] = {}

    def go(run: Run, last: int, weight: float) -> None:
        masked = run.masked([0, 1, 2])
        if not masked:
            law[tuple(run.canvas)] = law.get(tuple(run.canvas), 0.0) + weight
            return
        p = run.ask(masked)
        for number in range(2 ** len(masked)):
            token = {i: number >> k & 1 for k, i in enumerate(masked)}
            share = weight
            for i, x in token.items():
                share *= p[i][x]
            after = Run(toy, list(run.canvas))
            rank = sorted(masked, key=lambda i: -p[i][token[i]])
            accepted = [i for i in rank if p[i][token[i]] > 0.5] or rank[:1]
            seen = [i for i in range(3) if i not in masked]
            own = support(after, seen, "each")
            poor = sorted((i for i in seen if own[i] < 0.9), key=lambda i: own[i])
            taken = poor[: last - 1] if len(accepted) > 1 else []
            after.end_round({i: token[i] for i in accepted}, taken)
            go(after, len(accepted), share)

    go(Run(toy, [2, 2, 2]), 30, 1.0)
    table = torch.tensor(list(law)), torch.tensor(list(law.values()), dtype=torch.float64)
    assert abs(float(table[1].sum()) - 1) < 1e-12
    assert follows("wino(0.5, 0.9)", toy, table)


def test_kind_and_sentences() -> None:
    assert SAMPLERS.build("wino").law_kind == "shaped"
    for spec in ("wino(1.5)", "wino(back=-1)", "wino(verify='all')"):
        with pytest.raises(MaskwalkError):
            SAMPLERS.build(spec)
