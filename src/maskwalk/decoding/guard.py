"""What a policy is shown stays what it was: tokens are drawn from what the denoiser answered.

A policy says where, and looks at marginals to do so. Were it to change them, tokens would be drawn
from another law under an innocent name. A tensor counts the writes to it, so a changed table is
seen after every choice, for nothing. What goes around the count (`.data`, numpy) can only be done
by code that is not this package's: such a policy is shown copies.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from maskwalk.errors import UserCodeError, misbehaved

if TYPE_CHECKING:
    from maskwalk.decoding.canvas import RoundStreams
    from maskwalk.decoding.policy import Sampler
    from maskwalk.decoding.view import View

PACKAGE = __name__.partition(".")[0]


def writes(tensor: Tensor) -> int:
    """How often a tensor was written to; tensors of inference mode do not count."""
    return -1 if tensor.is_inference() else tensor._version


def is_foreign(sampler: "Sampler") -> bool:
    """Whether code that is not this package's has a part in a sampler."""
    return _foreign(type(sampler)) or any(map(is_foreign, sampler._parts().values()))


@lru_cache(maxsize=256)
def _foreign(kind: type) -> bool:
    mine = [base for base in kind.__mro__ if hasattr(base, "law_kind")]
    return any(base.__module__.partition(".")[0] != PACKAGE for base in mine)


class Shown:
    """What a foreign policy is shown beside marginals, as it was before it chose."""

    def __init__(self, view: "View", rng: "RoundStreams") -> None:
        self._canvas = {name: getattr(view, name) for name in ("tokens", "masked", "given")}
        self._before = {name: each.clone() for name, each in self._canvas.items()}
        self._rng, self._numbers = rng, dict(vars(rng))

    def check(self, sampler: "Sampler", round: int) -> None:
        """Refuses a policy that wrote on the canvas, or into how its tokens are drawn."""
        for name, each in self._canvas.items():
            if not torch.equal(each, self._before[name]):
                raise changed(sampler, f"view.{name}", round)
        now: dict[str, Any] = vars(self._rng)
        for name in {**now, **self._numbers}:
            if name not in now or now[name] is not self._numbers.get(name):
                raise changed(sampler, f"rng.{name}", round)


def changed(sampler: "Sampler", what: str, round: int) -> UserCodeError:
    """The error for a policy that wrote to what it was shown."""
    return misbehaved(
        sampler,
        f"changed {what} that it was shown, in round {round}; a policy says where, and tokens are "
        "drawn from what the denoiser answered. Work on a copy: .clone().",
    )
