"""Spaced with an adaptive gap equals plain loops over DUS's filter, alone and inside blocks."""

import pytest

from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from tests.golden.single import Fill, Run, agree, in_blocks


def spaced(block: int, gap: int, start: int | None) -> Fill:
    """The `block` most confident, each accepted if far enough from every accepted one."""

    def fill(run: Run, spots: list[int]) -> None:
        total = len(spots)
        while masked := run.masked(spots):
            p = run.ask(masked)
            far = gap if start is None else max(gap, len(masked) * start // total)
            accepted: list[int] = []
            for i in sorted(masked, key=lambda i: -max(p[i]))[:block]:
                if all(abs(i - j) >= far for j in accepted):
                    accepted.append(i)
            run.end_round({i: run.token(i, p[i]) for i in accepted})

    return fill


@pytest.mark.parametrize(("gap", "start"), [(1, 8), (2, None)])
def test_spaced_is_its_loops(gap: int, start: int | None) -> None:
    more = "" if start is None else f", start={start}"
    agree(f"spaced(confidence(4), {gap}{more})", spaced(4, gap, start), 50)


def test_in_blocks() -> None:
    agree("blocks(5, spaced(confidence(3), 1, 3))", in_blocks(spaced(3, 1, 3), 5), 50)


def test_a_policy_with_a_state_of_its_own_inside() -> None:
    """What the inner policy remembers is its own; the number masked at first is not mixed in."""
    agree("spaced(stochastic(confidence(4), 0.0), 2, 8)", spaced(4, 2, 8), 50)


def test_sentences() -> None:
    with pytest.raises(MaskwalkError):
        SAMPLERS.build("spaced(start=0)")
    assert SAMPLERS.build("spaced(start=8)").law_kind == "factorised"
