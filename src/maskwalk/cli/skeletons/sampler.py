"""A sampler: a policy that says where to reveal."""

NEXT = "maskwalk evaluate <PATH>:<CLASS>"

FILE = '''"""<TITLE>: every position that is sure enough, else the surest one.

With H_i the entropy of marginal i in nats: reveal {i : H_i <= bound}, or argmin H_i where that is
empty. Change this text with the rule.

Source: yours.
"""

from dataclasses import dataclass

from maskwalk import SAMPLERS, UnmaskingPolicy


@SAMPLERS.register("<NAME>")  # the name in specs: <NAME>(bound=1.0)
@dataclass(frozen=True)
class <CLASS>(UnmaskingPolicy):
    """Every position with entropy at most `bound` nats, else the lowest."""

    bound: float = 0.5  # your knob: what trades calls for quality

    # The settings that draw its whole curve, few calls to many; `maskwalk evaluate` runs them all.
    sweep = ({"bound": 3.0}, {"bound": 2.0}, {"bound": 1.0}, {"bound": 0.3})

    def choose(self, view, state, rng):
        """Which masked positions to reveal now, (batch, length), at least one per row."""
        # Change these lines. Everything is a batch; docs/add_a_sampler.md says what `view` offers.
        entropy = view.score("entropy")  # infinite where there is nothing to reveal
        sure = entropy <= self.bound
        surest = view.lowest(entropy, 1)  # ties are broken fairly
        return sure | surest, state
'''

TEST = '''"""<NAME> keeps the contract at every setting of its sweep: pytest test_<NAME>.py"""

import pytest
from <NAME> import <CLASS>

from maskwalk import broken_checks


@pytest.mark.parametrize("setting", <CLASS>.sweep)
def test_contract(setting):
    assert broken_checks(<CLASS>(**setting)) == {}
'''
