"""The Fréchet rule equals plain loops over its definition, and sums exact confidences."""

import pytest
import torch

from maskwalk.decoding.decode import decode
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from tests.golden.single import Fill, Run, agree, in_blocks
from tests.test_samplers import Lookup, rounds


def frechet(margin: float) -> Fill:
    def fill(run: Run, spots: list[int]) -> None:
        while masked := run.masked(spots):
            p = run.ask(masked)
            rank = sorted(masked, key=lambda i: -max(p[i]))
            count = 1
            for n in range(1, len(rank) + 1):
                c = [max(p[i]) for i in rank[:n]]
                if sum(c) - (n - 1) - (1 - c[-1]) > margin:
                    count = n
            run.end_round({i: run.token(i, p[i]) for i in rank[:count]})

    return fill


@pytest.mark.parametrize("margin", [0.0, 0.25, 0.6])
def test_frechet_is_its_loops(margin: float) -> None:
    found = agree(f"frechet(margin={margin})", frechet(margin), 50)
    if margin == 0.0:
        assert 60 < found < 150  # neither one at a time (221) nor all at once (50)


def test_frechet_in_blocks() -> None:
    agree("blocks(size=3, inner=frechet())", in_blocks(frechet(0.25), 3), 50)


def spelled(spec: str, *sure: float, grid: float = 1e-9) -> list[int]:
    network = Lookup(torch.tensor(sure, dtype=torch.float64), score_grid=grid)
    empty = torch.full((1, len(sure)), 2)
    return rounds(decode(spec, network, empty, streams=Streams(0, 1), trace=True))[0]


def test_by_hand_and_against_factor() -> None:
    # .99 → .98; .99 + .95 − 1 − .05 = .89; + .82 − 1 − .18 + .05: .58; .78: .32; .74: .02.
    profile = (0.99, 0.95, 0.82, 0.78, 0.74)
    assert spelled("frechet(0.25)", *profile) == [0, 0, 0, 0, 1]
    assert spelled("frechet(0.0)", *profile) == [0, 0, 0, 0, 0]
    # factor(f=.75): 2(.01), 3(.05), 4(.18) = .72 < .75, 5(.22) is not: three.
    assert spelled("factor(0.75)", *profile) == [0, 0, 0, 1, 2]
    # Equal confidences: the same numbers.
    for c in (0.7, 0.8, 0.9, 0.95):
        first = [sum(r == 0 for r in spelled(s, *[c] * 9)) for s in ("frechet()", "factor(0.75)")]
        assert first[0] == first[1], c


def test_sums_are_exact_whatever_the_grid() -> None:
    """Two thousand positions of 1 − c = 4e-4 are not certain, though each rounds to 1 at 1e-2."""
    for grid in (1e-2, 1e-9):
        found = spelled("frechet(0.25)", *[1 - 4e-4] * 2000, grid=grid)
        # Σ (1 − c) + (1 − c_n) < .75: n + 1 < 1875.
        assert abs(found.count(0) - 1873) <= 1


def test_sentences() -> None:
    for spec in ("frechet(-0.1)", "frechet(2)"):
        with pytest.raises(MaskwalkError):
            SAMPLERS.build(spec)
    assert SAMPLERS.build("frechet").law_kind == "factorised"
