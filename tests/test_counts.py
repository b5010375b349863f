"""How many positions a round reveals when the number of rounds is said."""

from itertools import accumulate, product

import pytest
import torch

from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.samplers.parts.counts import spread_evenly
from tests.test_samplers import full, rounds, run


def counts(spec: str, length: int) -> list[int]:
    """Positions revealed in each round."""
    found = torch.tensor(rounds(run(spec, full(length)))[0])
    return found.bincount().tolist()


@pytest.mark.parametrize("rule", ["confidence", "entropy", "margin", "random"])
def test_steps_are_spread_evenly(rule: str) -> None:
    assert counts(f"{rule}(steps=4)", 10) == [3, 3, 2, 2]
    assert counts(f"{rule}(steps=1)", 10) == [10]
    assert counts(f"{rule}(steps=64)", 5) == [1] * 5


def test_one_row_counts_as_several_do() -> None:
    """Alone it is counted in numbers of Python, beside others in arrays."""
    for total, done, steps, least in product(range(9), range(5), (1, 3, 4, 20), (0, 1)):
        rows = torch.tensor([total, 7]), torch.tensor([done, 2])
        alone = spread_evenly(*(row[:1] for row in rows), steps, least)
        assert alone == int(spread_evenly(*rows, steps, least)[0])  # type: ignore[index]


def test_steps_count_what_was_masked_in_each_sequence_and_block() -> None:
    masked = torch.ones((2, 9), dtype=torch.bool)
    masked[1, :4] = False
    found = torch.tensor(rounds(run("confidence(steps=2)", masked)))
    assert found[0].bincount().tolist() == [5, 4]
    assert found[1, 4:].bincount().tolist() == [3, 2]
    assert counts("blocks(3, confidence(steps=2))", 9) == [2, 1, 2, 1, 2, 1]


def late(length: int, steps: int) -> list[int]:
    """Dream's schedule, as its formula says, with the rounds that reveal nothing left out."""
    left, revealed = length, []
    for i in range(steps):
        t, s = (1 - j * (1 - 1e-3) / steps for j in (i, i + 1))
        count = left if i == steps - 1 else int(left * (1 - s / t))
        revealed.append(count)
        left -= count
    return [count for count in revealed if count]


@pytest.mark.parametrize(("length", "steps"), [(10, 4), (7, 7), (5, 12), (32, 8), (3, 1), (30, 29)])
def test_the_late_spread_is_dreams(length: int, steps: int) -> None:
    expected = late(length, steps)
    assert sum(expected) == length
    assert counts(f"confidence(steps={steps}, spread='late')", length) == expected
    if (length, steps) == (10, 4):
        assert list(accumulate(expected)) == [2, 4, 6, 10]


def test_what_cannot_be_counted_is_refused() -> None:
    for bad, says in (
        ("confidence(block=2, steps=4)", "Say block or steps"),
        ("random(steps=0)", "steps must be a whole number"),
        ("entropy(spread='early')", "spread"),
    ):
        with pytest.raises(MaskwalkError, match=says):
            SAMPLERS.build(bad)
    # Old records do not name what was added later.
    assert SAMPLERS.canonical("confidence(2)") == "confidence(block=2)"
