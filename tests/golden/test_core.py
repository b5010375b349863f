"""CORE: steps, stress tests and revisions from plain loops over one canvas at a time."""

from math import exp

import pytest
import torch

from maskwalk.decoding.decode import decode
from maskwalk.decoding.kinds import SHAPED
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
    rounded,
    sure,
)


def margin(row: Row) -> float:
    first, second = sorted(row, reverse=True)[:2]
    return exp(first) - exp(second)


def reference(
    toys: Toys, line: Line, steps: int, every: int, m: int, k: int, redraw: bool, size: int
) -> Found:
    """The whole canvas, or one block of `size` after another; the window is all but the end."""
    prompt, mask = prompt_of(line, toys.mask_id), toys.mask_id
    given = {i for i, x in enumerate(line) if x != mask}
    when, calls, number = [-1] * len(line), 0, 0
    while mask in line:
        block = open_block(toys, line, prompt, size)
        total, margins = len(block), {}
        rounds = min(steps, total)
        for t in range(1, rounds + 1):
            before, rows = line, toys.at(line)
            calls += 1
            inside = [i for i in block if line[i] == mask]
            count = total // steps + (t <= total % steps) if t < rounds else len(inside)
            chosen = sorted(inside, key=lambda i: (-sure(rows[i]), i))[:count]
            after = [likeliest(rows[i]) if i in chosen else x for i, x in enumerate(line)]
            known = [i for i in block if line[i] != mask and i not in given]
            if t % every == 0 and 0.25 <= t / rounds < 1.0 and known:
                weak = sorted(known, key=lambda i: (rounded(margins[i]), i))[:m]
                calls += 1
                ahead = toys.at([mask if i in weak else x for i, x in enumerate(line)])
                brittle = sorted(weak, key=lambda i: (rounded(ahead[i][line[i]]), i))[:k]
                for i in brittle:
                    after[i] = likeliest(ahead[i]) if redraw else mask
                    margins[i] = margin(ahead[i])
            margins |= {i: margin(rows[i]) for i in chosen}
            line = after
            when = [number if a != b else w for w, a, b in zip(when, before, line)]
            number += 1
    return line, when, calls


@pytest.mark.parametrize(
    ("steps", "every", "m", "k", "redraw", "size"),
    [
        (16, 2, 3, 1, True, 99),
        (16, 1, 2, 1, True, 99),
        (4, 1, 4, 2, True, 99),
        (16, 2, 4, 1, False, 99),
        (5, 1, 9, 2, False, 99),
        (4, 1, 3, 2, True, 4),
    ],
)
def test_revisions_by_the_book(
    steps: int, every: int, m: int, k: int, redraw: bool, size: int
) -> None:
    rule = f"core({steps}, {every}, {m}, {k}, start=0.25, end=1.0, redraw={redraw})"
    rule = rule if size == 99 else f"blocks({size}, {rule})"
    revised = agree(
        rule, lambda toys, line: reference(toys, line, steps, every, m, k, redraw, size)
    )
    base = f"confidence(steps={steps})"
    base = base if size == 99 else f"blocks({size}, {base})"
    plain = [one for toys, lines in batches() for one in found(cold(base, toys, lines))]
    assert sum(a[0] != b[0] for a, b in zip(revised, plain)) > 5  # it does revise


def test_outside_its_window_it_is_confidence_in_steps() -> None:
    toys = Toys(8, 20)
    tokens = torch.tensor(toys.start((0, 5)))
    one, other = (
        decode(SAMPLERS.build(spec), toys, tokens, streams=Streams(4, 20))
        for spec in ("confidence(steps=4)", "core(4, every=1, start=0.8, end=0.9)")
    )
    assert torch.equal(one.tokens, other.tokens) and torch.equal(one.calls, other.calls)
    # Six to fill in four steps; t/T = .25, .5, .75 lie in the window, each one call more.
    more = decode("core(4, every=1, end=0.8)", toys, tokens, streams=Streams(4, 20))
    assert more.calls.tolist() == [4 + 2] * 20  # in the first step nothing is revealed yet


def test_what_is_given_is_never_revised() -> None:
    toys = Toys(8, 30)
    tokens = torch.tensor(toys.start((0, 1, 4, 7)))
    result = decode(
        "core(4, every=1, revise=4, start=0.0, end=1.0)", toys, tokens, streams=Streams(1, 30)
    )
    given = tokens != toys.mask_id
    assert torch.equal(result.tokens[given], tokens[given])


def test_kind_and_bad_parameters() -> None:
    assert SAMPLERS.build("core").law_kind == SHAPED and SAMPLERS.build("core").remasks
    for bad in ("steps=0", "every=0", "candidates=0", "revise=0", "start=-0.1", "end=1.5"):
        with pytest.raises(MaskwalkError):
            SAMPLERS.build(f"core({bad})")
