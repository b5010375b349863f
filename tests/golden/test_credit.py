"""Credit decoding: credits, moved marginals and the inner rule from plain loops; its law by
enumeration, and that it is no law of the denoiser's."""

from collections.abc import Iterable
from math import exp, log

import numpy as np
import pytest
import torch

from maskwalk.analysis.law import sampler_law, total_variation
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
    sure,
)
from tests.test_field_laws import NU, ORACLE, Arbitrary, State, agrees, fill, law_of

ALPHA, BETA, GAMMA = 0.7, 0.8, 0.2


def moved(row: Row, credit: Row) -> Row:
    logits = [x + ALPHA * log(1 + c) for x, c in zip(row, credit)]
    total = log(sum(map(exp, logits)))
    return [x - total for x in logits]


def reference(toys: Toys, line: Line, tau: float, size: int) -> Found:
    prompt, when, number = prompt_of(line, toys.mask_id), [-1] * len(line), 0
    credits: dict[int, Row] = {}
    while toys.mask_id in line:
        rows, inside = toys.at(line), open_block(toys, line, prompt, size)
        now: dict[int, Row] = {}
        for i in inside:
            credit = [BETA * c for c in credits.get(i, [0.0] * toys.words)]
            best = likeliest(rows[i])
            credit[best] += exp(rows[i][best]) ** GAMMA
            credits[i], now[i] = credit, moved(rows[i], credit)
        chosen = [i for i in inside if sure(now[i]) >= tau - 1e-12]
        chosen = chosen or [min(inside, key=lambda i: (-sure(now[i]), i))]
        line = [likeliest(now[i]) if i in chosen else x for i, x in enumerate(line)]
        when = [number if i in chosen else t for i, t in enumerate(when)]
        number += 1
    return line, when, number


@pytest.mark.parametrize(("tau", "size"), [(0.9, 99), (0.7, 99), (0.8, 4)])
def test_credits_by_the_book(tau: float, size: int) -> None:
    """With argmaxes the drawn token is the likeliest: threshold and threshold_drawn are one."""
    every = []
    for inner in ("threshold", "threshold_drawn"):
        spec = f"credit({inner}(tau={tau}))"
        spec = spec if size == 99 else f"blocks({size}, {spec})"
        every = agree(spec, lambda toys, line: reference(toys, line, tau, size))
    plain = f"threshold({tau})" if size == 99 else f"blocks({size}, threshold({tau}))"
    slow = [one for toys, lines in batches() for one in found(cold(plain, toys, lines))]
    assert sum(calls for _, _, calls in every) < sum(calls for _, _, calls in slow)


def test_without_weight_it_is_the_inner_sampler() -> None:
    toys = Toys(7, 20)
    tokens = torch.tensor(toys.start((0, 3)))
    for inner in ("entropy(block=2)", "low_confidence(steps=3)", "remdm(steps=6, eta=0.3)"):
        one, other = (
            decode(SAMPLERS.build(spec), toys, tokens, streams=Streams(4, 20))
            for spec in (inner, f"credit({inner}, alpha=0.0)")
        )
        assert torch.equal(one.tokens, other.tokens) and torch.equal(one.rounds, other.rounds)


THREE = Arbitrary(length=3)


class Remembering:
    """Left to right on credited marginals; the credits follow from the canvases met on the way."""

    def __call__(
        self, state: State, masked: list[int], probs: np.ndarray
    ) -> Iterable[tuple[float, State]]:
        place = masked[0]
        credit = np.zeros(2)
        for shown in range(place + 1):  # left to right: the rounds before are the prefixes
            before = tuple(x if i < shown else THREE.mask_id for i, x in enumerate(state))
            row = THREE(torch.tensor([before])).exp().numpy()[place - shown]
            credit *= BETA
            credit[row.argmax()] += row.max() ** GAMMA
        weights = probs[place] * (1 + credit) ** ALPHA
        for token, p in enumerate(weights / weights.sum()):
            yield float(p), fill(state, [place], [token])


def test_the_law_is_the_enumerated_one_and_not_the_denoisers() -> None:
    law = law_of(THREE, 3, [Remembering()] * 3)
    plain = sampler_law(SAMPLERS.build("left_to_right"), THREE, torch.full((3,), 2))
    assert agrees("credit(left_to_right)", THREE, law)
    assert total_variation(law, plain) > 0.03 and not agrees("credit(left_to_right)", THREE, plain)
    # Perfect conditionals, one token at a time: exact without credits, not with them.
    assert agrees("credit(left_to_right, alpha=0.0)", ORACLE, NU)
    assert not agrees("credit(left_to_right)", ORACLE, NU)


class Tied:
    """Two equal tokens and a rare one at every place, but for the last bits of a probability."""

    vocab_size, mask_id, score_grid = 3, 3, 1e-9

    def __init__(self, wobble: float) -> None:
        self.wobble = wobble

    def __call__(self, tokens: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
        count = int(((tokens == 3) if at is None else at).sum())
        one = torch.tensor([0.45 - self.wobble, 0.45 + self.wobble, 0.1], dtype=torch.float64)
        return one.log().expand(count, 3)


def test_a_tie_is_credited_alike_whatever_the_last_bits_say() -> None:
    blank = torch.full((200, 8), 3)
    one, other = (
        decode(SAMPLERS.build("credit"), Tied(wobble), blank, streams=Streams(5, 200))
        for wobble in (1e-13, -1e-13)
    )
    assert torch.equal(one.tokens, other.tokens)


def test_kind_and_bad_parameters() -> None:
    assert SAMPLERS.build("credit(left_to_right)").law_kind == SHAPED
    for bad in ("alpha=-1.0", "beta=1.5", "gamma=-0.1"):
        with pytest.raises(MaskwalkError):
            SAMPLERS.build(f"credit({bad})")
    inner = ("speculative(k=3)", "punt", "info_gain", "core", "wino", "corrected", "self_correct")
    for other in (*inner, "p2(rescore=True)", "lossless(k=2)"):
        with pytest.raises(MaskwalkError, match="its canvas as it is"):
            SAMPLERS.build(f"credit({other})")
    SAMPLERS.build("credit(p2())")
