"""Errors a user can act on: each says what was given, what is allowed, and what to do.

The command line turns a `MaskwalkError` into one sentence and exit code 2; anything else is a bug
of ours and keeps its traceback. Where the fault lies in a user's own file, the sentence names it
and their own frames follow (`UserCodeError`).
"""

import inspect
import linecache
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

MOST = 2**31 - 1  # the largest whole number where a parameter has no limit of its own
SEEDS = 2**63 - 1  # the largest seed
ROUNDS = 65_535  # the largest number of steps of a sampler
LARGE = 1e300  # decimals stay below, so that sums and products of a few stay finite
SHOWN = 80  # characters of a value in a sentence
FRAMES = 8  # frames of a user's traceback that are shown: the outermost, and the last ones


class MaskwalkError(ValueError):
    """Bad input, described in a sentence that names the remedy."""


class UserCodeError(MaskwalkError):
    """A user's own file did what it must not do; below the sentence are its own frames."""


class Interruption(BaseException):
    """Work is ended from outside, whoever's code runs just then: no fault of that code."""


STOPS = (KeyboardInterrupt, Interruption)  # what passes through code of users as it is


def shown(value: object) -> str:
    """A value as a sentence shows it: short, on one line, whatever it is."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**40:
        return f"a whole number of {int(value.bit_length() * 0.30103) + 1} digits"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a number of thousands of digits in a list, an object that cannot be shown
        text = f"a {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def unknown(kind: str, given: str, known: Iterable[str]) -> MaskwalkError:
    """The error for a name that does not exist: suggests the nearest and lists them all."""
    options = sorted(known)
    near = get_close_matches(given[:SHOWN], options, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(options) or "none"
    return MaskwalkError(f"Unknown {kind} {shown(given)}.{hint} Known: {listed}.")


def whole(name: str, value: object, low: int, high: int = MOST) -> int:
    """`value` as a whole number in low..high, or an error that names the parameter."""
    span = f"at least {low}" if high == MOST else f"from {low} to {high}"
    if high == MOST and isinstance(value, int) and value > MOST:
        span = f"from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise MaskwalkError(f"{name} must be a whole number {span}, not {shown(value)}.")
    return value


def seed_number(name: str, value: object) -> int:
    """`value` as a seed, or an error: one outside would silently be another one."""
    return whole(name, value, 0, SEEDS)


def real(name: str, value: object, low: float, high: float = float("inf")) -> float:
    """`value` as a number in [low, high], or an error that names the parameter."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise MaskwalkError(f"{name} must be a number, not {shown(value)}.")
    if not low <= value <= high or abs(value) >= LARGE:
        upwards = f"at least {low:g} and below {LARGE:g}" if value > low else f"at least {low:g}"
        span = upwards if high == float("inf") else f"between {low:g} and {high:g}"
        raise MaskwalkError(f"{name} must be {span}, not {shown(value)}.")
    return float(value)


def one_of(name: str, value: object, options: Iterable[str]) -> str:
    """`value` if it is one of the named options, or an error that lists them."""
    known = list(options)
    if not isinstance(value, str):
        raise MaskwalkError(f"{name} must be one of {', '.join(known)}, not {shown(value)}.")
    if value not in known:
        raise unknown(name, value, known)
    return value


def time_left(seconds: float | None) -> str:
    """A duration that is still to come, for people: "about 72 h left"."""
    if seconds is None or not seconds < float("inf"):
        return "time left unknown"
    units = ((3 * 86400 + 1, "days", 86400), (2 * 3600, "h", 3600), (120, "min", 60), (0, "s", 1))
    unit, size = next((unit, size) for least, unit, size in units if max(seconds, 0) >= least)
    return f"about {max(seconds, 0) / size:.0f} {unit} left"


def memory_ran_out(problem: BaseException) -> bool:
    """Whether an exception says that there is no memory left, here or on a device."""
    words = ("can't allocate memory", "out of memory", "not enough memory")
    return isinstance(problem, MemoryError) or (
        isinstance(problem, RuntimeError) and any(w in str(problem).lower() for w in words)
    )


def check_numbers(what: str, value: object) -> None:
    """Refuses whole numbers beyond ±2^63 and decimals that are not finite, however nested."""
    if isinstance(value, int) and abs(value) > 2**63:
        raise MaskwalkError(
            f"{what} holds {shown(value)}; whole numbers lie between -2^63 and 2^63."
        )
    if isinstance(value, complex) or (isinstance(value, float) and not abs(value) < LARGE):
        raise MaskwalkError(f"{what} holds {shown(value)}; decimals lie between ±{LARGE:g}.")
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    if isinstance(parts, list | tuple | set | frozenset):
        for part in parts:
            check_numbers(what, part)


# ---- a user's own code

_own_files: dict[str, str] = {}  # files (and folders of plug-ins) of users, and how they are named


def own_file(path: str | Path, called: str | None = None) -> None:
    """From now on frames of this file, or of files in this folder, are a user's own."""
    _own_files[str(Path(path).resolve())] = called or str(path)
    _called.cache_clear()


@lru_cache(maxsize=4096)
def _called(path: str) -> str | None:
    """What a user calls a file of theirs; None: it is not one of theirs."""
    place = Path(path).resolve()
    if str(place) in _own_files:
        return _own_files[str(place)]
    return str(place) if any(str(folder) in _own_files for folder in place.parents) else None


def _maker(thing: object) -> Any:
    return thing if inspect.isroutine(thing) or inspect.isclass(thing) else type(thing)


def own_source(thing: object) -> str | None:
    """The user's file that the class or function of a thing comes from; None: not a user's."""
    file = getattr(sys.modules.get(_maker(thing).__module__), "__file__", None)
    return _called(file) if file else None


def misbehaved(thing: object, did: str) -> UserCodeError:
    """The error for code that gave back, or did, what it must not."""
    name, file = getattr(_maker(thing), "__qualname__", "It"), own_source(thing)
    return UserCodeError(f"{name} in {file} {did}" if file else f"{name} {did}")


def lacking(thing: object, protocol: Any) -> list[str]:
    """What a protocol asks for and a thing does not have."""
    if not getattr(protocol, "_is_protocol", False):
        return []
    asked = {*vars(protocol), *getattr(protocol, "__annotations__", ())}
    return sorted(name for name in asked if name[0] != "_" and not hasattr(thing, name))


def check_made(kind: str, wanted: Any, maker: object, made: object) -> None:
    """What a user's class or function makes is of its table's kind, or a sentence."""
    if wanted is None or isinstance(made, wanted):
        return
    lacks = ", ".join(lacking(made, wanted)) if made is not None else ""
    more = f"; it has no {lacks}" if lacks else ""
    raise misbehaved(maker, f"makes {shown(made)}, which is no {kind}{more}.")


@contextmanager
def user_code(where: str = "") -> Iterator[None]:
    """Whatever a user's own file raises inside, `sys.exit` included, becomes a `UserCodeError`."""
    try:
        yield
    except (MaskwalkError, *STOPS):
        raise
    except BaseException as problem:
        told = told_of(problem, where)
        if told is None or memory_ran_out(problem):
            raise
        raise told from problem


def told_of(problem: BaseException, where: str = "") -> UserCodeError | None:
    """The sentence and the user's frames, if one of their files is in the traceback."""
    frames = list(_own_frames(problem.__traceback__))
    if not frames:
        return None
    *_, (path, _, _, context) = frames
    text = " ".join(str(problem).split()) if not isinstance(problem, SystemExit) else ""
    what = "called sys.exit" if isinstance(problem, SystemExit) else "failed"
    said = f"{type(problem).__name__}{': ' if text else ''}{text[:400]}"
    ending = "" if isinstance(problem, SystemExit) else f" with {said}"
    place = f" {where}" if where else ""
    sentence = f"{context} in {path} {what}{place}{ending.rstrip('.')}."
    return UserCodeError("\n".join([sentence, "", *_shown_frames(frames), said]))


def _own_frames(trace: TracebackType | None) -> Iterator[tuple[str, int, str, str]]:
    """(file, line, function, class and function) of the frames in files of users."""
    while trace is not None:
        code = trace.tb_frame.f_code
        path = _called(code.co_filename)
        if path is not None:
            owner = trace.tb_frame.f_locals.get("self")
            named = code.co_name if owner is None else f"{type(owner).__name__}.{code.co_name}"
            yield path, trace.tb_lineno, code.co_name, named.replace("<module>", "the module")
        trace = trace.tb_next


def _shown_frames(frames: list[tuple[str, int, str, str]]) -> Iterator[str]:
    yield "Traceback (your own lines, most recent last):"
    some = frames if len(frames) <= FRAMES else [frames[0], *frames[1 - FRAMES :]]
    for path, number, function, _ in some:
        yield f'  File "{path}", line {number}, in {function}'
        line = linecache.getline(path, number).strip()
        if line:
            yield f"    {line}"
