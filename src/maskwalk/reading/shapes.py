"""Files that somebody may have edited: their shape is checked before anything is made of them.

A shape is a function of a value that raises `Wrong`; shapes are built from each other, and the file
of each kind of thing has one table of them (records, models, manifests, experiments). What is wrong
is said with its file, its line where a file has lines, its field (items count from 0), and what is
allowed there:

    Line 3 of runs/mine/records.jsonl is not a maskwalk record: metrics.coherence.value must be a
    number from 0 to 1, not 'high'.
"""

import json
import reprlib
from collections.abc import Callable, Mapping
from math import isnan
from pathlib import Path
from typing import Any

LONG = 1_000_000  # characters of a text, items of a list: nobody writes more by hand
HUGE = 1e100  # numbers: the square of one is still a number
WHOLE = 2**63 - 1
Shape = Callable[[Any], None]


class Wrong(Exception):
    """A value that is not what its field allows; containers add where it stands."""

    def __init__(self, allowed: str, given: Any = None, lacking: bool = False) -> None:
        self.allowed, self.given, self.lacking, self.path = allowed, given, lacking, ""

    def inside(self, part: str) -> "Wrong":
        """The same, one level further out."""
        self.path = part + ("" if self.path.startswith("[") or not self.path else ".") + self.path
        return self

    def told(self, place: str = "") -> str:
        """The field, what is allowed in it, and what stands there."""
        if self.lacking:
            return f"there is no {self.path}{place}, which must be {self.allowed}"
        return f"{self.path or 'it'}{place} must be {self.allowed}, not {shown(self.given)}"


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxlist, self.maxdict = 2, 4, 3
        self.maxstring = self.maxother = 60

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if x.bit_length() < 160 else f"a number of {x.bit_length():,} bits"


def shown(value: Any) -> str:
    """A value for a sentence, cut short."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _Short().repr(value).encode("ascii", "backslashreplace").decode()


def anything(value: Any) -> None:
    """No shape is asked for: nobody reads it."""


def text(least: int = 0, most: int = LONG) -> Shape:
    """A text of so many characters."""

    def check(value: Any) -> None:
        if type(value) is not str:
            raise Wrong("a text", value)
        if not least <= len(value) <= most:
            raise Wrong(f"a text of {least:,} to {most:,} characters", value)
        if not value.isascii():
            _characters(value)

    return check


def _characters(value: str) -> None:
    """Half of a character (a lone surrogate) cannot be written anywhere."""
    try:
        value.encode()
    except UnicodeError:
        raise Wrong("a text of whole characters", value) from None


def one_of(*names: str) -> Shape:
    """One of some words."""

    def check(value: Any) -> None:
        if value not in names:
            raise Wrong(f"one of {', '.join(names)}", value)

    return check


def file_name(value: Any) -> None:
    """The name of a file in the same directory."""
    if type(value) is not str or not value or Path(value).name != value or "\0" in value:
        raise Wrong("the name of a file in the same directory", value)


def flag(value: Any) -> None:
    """True or false; 0, 1 and "no" are neither."""
    if type(value) is not bool:
        raise Wrong("true or false", value)


def number(low: float = -HUGE, high: float = HUGE) -> Shape:
    """A finite number in [low, high]."""
    allowed = f"a number{_span(low, high, -HUGE, HUGE)}"

    def check(value: Any) -> None:
        # NaN is in no interval.
        if (type(value) is not float and type(value) is not int) or not low <= value <= high:
            raise Wrong(allowed, value)

    return check


def whole(low: int = -WHOLE, high: int = WHOLE) -> Shape:
    """A whole number from low to high."""
    allowed = f"a whole number{_span(low, high, -WHOLE, WHOLE)}"

    def check(value: Any) -> None:
        if type(value) is not int or not low <= value <= high:
            raise Wrong(allowed, value)

    return check


def _span(low: float, high: float, lowest: float, highest: float) -> str:
    names = [f"{x:,}" if isinstance(x, int) and abs(x) < 10**15 else f"{x:g}" for x in (low, high)]
    if low > lowest:
        return f" from {names[0]} to {names[1]}" if high < highest else f" at least {names[0]}"
    return f" of at most {names[1]}" if high < highest else f" of at most {highest:g} in size"


def maybe(shape: Shape) -> Shape:
    """The shape, or null."""

    def check(value: Any) -> None:
        if value is not None:
            shape(value)

    return check


def by_type(allowed: str, shapes: Mapping[type, Shape]) -> Shape:
    """One of several shapes, by the type of the value."""

    def check(value: Any) -> None:
        shape = shapes.get(type(value))
        if shape is None:
            raise Wrong(allowed, value)
        shape(value)

    return check


def row(what: str, *types: type, low: float = -HUGE, high: float = HUGE) -> Shape:
    """A list of plain values (numbers in [low, high]), checked as one: there are many of them."""
    allowed, known = f"a list of {what}", set(types)

    def check(value: Any) -> None:
        if type(value) is not list or len(value) > LONG or not set(map(type, value)) <= known:
            raise Wrong(allowed, value)
        if not value or bool in known:
            return
        if str in known:
            _characters("".join(value))
            return
        numbers = [x for x in value if x is not None] if type(None) in known else value
        if numbers and not _within(numbers, low, high, float in known):
            raise Wrong(f"{allowed}, each{_span(low, high, -HUGE, HUGE)}", value)

    return check


def _within(numbers: list[Any], low: float, high: float, floats: bool) -> bool:
    """Whether all are in [low, high]; the sum finds a NaN, which is neither least nor greatest."""
    if not (low <= min(numbers) and max(numbers) <= high):
        return False
    return not floats or not isnan(sum(numbers))


def listed(what: str, shape: Shape, most: int = LONG) -> Shape:
    """A list of at most so many things of one shape."""

    def check(value: Any) -> None:
        if type(value) is not list:
            raise Wrong(f"a list of {what}", value)
        if len(value) > most:
            raise Wrong(f"a list of at most {most:,} {what}", f"{len(value):,} of them")
        for place, item in enumerate(value):
            try:
                shape(item)
            except Wrong as wrong:
                raise wrong.inside(f"[{place}]") from None

    return check


def table(
    fields: Mapping[str, Shape],
    needs: tuple[str, ...] = (),
    others: Shape | None = anything,
    what: str = "a table of fields",
) -> Shape:
    """Named fields; `needs` must be there, and `others` is the shape of those not named."""
    known = dict(fields).get

    def unknown(name: str) -> Shape:
        _characters(name)
        if others is None:
            raise Wrong(f"left out (known are {', '.join(fields)})", name)
        return others

    def check(value: Any) -> None:
        if type(value) is not dict or len(value) > LONG:
            raise Wrong(what, value)
        for name in needs:
            if name not in value:
                raise _lacking(name, fields.get(name, anything))
        for name, item in value.items():
            try:
                (known(name) or unknown(name))(item)
            except Wrong as wrong:
                raise wrong.inside(name if len(name) < 80 else shown(name)) from None

    return check


def _lacking(name: str, shape: Shape) -> Wrong:
    try:
        shape(object())
    except Wrong as wrong:
        return Wrong(wrong.allowed, lacking=True).inside(name)
    return Wrong("there", lacking=True).inside(name)


# ---------------------------------------------------------------- bytes into values


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def json_value(data: bytes, halves: bool = False) -> Any:
    """What JSON says, or `Wrong`: no NaN, no nesting without end, no half characters.

    With `halves`, the last is left to the shapes, which see every text they are asked about.
    """
    try:
        words = data.decode("utf-8-sig") if data[:1] == b"\xef" else data.decode()
        value = _DECODER.decode(words)
        if not halves and (b"\\ud" in data or b"\\uD" in data):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise Wrong("JSON that is not nested so deeply", f"{len(data):,} bytes") from None
    except UnicodeError:
        raise Wrong("JSON in UTF-8", data[:40]) from None
    except ValueError as problem:
        raise Wrong(f"JSON ({str(problem)[:80]})", data[:40]) from None
    return value
