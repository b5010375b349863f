"""What stands in a comment: a source, what to take from it, and which numbers that is.

SOURCE [word …] [name=value …] [; name=value … ; …], and before a table lines `row:`, `columns:`.
Values that hold spaces are quoted ("…"); brackets hold together what is in them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from maskwalk.errors import MaskwalkError

FLAGS = ("whole", "part")
CLOSING = {'"': '"', "`": "`", "(": ")", "[": "]"}
SKIP = "-"


@dataclass(frozen=True)
class Entry:
    """One part of a comment; several values of a name stand for as many numbers."""

    source: str = ""
    words: tuple[str, ...] = ()
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quotes: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    skip: bool = False

    def also(self, other: "Entry") -> "Entry":
        """This entry with what another adds or says otherwise."""
        return Entry(
            other.source or self.source,
            other.words if other.source else self.words,
            {**({} if other.source else self.named), **other.named},
            other.quotes,
            self.flags | other.flags,
            other.skip,
        )

    def filled(self, texts: Mapping[str, str]) -> "Entry":
        """With {1}, {2}, {head} replaced by what stands in the table."""
        named = {k: tuple(_fill(v, texts) for v in values) for k, values in self.named.items()}
        return replace(self, named=named)

    def each(self) -> list[dict[str, str]]:
        """Every combination of the values, the last name's running fastest."""
        return [dict(zip(self.named, values)) for values in product(*self.named.values())]


def _fill(value: str, texts: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda m: texts.get(m[1], m[0]), value)


@dataclass(frozen=True)
class Comment:
    """All of a comment: its head, and the lines for the rows and columns of a table."""

    entries: tuple[Entry, ...]
    rows: tuple[tuple[Entry, ...], ...] = ()
    columns: tuple[Entry, ...] = ()

    @property
    def head(self) -> Entry:
        """What all its numbers share."""
        return self.entries[0]

    @property
    def own(self) -> tuple[Entry, ...]:
        """The parts that tie a number each: the first one too, if it shares nothing."""
        rest = self.entries[1:]
        return rest if any(not entry.source for entry in rest) else self.entries


def body_of(text: str, start: int) -> str:
    """What stands from there to the end of the comment; one that is never closed ties nothing."""
    body, end, _ = text[start:].partition("-->")
    if not end or "<!--" in body:
        raise MaskwalkError("This comment is not closed: put --> behind it.")
    return body


def read_comment(body: str) -> Comment:
    """The parts of a comment's text."""
    head, *lines = re.split(r"^[ \t]*(?=row:|columns:)", body, flags=re.M)
    rows: list[tuple[Entry, ...]] = []
    columns: tuple[Entry, ...] = ()
    for line in lines:
        kind, _, text = line.partition(":")
        if kind == "row":
            rows.append(_entries(text))
        else:
            columns = _entries(text)
    first, *rest = _entries(head)
    return Comment((first, *rest), tuple(rows), columns)


def _entries(text: str) -> tuple[Entry, ...]:
    return tuple(_entry(part) for part in split(text, ";"))


def _entry(text: str) -> Entry:
    words = [word for word in split(text) if word]
    if words == [SKIP]:
        return Entry(skip=True)
    plain = [w for w in words if not w.startswith('"') and not _named(w) and w not in FLAGS]
    return Entry(
        plain[0].strip("`") if plain else "",
        tuple(plain[1:]),
        dict(_pair(w) for w in words if _named(w)),
        tuple(w.strip('"') for w in words if w.startswith('"')),
        frozenset(w for w in words if w in FLAGS),
    )


def _named(word: str) -> bool:
    return re.match(r"[a-z_]+=", word) is not None


def _pair(word: str) -> tuple[str, tuple[str, ...]]:
    name, _, value = word.partition("=")
    return name, tuple(part.strip('"') for part in split(value, ","))


def split(text: str, at: str | None = None) -> list[str]:
    """The parts of a text between spaces, or another separator, outside quotes and brackets."""
    parts, depth = [""], [""]
    for character in text:
        if character == depth[-1]:
            depth.pop()
        elif character in CLOSING and depth[-1] not in ('"', "`"):
            depth.append(CLOSING[character])
        divides = character.isspace() if at is None else character == at
        if divides and len(depth) == 1:
            parts.append("")
        else:
            parts[-1] += character
    if len(depth) > 1:
        raise MaskwalkError(f"{depth[-1]!r} is missing at the end of {text.strip()[:60]!r}.")
    return [part.strip() for part in parts if part.strip()] or [""]
