"""The contract, over every registered sampler at every setting of its sweep.

Every setting is tried on the first stand; on the others the two ends of the sweep, where the calls
are fewest and most: a rule that breaks with the law breaks there too, and the suite stays quick.
"""

from functools import cache

import pytest
from torch import Tensor

from maskwalk.contract import CHECKS, Stand
from maskwalk.oracles import oracle_for
from maskwalk.samplers import SAMPLERS
from maskwalk.specs import Spec
from tests.conftest import FLAT, STANDS


class Kept(Stand):
    """A stand that makes each of its canvases once."""

    @cache  # noqa: B019 - the stands live as long as the tests
    def canvas(self, batch: int, seed: int = 7) -> Tensor:
        return super().canvas(batch, seed)


@cache
def stand(name: str) -> Stand:
    law = STANDS[name]
    return Kept(oracle_for(law), oracle_for(FLAT), law.length)


def settings(name: str) -> list[str]:
    return [str(Spec(name, (), kwargs)) for kwargs in SAMPLERS[name].sweep]


def tried(name: str, first: bool) -> list[str]:
    every = settings(name)
    return every if first or len(every) < 3 else [every[0], every[-1]]


FIRST = next(iter(STANDS))
EVERY = [(p, spec) for p in STANDS for name in SAMPLERS for spec in tried(name, p == FIRST)]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(("place", "spec"), EVERY)
def test_contract(place: str, spec: str, check: str) -> None:
    CHECKS[check](SAMPLERS.build(spec), stand(place))


def test_every_sampler_says_what_it_is() -> None:
    for name in SAMPLERS:
        assert len(SAMPLERS.summary(name)) > 20, name
