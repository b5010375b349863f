"""A policy's tokens follow from its choices, and its choices do not see the tokens to come."""

import torch

from maskwalk.analysis.contract.redraw import chooses_blindly, redrawn_share
from maskwalk.samplers import SAMPLERS
from tests.conftest import STANDS
from tests.mutants.cheats import Peeks, SharpensUnseen

LAW = STANDS["chain"]
ORACLE = LAW.oracle()
EMPTY = torch.full((64, LAW.length), ORACLE.mask_id)
HONEST = ("entropy(block=2)", "random(block=2)", "bisection", "blocks(2, entropy)", "ancestral(4)")


def test_a_policys_tokens_come_out_again() -> None:
    for spec in HONEST:
        assert redrawn_share(SAMPLERS.build(spec), ORACLE, EMPTY, seed=3) == 1.0
    assert redrawn_share(SharpensUnseen(), ORACLE, EMPTY, seed=3) < 0.98


def test_a_look_at_the_tokens_to_come_is_seen() -> None:
    for spec in HONEST:
        assert chooses_blindly(SAMPLERS.build(spec), ORACLE, EMPTY, seed=3)
    for peeking in (Peeks(), SAMPLERS.build("threshold_drawn(tau=0.4)")):
        assert not chooses_blindly(peeking, ORACLE, EMPTY, seed=3)
