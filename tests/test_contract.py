"""The contract, over every registered sampler at every setting of its sweep.

Every setting is tried on the first stand; on the others the two ends of the sweep, where the calls
are fewest and most, and what does not depend on the law at one of them; inside the wrappers the
first setting of each: the suite stays quick.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest
from torch import Tensor

from maskwalk.analysis.contract import CHECKS, Stand
from maskwalk.samplers import SAMPLERS
from maskwalk.specs import Spec
from maskwalk.worlds.walks.oracles import oracle_for
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


def cases() -> Iterator[tuple[str, str, str]]:
    for place, name in product(STANDS, SAMPLERS):
        every = settings(name)
        for spec in every:
            for check in CHECKS:
                if check == "fits_in_wrappers" and (place != FIRST or spec != every[0]):
                    continue
                if place == FIRST or spec == every[-1] or (spec == every[0] and check not in ONCE):
                    yield place, spec, check


FIRST = next(iter(STANDS))
ONCE = ("deterministic", "batch_free")


@pytest.mark.parametrize(("place", "spec", "check"), list(cases()))
def test_contract(place: str, spec: str, check: str) -> None:
    CHECKS[check](SAMPLERS.build(spec), stand(place))


def test_every_sampler_says_what_it_is() -> None:
    for name in SAMPLERS:
        assert len(SAMPLERS.summary(name)) > 20, name
