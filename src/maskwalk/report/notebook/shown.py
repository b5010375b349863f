"""What a cell of a notebook shows: text for a terminal, and the same as HTML."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from shutil import get_terminal_size
from textwrap import fill, wrap

NARROW = 24  # columns that words get at least, however wide the numbers beside them are
CELL = "padding:.25em .75em;vertical-align:top"
TABLE = '<table style="border-collapse:collapse">{}</table>'
LEFT = f"{CELL};text-align:left"
RIGHT = f"{CELL};text-align:right;white-space:nowrap"


@dataclass(frozen=True, repr=False)
class Shown:
    """Something to look at: its text, and the same as HTML."""

    text: str
    html: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


def columns() -> int:
    """How wide the terminal is; 80 in a notebook."""
    return get_terminal_size().columns


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    """Columns under their heads, numbers at the right; `left` says which begin at the left.

    Words in the last column go on below where the terminal ends.
    """
    lines = [list(head)] * any(head) + [list(row) for row in rows]
    if len(head) - 1 in left:
        lines = _folded(lines)
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    )


def _folded(lines: list[list[str]]) -> list[list[str]]:
    """The last column wrapped to what the others leave."""
    before = sum(max(map(len, column)) + 2 for column in list(zip(*lines))[:-1])
    room = max(columns() - before, NARROW)
    return [
        [*(row if turn == 0 else [""] * len(row)), words]
        for *row, last in lines
        for turn, words in enumerate(wrap(last, room) or [""])
    ]


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    """The same as a table of HTML; what stands in it is text."""

    def line(cells: Sequence[str], tag: str) -> str:
        parts = (
            f'<{tag} style="{LEFT if i in left else RIGHT}">{escape(cell)}</{tag}>'
            for i, cell in enumerate(cells)
        )
        return f"<tr>{''.join(parts)}</tr>"

    top = f"<thead>{line(head, 'th')}</thead>" if any(head) else ""
    body = "".join(line(row, "td") for row in rows)
    return TABLE.format(f"{top}<tbody>{body}</tbody>")


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int], note: str = ""
) -> Shown:
    """A table in both forms, with a note below."""
    text, html = text_table(head, rows, left), html_table(head, rows, left)
    if not note:
        return Shown(text, html)
    return Shown(f"{text}\n\n{fill(note, columns() - 1)}", f"{html}<p>{escape(note)}</p>")
