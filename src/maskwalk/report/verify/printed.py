"""Numbers as a document prints them: where they stand, to how many digits, with which ±."""

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

NUMBER = re.compile(
    r"(?P<bound>≤\s*)?(?<![\w.,^⁻])(?<!\w-)(?P<sign>[-+−])?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?![\d,])|\d*\.\d+|\d+)(?![\w^⁰¹²³⁴-⁹⁻]|[.,]\d)"
    r"(?:\s*±\s*(?P<half>\d*\.?\d+))?"
)


@dataclass(frozen=True)
class Printed:
    """One number of a text: from where to where, its words, and half of its interval."""

    start: int
    end: int
    text: str
    half: str | None
    bound: bool

    @property
    def whole(self) -> bool:
        """Whether it has no decimal point."""
        return "." not in self.text

    @property
    def value(self) -> float:
        """The number itself."""
        return float(self.text.replace(",", ""))

    @property
    def measured(self) -> bool:
        """Whether it looks like a measurement: an interval, or three digits behind the point."""
        return self.half is not None or len(self.text.partition(".")[2]) >= 3

    def __str__(self) -> str:
        return (
            "≤ " * self.bound
            + _short(self.text)
            + (f" ± {_short(self.half or '')}" if self.half else "")
        )


@dataclass(frozen=True)
class Truth:
    """What a source says: a number, half of its interval, whether it is an upper bound."""

    value: float
    half: float | None = None
    bound: bool = False

    def at(self, printed: Printed) -> str:
        """The same number with the digits that were printed."""
        half = "" if printed.half is None else f" ± {_half(self.half, printed.half)}"
        return "≤ " * self.bound + _short(shown(self.value, _digits(printed.text))) + half


def numbers(text: str, start: int = 0, end: int | None = None) -> list[Printed]:
    """The numbers of a text, in order."""
    found = NUMBER.finditer(text, start, len(text) if end is None else end)
    return [_printed(match) for match in found]


def _printed(match: re.Match[str]) -> Printed:
    sign = "-" if match["sign"] in ("-", "−") else ""
    start = match.start("sign") if match["sign"] else match.start("digits")
    return Printed(start, match.end(), sign + match["digits"], match["half"], bool(match["bound"]))


def agrees(printed: Printed, truth: Truth) -> bool:
    """Whether a printed number is that of its source, at the printed digits."""
    if printed.half is not None and not _same(printed.half, truth.half):
        return False
    return _same(printed.text, truth.value) and printed.bound == truth.bound


def _same(text: str, value: float | None) -> bool:
    digits = _digits(text)
    ways = () if value is None else (shown(value, digits), half_up(value, digits))
    return _short(text.replace(",", "")) in {_short(way) for way in ways}


def shown(value: float, digits: int) -> str:
    """As the reports print it."""
    return f"{value:.{digits}f}"


def half_up(value: float, digits: int) -> str:
    """The same where a number that was printed once is rounded again: .325 is .33."""
    return str(Decimal(str(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def _half(value: float | None, like: str) -> str:
    return "–" if value is None else _short(shown(value, _digits(like)))


def _digits(text: str) -> int:
    return len(text.partition(".")[2])


def _short(text: str) -> str:
    """Without the zero before the point, and without a sign before a zero."""
    sign, rest = ("-", text[1:]) if text.startswith("-") else ("", text)
    if rest.startswith("0."):
        rest = rest[1:]
    return rest if not rest.strip("0.,") else sign + rest
