"""The contract, over every registered sampler at every setting of its sweep, on every stand."""

import pytest

from maskwalk.contract import CHECKS, Stand
from maskwalk.samplers import SAMPLERS
from maskwalk.specs import Spec


def settings(name: str) -> list[str]:
    return [str(Spec(name, (), kwargs)) for kwargs in SAMPLERS[name].sweep]


EVERY = [spec for name in SAMPLERS for spec in settings(name)]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("spec", EVERY)
def test_contract(spec: str, check: str, stand: Stand) -> None:
    CHECKS[check](SAMPLERS.build(spec), stand)


def test_every_sampler_says_what_it_is() -> None:
    for name in SAMPLERS:
        assert len(SAMPLERS.summary(name)) > 20, name
