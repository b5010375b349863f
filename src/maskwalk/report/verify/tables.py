"""Tables of Markdown, and blocks of text, as rows with numbers in them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from maskwalk.errors import MaskwalkError, unknown
from maskwalk.report.verify.printed import Truth, numbers

RULE = re.compile(r"^\|[\s:|-]+\|?\s*$")


@dataclass(frozen=True)
class Row:
    """A line of a table: where each of its cells begins and ends in the text."""

    start: int
    end: int
    cells: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Block:
    """A table, or the lines of a fenced block; a table has a head."""

    head: tuple[str, ...]
    rows: tuple[Row, ...]


def plain(text: str) -> str:
    """Words without the marks of Markdown."""
    words = re.sub(r"<!--.*?-->", " ", text, flags=re.S).replace("\\|", "|")
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words)
    return " ".join(re.sub(r"[*`]", "", words).split())


def block_at(text: str, start: int) -> Block | None:
    """The table or fenced block that begins on the next line that is not empty."""
    lines = list(_lines(text, start))
    lines = lines[next((i for i, (a, b) in enumerate(lines) if text[a:b].strip()), 0) :]
    if not lines:
        return None
    first = text[slice(*lines[0])]
    if first.startswith("```"):
        return _fence(text, lines)
    return _table(text, lines) if first.startswith("|") else None


def _lines(text: str, start: int) -> list[tuple[int, int]]:
    found = []
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        found.append((start, end))
        start = end + 1
    return found


def _fence(text: str, lines: list[tuple[int, int]]) -> Block:
    rows = []
    for start, end in lines[1:]:
        if text.startswith("```", start):
            break
        if any(not number.whole for number in numbers(text, start, end)):
            rows.append(Row(start, end, ((start, end),)))
    return Block((), tuple(rows))


def _table(text: str, lines: list[tuple[int, int]]) -> Block:
    rows: list[Row] = []
    for start, end in lines:
        if not text.startswith("|", start):
            break
        if not RULE.match(text[start:end]):
            rows.append(Row(start, end, _cells(text, start, end)))
    head = tuple(plain(text[a:b]) for a, b in rows[0].cells)
    return Block(head, tuple(rows[1:]))


def _cells(text: str, start: int, end: int) -> tuple[tuple[int, int], ...]:
    bars = [m.start() for m in re.finditer(r"(?<!\\)\|", text[start:end])]
    bars = [*bars, end - start] if not text[start:end].rstrip().endswith("|") else bars
    return tuple((start + a + 1, start + b) for a, b in pairwise(bars))


def look_up(text: str, asked: Mapping[str, str]) -> Truth:
    """The number in the row and column of a Markdown text that begin with the words asked for."""
    row, column, turn = asked["row"], asked.get("column", ""), int(asked.get("number", "1"))
    cells = set(_found(text, row, column, asked.get("head", "")))
    if len(cells) != 1:
        raise MaskwalkError(
            f"{len(cells)} cells have a row that begins with {row!r} and a column {column!r}; "
            "one must (head=… names a word of the table's head)."
        )
    inside = numbers(cells.pop())
    if turn > len(inside):
        raise unknown("number in that cell", str(turn), [str(number) for number in inside])
    number = inside[turn - 1]
    return Truth(number.value, None if number.half is None else float(number.half), number.bound)


def _found(text: str, row: str, column: str, head: str) -> list[str]:
    cells = []
    for block in _tables(text):
        names = [i for i, name in enumerate(block.head) if column in (name, f"#{i + 1}")]
        if not names or not any(head in name for name in block.head):
            continue
        for line in block.rows:
            inside = [plain(text[a:b]) for a, b in line.cells]
            if " | ".join(inside).startswith(row):
                cells += [inside[i] for i in names if i < len(inside)]
    return cells


def _tables(text: str) -> list[Block]:
    starts = [m.start() for m in re.finditer(r"(?<!\|\n)^\|", text, re.M)]
    return [block for start in starts if (block := block_at(text, start))]
