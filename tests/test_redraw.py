"""A policy's tokens follow from its choices, and its choices do not see the tokens to come."""

import torch

from maskwalk.analysis.contract.redraw import _near, chooses_blindly, redrawn_share
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


def test_a_network_that_rounds_otherwise_is_no_cheat() -> None:
    """A uniform nearer to the edge of its token's share than the grid may fall on either side."""
    log_probs = torch.tensor([[0.25, 0.25, 0.5]]).log().expand(4, -1)
    u = torch.tensor([0.25 + 1e-5, 0.25 + 1e-3, 0.5 - 1e-5, 0.1])
    tokens = torch.tensor([0, 0, 2, 3])  # 3: the mask, which is no token
    assert _near(log_probs, u, tokens, 1e-4).tolist() == [True, False, True, False]
