"""What a policy is shown stays what it was: tokens are drawn from what the denoiser answered.

A policy says where, and looks at marginals to do so. Were it to change them, tokens would be drawn
from another law under an innocent name. A tensor counts the writes to it, so a changed table is
seen after every choice, for nothing. What goes around the count (`.data`, numpy) can only be done
by code that is not this package's: such a policy is shown copies.

What a class says of its own law is believed of this package's classes alone, and the calls of
another's are metered a second time, where it cannot reach. Nothing here keeps out code that sets
out to deceive its own process (it can replace any function of Python); it would have to be such
code.
"""

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from maskwalk.decoding.kinds import EXACT, FACTORISED, KINDS, SHAPED
from maskwalk.errors import UserCodeError, misbehaved, shown

if TYPE_CHECKING:
    from maskwalk.decoding.canvas import RoundStreams
    from maskwalk.decoding.decode import Decoded
    from maskwalk.decoding.policy import Sampler
    from maskwalk.decoding.view import View
    from maskwalk.denoiser import Denoiser

PACKAGE = __name__.partition(".")[0]
TOLD = ("vocab_size", "mask_id", "score_grid", "passes", "doubts", "forbidden", "rows")


def writes(tensor: Tensor) -> int:
    """How often a tensor was written to; tensors of inference mode do not count."""
    return -1 if tensor.is_inference() else tensor._version


def is_foreign(sampler: "Sampler") -> bool:
    """Whether code that is not this package's has a part in a sampler."""
    return _foreign(type(sampler)) or any(map(is_foreign, sampler._parts().values()))


@lru_cache(maxsize=256)
def _foreign(kind: type) -> bool:
    return not all(_ours(base) for base in kind.__mro__ if hasattr(base, "law_kind"))


def _ours(kind: type) -> bool:
    """Whether a class is this package's: under its name, in the module that it says is its own."""
    module = sys.modules.get(kind.__module__)
    named = kind.__module__.partition(".")[0] == PACKAGE
    return named and getattr(module, kind.__name__, None) is kind


def knows_world(sampler: "Sampler") -> bool:
    """Whether code that is not this package's is told which world it runs in."""
    fields = getattr(sampler, "__dataclass_fields__", ())
    bases = [base for base in type(sampler).__mro__ if "in_world" in vars(base)]
    own = not _ours(bases[0]) or "in_world" in getattr(sampler, "__dict__", {})
    told = own or (_foreign(type(sampler)) and "world" in fields)
    return told or any(map(knows_world, sampler._parts().values()))


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


def believed_kind(sampler: "Sampler") -> str:
    """The kind of law a sampler may be taken for: what it says, if the package says it.

    Of code from elsewhere, only policies that cannot draw before they choose are factorised;
    whatever else it says of itself, its results are measured against the law like shaped ones.
    """
    kind = sampler.law_kind
    if kind not in KINDS:
        raise misbehaved(
            sampler,
            f"has law_kind = {shown(kind)}; a law is {EXACT!r}, {FACTORISED!r} or {SHAPED!r}.",
        )
    if not is_foreign(sampler):
        return kind
    return FACTORISED if kind == FACTORISED and _only_says_where(sampler) else SHAPED


def _only_says_where(sampler: "Sampler") -> bool:
    """Whether all foreign classes in it are policies that draw in no step of their own."""
    from maskwalk.decoding.policy import chooses_first

    own = not _foreign(type(sampler)) or chooses_first(sampler)
    return own and all(map(_only_says_where, sampler._parts().values()))


class Meter:
    """Counts the sequences a denoiser reads, beside `Counted`, for samplers from elsewhere."""

    def __init__(self) -> None:
        self.read = 0

    def on(self, denoiser: "Denoiser") -> Any:
        """The denoiser, behind a function that counts: no attribute leads around it."""
        meter = self

        def count(tokens: Tensor, at: Tensor | None) -> None:
            asked = tokens == denoiser.mask_id if at is None else at
            meter.read += int(asked.any(1).sum())

        class Metered:
            """Answers like the denoiser behind it."""

            def __getattr__(self, name: str) -> Any:
                if name == "over_all":
                    return over_all(getattr(denoiser, name))
                if name not in TOLD:
                    raise AttributeError(name)
                return getattr(denoiser, name)

            def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Any:
                count(tokens, at)
                return denoiser(tokens, at)

        def over_all(both: Any) -> Any:
            def counted(tokens: Tensor, at: Tensor) -> Any:
                count(tokens, at)
                return both(tokens, at)

            return counted

        Metered.__qualname__ = type(denoiser).__qualname__
        Metered.__module__ = type(denoiser).__module__
        return Metered()

    def check(self, sampler: "Sampler", decoded: "Decoded", passes: int) -> None:
        """Refuses a run that asked for more than it was charged for."""
        charged = int(decoded.calls.sum())
        if charged != passes * self.read:
            raise misbehaved(
                sampler,
                f"had the denoiser read {self.read:,} sequences, and {charged // passes:,} calls "
                "were counted: it asked past the denoiser it was handed, or changed the count.",
            )
