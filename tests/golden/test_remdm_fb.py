"""The forward–backward corrector: its coins from plain loops, and the share they leave revealed."""

from functools import cache
from itertools import pairwise

import pytest
import torch

from maskwalk.decoding.decode import decode
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Purpose, Streams
from tests.golden.many import Found, Line, Toys, agree, likeliest, open_block, prompt_of


@cache
def coins(number: int, length: int) -> list[list[float]]:
    """The coins of a round: numbers of the streams."""
    return Streams(0, 10).uniform(Purpose.CHOICE, number, length).tolist()


def reference(toys: Toys, line: Line, steps: int, size: int) -> Found:
    row, prompt, mask = line[-1], prompt_of(line, toys.mask_id), toys.mask_id
    when, calls, number = [-1] * len(line), 0, 0
    while mask in line:
        block = open_block(toys, line, prompt, size)
        for step in range(steps):
            before, rows = line, toys.at(line)
            now, then = step / steps, (step + 1) / steps
            most = 1.0 if now == 0 else min(1.0, (1 - then) / now)
            back = most if now == 0 else min((then - now) / now, most)
            unmask = (then - (1 - back) * now) / (1 - now)
            tossed = coins(number, len(line))[row]
            calls += any(line[i] == mask for i in block)
            line = list(line)
            for i in block:
                if before[i] == mask and tossed[i] < unmask:
                    line[i] = likeliest(rows[i])
                elif before[i] != mask and tossed[i] < back:
                    line[i] = mask
            when = [number if a != b else t for t, a, b in zip(when, before, line)]
            number += 1
    return line, when, calls


@pytest.mark.parametrize(("steps", "size"), [(6, 99), (12, 99), (4, 4)])
def test_coins_by_the_book(steps: int, size: int) -> None:
    spec = f"remdm('fb', {steps})"
    spec = spec if size == 99 else f"blocks({size}, {spec})"
    agree(spec, lambda toys, line: reference(toys, line, steps, size))


def test_the_share_revealed_is_alpha_and_as_much_is_taken_back_as_a_plain_step_reveals() -> None:
    toys = Toys(12, 1)
    tokens = torch.tensor(toys.start() * 2000)
    result = decode(
        SAMPLERS.build("remdm('fb', 8)"), toys, tokens, streams=Streams(2, 2000), trace=True
    )
    assert result.trace is not None
    shown = [(canvas[:, :12] != toys.mask_id) for canvas in result.trace.replay()]
    for step, (before, after) in enumerate(pairwise(shown)):
        share = float(after.double().mean())
        assert abs(share - (step + 1) / 8) < 5 * (0.25 / 24000) ** 0.5
        back = float((before & ~after).double().mean())
        expected = 0.0 if step in (0, 7) else 1 / 8  # σ α_t = α_s − α_t
        assert abs(back - expected) < 5 * (0.25 / 24000) ** 0.5
