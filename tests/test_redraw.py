"""A policy's tokens follow from its choices, and its choices do not see the tokens to come."""

import copy

import pytest
import torch

from maskwalk.analysis.contract.answers import Answers
from maskwalk.analysis.contract.redraw import _near, chooses_blindly, redrawn_share
from maskwalk.decoding.decode import decode
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from tests.conftest import STANDS
from tests.mutants.cheats import Peeks, Reaches

LAW = STANDS["chain"]
ORACLE = LAW.oracle()
EMPTY = torch.full((64, LAW.length), ORACLE.mask_id)
HONEST = ("entropy(block=2)", "random(block=2)", "bisection", "blocks(2, entropy)", "ancestral(4)")


def test_a_policys_tokens_come_out_again() -> None:
    for spec in HONEST:
        assert redrawn_share(SAMPLERS.build(spec), ORACLE, EMPTY, seed=3) == 1.0
    assert redrawn_share(Reaches(), ORACLE, EMPTY, seed=3) < 0.98


def test_a_look_at_the_tokens_to_come_is_seen() -> None:
    for spec in HONEST:
        assert chooses_blindly(SAMPLERS.build(spec), ORACLE, EMPTY, seed=3)
        given = EMPTY.masked_fill(torch.arange(64)[:, None] < 9, 0)  # some rows are complete
        assert chooses_blindly(SAMPLERS.build(spec), ORACLE, given, seed=3)
    for peeking in (Peeks(), SAMPLERS.build("threshold_drawn(tau=0.4)")):
        assert not chooses_blindly(peeking, ORACLE, EMPTY, seed=3)


class Counts:
    """The oracle, and how often it was asked."""

    vocab_size, mask_id, score_grid = ORACLE.vocab_size, ORACLE.mask_id, ORACLE.score_grid

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, tokens: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
        self.asked += 1
        return ORACLE(tokens, at)


def test_a_run_once_more_asks_nothing_new() -> None:
    for spec in HONEST:
        rule, asked, answers = SAMPLERS.build(spec), Counts(), Answers()
        run = decode(rule, answers.of(asked), EMPTY, seed=3, trace=True)
        before = asked.asked
        assert before > 0 and torch.equal(run.tokens, decode(rule, ORACLE, EMPTY, seed=3).tokens)
        assert chooses_blindly(rule, answers.of(asked), EMPTY, 3, run)
        assert asked.asked == before
    peeking, asked, answers = Peeks(), Counts(), Answers()
    run = decode(peeking, answers.of(asked), EMPTY, seed=3, trace=True)
    assert not chooses_blindly(peeking, answers.of(asked), EMPTY, 3, run)
    at, other = torch.zeros(2, *EMPTY.shape, dtype=torch.bool)
    at[0, 0], other[0, 1] = True, True
    half, known = EMPTY.clone(), Answers().of(asked)
    half[0, 2] = 0
    assert torch.equal(known(half, at), ORACLE(half, at))
    assert torch.equal(known(half, other), ORACLE(half, other))
    assert torch.equal(known(half), ORACLE(half))


def test_what_is_done_to_an_answer_does_not_reach_what_is_kept() -> None:
    known = Answers().of(ORACLE)
    for _ in range(3):
        answer = known(EMPTY)
        assert torch.equal(answer, ORACLE(EMPTY))
        answer.fill_(0.0)


def test_answers_are_kept_while_there_is_room() -> None:
    asked = Counts()
    known = Answers(most=ORACLE(EMPTY[:2]).nbytes).of(asked)
    for rows in (3, 2, 1, 3, 2, 1):
        known(EMPTY[:rows])
    assert asked.asked == 5  # two rows were kept; before them there was no room for three


def test_a_network_that_rounds_otherwise_is_no_cheat() -> None:
    """A uniform nearer to the edge of its token's share than the grid may fall on either side."""
    log_probs = torch.tensor([[0.25, 0.25, 0.5]]).log().expand(4, -1)
    u = torch.tensor([0.25 + 1e-5, 0.25 + 1e-3, 0.5 - 1e-5, 0.1])
    tokens = torch.tensor([0, 0, 2, 3])  # 3: the mask, which is no token
    assert _near(log_probs, u, tokens, 1e-4).tolist() == [True, False, True, False]


def test_a_mistake_of_the_denoiser_is_its_own() -> None:
    class Wrong(Counts):
        def __call__(self, tokens: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
            return super().__call__(tokens, at)[:, :-1]

    with pytest.raises(MaskwalkError, match=r"Wrong.* answers for"):
        decode("entropy(block=2)", Answers().of(Wrong()), EMPTY, seed=3)
    known = Answers().of(Counts())
    assert copy.copy(known).vocab_size == ORACLE.vocab_size  # nothing is looked for without end
