"""Early commit equals plain loops over its definition: the three phases, blocks, and the gaps."""

from math import log

import pytest
import torch

from maskwalk.decoding.decode import decode
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from tests.golden.single import Fill, Run, agree, in_blocks
from tests.test_samplers import Lookup, rounds

BARS = (3.0, 2.0, 1.0)


def early_commit(bars: tuple[float, float, float], over: str, block: int, size: int = 0) -> Fill:
    """The `block` most confident a round, of the first block of `size` if any, until clear."""

    def fill(run: Run, spots: list[int]) -> None:
        total, first = len(spots), 0
        while first < len(run.canvas) and run.canvas[first] != run.mask:
            first += 1
        while masked := run.masked(spots):
            p = run.ask(masked)
            near = masked
            if size:
                now = (masked[0] - first) // size
                near = [i for i in masked if (i - first) // size == now]
            chosen = sorted(near, key=lambda i: -max(p[i]))[:block]
            gaps = []
            for i in masked:
                top = sorted(p[i])[::-1]
                gaps.append(log(top[0]) - log(top[1]))
            clear = min(gaps) if over == "least" else sum(gaps) / len(gaps)
            share = (total - len(masked) + len(chosen)) / total
            bar = bars[0] if share < 0.33 else bars[1] if share < 0.67 else bars[2]
            if clear >= bar:
                chosen = masked
            run.end_round({i: run.token(i, p[i]) for i in chosen})

    return fill


def spec(inner: str, over: str = "mean") -> str:
    return f"early_commit({inner}, {BARS[0]}, {BARS[1]}, {BARS[2]}, {over!r})"


@pytest.mark.parametrize(("over", "block"), [("mean", 1), ("least", 2)])
def test_early_commit_is_its_loops(over: str, block: int) -> None:
    found = agree(spec(f"confidence({block})", over), early_commit(BARS, over, block), 50)
    if block == 1:
        assert 70 < found < 180  # one at a time is 221, all at once 50


def test_over_blocks_and_inside_them() -> None:
    agree(spec("blocks(3, confidence(1))"), early_commit(BARS, "mean", 1, 3), 50)
    agree(f"blocks(4, {spec('confidence(1)')})", in_blocks(early_commit(BARS, "mean", 1), 4), 50)


def shown(text: str, *sure: float) -> list[int]:
    network = Lookup(torch.tensor(sure, dtype=torch.float64))
    empty = torch.full((1, len(sure)), 2)
    return rounds(decode(text, network, empty, streams=Streams(0, 1), trace=True))[0]


def test_by_hand() -> None:
    # Gaps log(p/(1−p)): .9 → 2.197, .8 → 1.386, .6 → .405; their mean 1.33, of the last two .90.
    assert shown("early_commit(early=1.3, mid=9, late=9)", 0.9, 0.8, 0.6) == [0, 1, 2]  # s = 1/3
    assert shown("early_commit(early=9, mid=1.3, late=9)", 0.9, 0.8, 0.6) == [0, 0, 0]
    assert shown("early_commit(early=9, mid=1.4, late=0.9)", 0.9, 0.8, 0.6) == [0, 1, 2]  # s = 2/3
    assert shown("early_commit(early=9, mid=0.89, late=0.9)", 0.9, 0.8, 0.6) == [0, 0, 0]
    assert shown("early_commit(mid=0.5, over='least')", 0.9, 0.8, 0.6) == [0, 1, 2]
    assert shown("early_commit(mid=0.4, over='least')", 0.9, 0.8, 0.6) == [0, 0, 0]
    # A certain token counts 50 nats: (50 + .405)/2 is above 25, and not above 26.
    assert shown("early_commit(mid=25)", 1.0, 0.6) == [0, 0]
    assert shown("early_commit(mid=26)", 1.0, 0.6) == [0, 1]


def test_kind_and_sentences() -> None:
    assert SAMPLERS.build("early_commit").law_kind == "factorised"
    for text in ("early_commit(early=-1)", "early_commit(over='max')", "early_commit(p2())"):
        with pytest.raises(MaskwalkError):
            SAMPLERS.build(text)
