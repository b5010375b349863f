"""Parameters that are samplers themselves: `blocks(size=8, inner=confidence(block=2))`.

A default is written as a `Spec`, so that records can spell it out; it is built on first use.
"""

from maskwalk.decoding.policy import SAMPLERS, Sampler, UnmaskingPolicy
from maskwalk.errors import MaskwalkError
from maskwalk.specs import Spec

Inner = Sampler | Spec


class Default(Spec):
    """A spec that shows itself as it is written, in `maskwalk list` too."""

    def __repr__(self) -> str:
        return str(self)


def sampler(name: str, value: object) -> Sampler:
    """The sampler a parameter names, or an error that says what is allowed."""
    if isinstance(value, str | Spec):
        value = SAMPLERS.build(value)
    if isinstance(value, Sampler):
        return value
    raise MaskwalkError(f"{name} must be a sampler, such as confidence(block=2), not {value!r}.")


def on_its_canvas(inner: Sampler) -> Sampler:
    """An inner sampler that asks about its canvas as it is and nothing else, or an error."""
    if inner.asks_elsewhere:
        raise MaskwalkError(
            "inner must be a sampler that asks about its canvas as it is, and about nothing else; "
            f"{inner!r} looks ahead or back."
        )
    return inner


def policy(name: str, value: object) -> UnmaskingPolicy:
    """The unmasking policy a parameter names, or an error that says what is allowed."""
    if isinstance(value, str | Spec):
        value = SAMPLERS.build(value)
    if isinstance(value, UnmaskingPolicy):
        return value
    kind = "draws first or remasks" if isinstance(value, Sampler) else "is not a sampler"
    raise MaskwalkError(
        f"{name} must be a policy that only chooses where to reveal, such as confidence(block=2); "
        f"{value!r} {kind}."
    )
