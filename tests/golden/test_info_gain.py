"""Info-Gain: every move, its look-ahead and the choice from plain loops over one canvas at a time.

The random numbers of the moves are those of the streams; all else is written from the formula.
"""

from collections.abc import Iterable
from functools import cache
from itertools import product

import numpy as np
import pytest
import torch

from maskwalk.analysis.law import sampler_law, total_variation
from maskwalk.decoding.decode import decode
from maskwalk.decoding.kinds import SHAPED
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Purpose, Streams
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
    nats,
    open_block,
    prompt_of,
    rounded,
    sure,
)
from tests.test_field_laws import ORACLE, Arbitrary, State, agrees, draw_first, fill, law_of


@cache
def noise(number: int, length: int, moves: int) -> list[list[list[float]]]:
    """Gumbel noise by row, place and move: numbers of the streams."""
    row, place = torch.ones((10, length)).nonzero(as_tuple=True)
    numbers = Streams(0, 10).single_at(Purpose.NOISE, number, row, place, moves).double()
    table = -torch.log(-torch.log(numbers.clamp(min=2.0**-54)))
    return table.view(10, length, moves).tolist()


def reference(
    toys: Toys, line: Line, moves: int, block: int, bar: float, gain: str, size: int
) -> Found:
    row, prompt, mask = line[-1], prompt_of(line, toys.mask_id), toys.mask_id
    when, calls, number = [-1] * len(line), 0, 0
    rows: dict[int, Row] = {}
    while mask in line:
        inside = open_block(toys, line, prompt, size)
        if not rows:
            rows, calls = toys.at(line), calls + 1
        if len(inside) <= block or all(sure(rows[i]) >= bar - 1e-12 for i in inside):
            best, after = inside, None
        else:
            noises = noise(number, len(line), moves)[row]
            tried: dict[tuple[int, ...], tuple[float, dict[int, Row]]] = {}
            for move in range(moves):
                score = {
                    i: sure(rows[i]) / 0.2 + noises[i][move] if move else sure(rows[i])
                    for i in inside
                }
                where = tuple(sorted(sorted(inside, key=lambda i: (-score[i], i))[:block]))
                if where in tried:
                    continue
                later = [likeliest(rows[i]) if i in where else x for i, x in enumerate(line)]
                ahead = toys.at(later)
                calls += bool(ahead)
                mean = sum(map(nats, ahead.values())) / max(1, len(ahead))
                now = sum(nats(rows[i]) for i in where) if gain == "info_gain" else 0.0
                tried[where] = (rounded(now + mean), ahead)
            best = list(min(tried, key=lambda where: tried[where][0]))
            after = tried[tuple(best)][1]
        line = [likeliest(rows[i]) if i in best else x for i, x in enumerate(line)]
        when = [number if i in best else t for i, t in enumerate(when)]
        number += 1
        rows = after or {}
        if rows and open_block(toys, line, prompt, size)[0] > max(inside):
            rows = {}  # every block begins with a call of its own
    return line, when, calls


@pytest.mark.parametrize(
    ("moves", "block", "bar", "gain", "size"),
    [
        (4, 1, 0.8, "info_gain", 99),
        (5, 2, 0.7, "info_gain", 99),
        (4, 1, 0.8, "lookum", 99),
        (3, 1, 0.75, "info_gain", 4),
    ],
)
def test_moves_by_the_book(moves: int, block: int, bar: float, gain: str, size: int) -> None:
    spec = f"info_gain({moves}, {block}, threshold={bar}, gain='{gain}')"
    spec = spec if size == 99 else f"blocks({size}, {spec})"
    every = agree(spec, lambda toys, line: reference(toys, line, moves, block, bar, gain, size))
    # Looking ahead changes the order: it is not confidence's.
    greedy = f"confidence(block={block})"
    greedy = greedy if size == 99 else f"blocks({size}, {greedy})"
    plain = [one for toys, lines in batches() for one in found(cold(greedy, toys, lines))]
    assert sum(a[1] != b[1] for a, b in zip(every, plain)) > 10


def test_the_law_of_one_move_is_draw_first() -> None:
    """With one candidate nothing is weighed: it keeps the likeliest draw, like low_confidence."""
    toys = Toys(5, 30)
    tokens = torch.tensor(toys.start())
    one, other = (
        decode(SAMPLERS.build(spec), toys, tokens, streams=Streams(2, 30))
        for spec in ("info_gain(1, threshold=2.0)", "low_confidence(steps=5)")
    )
    assert torch.equal(one.tokens, other.tokens)
    # One call at first, then one look ahead for each move but the last.
    assert one.calls.tolist() == [5] * 30


def test_every_candidate_is_a_call() -> None:
    toys = Toys(6, 40)
    many = cold("info_gain(8, threshold=2.0)", toys, toys.start())
    # Distinct positions only: of six masked at most 6, 5, 4, 3, 2 moves, then none.
    assert int(many.calls.max()) <= 1 + 6 + 5 + 4 + 3 + 2
    assert int(many.calls.min()) > 6 and many.rounds.tolist() == [6] * 40


THREE = Arbitrary(length=3)
NOISE = 0.2


def two_moves(state: State, masked: list[int], probs: np.ndarray) -> Iterable[tuple[float, State]]:
    """All that two moves of one position can do: both draws, and the noisy choice of the second."""
    if len(masked) == 1:
        for x in range(2):
            yield float(probs[masked[0], x]), fill(state, masked, [x])
        return
    plain = {i: -float((probs[i] * np.log(probs[i])).sum()) for i in masked}

    def cost(place: int, token: int) -> float:
        ahead = THREE(torch.tensor([fill(state, [place], [token])])).exp().numpy()
        return float(plain[place] - (ahead * np.log(ahead)).sum() / len(ahead))

    for first, second in product(product(range(2), repeat=len(masked)), repeat=2):
        drawn = [[float(probs[i, x]) for i, x in zip(masked, xs)] for xs in (first, second)]
        weight = float(np.prod(drawn))
        one = int(np.argmax(drawn[0]))
        picks = np.exp(np.array(drawn[1]) / NOISE)
        for two, pick in enumerate(picks / picks.sum()):
            moves = [(masked[one], first[one]), (masked[two], second[two])]
            second_wins = one != two and cost(*moves[1]) < cost(*moves[0])
            place, token = moves[second_wins]
            yield weight * float(pick), fill(state, [place], [token])


def test_the_law_of_two_moves_is_the_enumerated_one() -> None:
    """Off the law of one at a time though every round reveals one token: choosing by what a token
    leads to is no choice of positions."""
    law = law_of(THREE, 3, [two_moves] * 3)
    spec = f"info_gain(2, temperature={NOISE}, threshold=2.0)"
    assert agrees(spec, THREE, law)
    one = law_of(THREE, 3, [draw_first(lambda drawn: 1)] * 3)
    assert total_variation(law, one) > 0.02 and not agrees(spec, THREE, one)
    # With a perfect denoiser every order one at a time is exact; this is not.
    law = sampler_law(SAMPLERS.build("entropy"), ORACLE, torch.full((3,), 3))
    assert not agrees("info_gain(2, threshold=2.0)", ORACLE, law)


def test_kind_and_bad_parameters() -> None:
    assert SAMPLERS.build("info_gain(1)").law_kind == SHAPED
    for bad in ("candidates=0", "block=0", "temperature=0.0", "threshold=-1.0", "gain='best'"):
        with pytest.raises(MaskwalkError):
            SAMPLERS.build(f"info_gain({bad})")
