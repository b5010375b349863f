"""Errors a user can act on: each says what was given, what is allowed, and what to do.

The command line turns a `MaskwalkError` into one sentence and exit code 2; anything else is a bug
of ours and keeps its traceback.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class MaskwalkError(ValueError):
    """Bad input, described in a sentence that names the remedy."""


def unknown(kind: str, given: str, known: Iterable[str]) -> MaskwalkError:
    """The error for a name that does not exist: suggests the nearest and lists them all."""
    options = sorted(known)
    near = get_close_matches(given, options, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return MaskwalkError(f"Unknown {kind} {given!r}.{hint} Known: {', '.join(options) or 'none'}.")


def whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """`value` as a whole number in low..high, or an error that names the parameter."""
    span = f"at least {low}" if high is None else f"from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise MaskwalkError(f"{name} must be a whole number {span}, not {value!r}.")
    if value < low or (high is not None and value > high):
        raise MaskwalkError(f"{name} must be a whole number {span}, not {value}.")
    return value


def real(name: str, value: object, low: float, high: float = float("inf")) -> float:
    """`value` as a number in [low, high], or an error that names the parameter."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise MaskwalkError(f"{name} must be a number, not {value!r}.")
    if not low <= value <= high:
        span = f"at least {low:g}" if high == float("inf") else f"between {low:g} and {high:g}"
        raise MaskwalkError(f"{name} must be {span}, not {value:g}.")
    return float(value)


def one_of(name: str, value: object, options: Iterable[str]) -> str:
    """`value` if it is one of the named options, or an error that lists them."""
    known = list(options)
    if not isinstance(value, str) or value not in known:
        raise unknown(name, str(value), known)
    return value


def memory_ran_out(problem: BaseException) -> bool:
    """Whether an exception says that there is no memory left, here or on a device."""
    words = ("can't allocate memory", "out of memory", "not enough memory")
    return isinstance(problem, MemoryError) or (
        isinstance(problem, RuntimeError) and any(w in str(problem).lower() for w in words)
    )
