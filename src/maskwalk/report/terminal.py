"""The tables of a study in the terminal, each at most 80 columns wide.

Halves of 95 % intervals are shown where they fit; otherwise the caption gives the largest. A table
that does not fit at all is split; long titles of worlds that do not fit over their columns become
letters with a key below.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from maskwalk.bench.records import Record
from maskwalk.decoding.kinds import MARK
from maskwalk.report.arrange import arrange
from maskwalk.report.estimates import INTERVAL
from maskwalk.report.study import Study
from maskwalk.report.tables import FLOOR, Cell, Row, Table, tables
from maskwalk.report.words import plural, span

WIDTH, GAP = 80, 2
LONGEST = 34  # of a sampler's name
STYLE = {"best": "bold", "": ""}


def terminal_table(records: Sequence[Record]) -> RenderableType:
    """Every table of the records: samplers × worlds for each metric, or samplers × metrics."""
    study = arrange(records)
    sheets = tables(study)
    if not sheets:
        return Text("The records hold no numbers.")
    return Group(*(part for table in sheets for part in _parts(study, table)))


@dataclass(frozen=True)
class Layout:
    """How a table is set: with intervals or without, under titles or letters, and the room."""

    name: int  # of the first column
    room: int  # of all columns after the cost
    errors: bool
    letters: bool

    def width(self, table: Table, column: int) -> int:
        """What a column needs."""
        cells = [row.cells[column] for row in table.rows]
        cells += (table.floor or [])[column : column + 1]
        heads = (
            ["A"] if self.letters else [*_words(table.columns[column].title), *_n(table, column)]
        )
        return max(map(len, [*(_cell(cell, self.errors) for cell in cells), *heads]))

    def fits(self, table: Table, columns: Sequence[int]) -> bool:
        """Whether these columns stand beside each other."""
        return sum(self.width(table, c) + GAP for c in columns) <= self.room


def _layout(study: Study, table: Table) -> Layout:
    """The richest that fits: intervals before titles, and titles of metrics always."""
    names = ["sampler", *(r.marked for r in table.rows), *([FLOOR] if table.floor else [])]
    name = min(max(map(len, names)), LONGEST)
    cost = max(len(study.cost.title), *(len(r.cost_span) for r in table.rows))
    brief = [False] if table.metric is None else [False, True]
    choices = [
        Layout(name, WIDTH - name - cost - GAP, errors, letters)
        for errors in (True, False)
        for letters in brief
    ]
    every = range(len(table.columns))
    return next((layout for layout in choices if layout.fits(table, every)), choices[-1])


def _parts(study: Study, table: Table) -> list[RenderableType]:
    """One table, or several where even bare numbers of all columns do not fit."""
    layout = _layout(study, table)
    chunks: list[list[int]] = [[]]
    for c in range(len(table.columns)):
        if chunks[-1] and not layout.fits(table, [*chunks[-1], c]):
            chunks.append([])
        chunks[-1].append(c)
    return [_part(study, table, chunk, layout) for chunk in chunks]


def _part(study: Study, table: Table, columns: list[int], layout: Layout) -> RenderableType:
    titles = [table.columns[c].title for c in columns]
    marks = [_letter(c) for c in columns]
    key = "; ".join(f"{a} = {b}" for a, b in zip(marks, titles)) if layout.letters else ""
    caption = _caption(table, columns, layout.errors, key)
    grid = _grid(f"{table.title} · {table.mode_label}", caption)
    grid.add_column("sampler", max_width=layout.name, no_wrap=True, overflow="ellipsis")
    grid.add_column(study.cost.title, justify="right", no_wrap=True)
    for c, title, mark in zip(columns, titles, marks):
        width = max(layout.width(table, c), layout.room // len(columns) - GAP)
        head = [mark] if layout.letters else [*_lines(_words(title), width), *_n(table, c)]
        grid.add_column(Text("\n".join(head)), justify="right", no_wrap=True)
    for column in grid.columns:
        column.vertical = "bottom"
    for row in table.rows:
        cells = [row.cells[c] for c in columns]
        texts = [Text(_cell(cell, layout.errors), STYLE[cell.mark]) for cell in cells]
        grid.add_row(_name(row, layout.name), row.cost_span, *texts)
    if table.floor:
        floors = [Text(_cell(table.floor[c], layout.errors), "dim") for c in columns]
        grid.add_row(Text(FLOOR, "dim"), "", *floors)
    return Group(grid, Text())


def _name(row: Row, width: int) -> Text:
    """A sampler's name; a long one is cut before its †."""
    name = Text(row.label)
    name.truncate(width - len(MARK) * row.shaped, overflow="ellipsis")
    return name.append(MARK * row.shaped)


def _words(title: str) -> list[str]:
    """The words of a heading, which may stand below each other; long ones break at a slash."""
    return re.sub(r"/(?=\w)", "/ ", title).split()


def _n(table: Table, column: int) -> list[str]:
    """ "n=512", where the columns differ in it."""
    n = table.heads[column][1].replace(" ", "")
    return [n] if n else []


def _lines(words: list[str], width: int) -> list[str]:
    """Words set in lines of a width."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= width and not lines[-1].endswith("/"):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _letter(column: int) -> str:
    """A, B, …, Z, AA, AB, …"""
    first = _letter(column // 26 - 1) if column >= 26 else ""
    return first + chr(ord("A") + column % 26)


def _grid(title: str, caption: str) -> RichTable:
    return RichTable(
        title=title,
        caption=caption,
        title_justify="left",
        caption_justify="left",
        title_style="bold",
        caption_style="dim",
        box=None,
        padding=(0, GAP, 0, 0),
        pad_edge=False,
        min_width=60,
    )


def _cell(cell: Cell, errors: bool) -> str:
    error = f"±{cell.error}".replace("±0.", "±.") if errors and cell.error else ""
    return f"{cell.number}{error}".replace("≤ ", "≤")


def _caption(table: Table, columns: list[int], errors: bool, key: str) -> str:
    cells = [row.cells[c] for row in table.rows for c in columns if row.cells[c].estimate]
    halves = [cell.estimate.half for cell in cells if cell.estimate]
    widths = [half for half in halves if half is not None]
    words = [INTERVAL] if errors and widths else []
    if not errors and widths:
        words.append(f"half of a 95 % interval is at most {max(widths):.3f}")
    if len(widths) < len(halves):
        words.append(f"{plural(len(halves) - len(widths), 'number')} without")
    counts = [cell.estimate.n for cell in cells if cell.estimate and cell.estimate.n is not None]
    if any(cell.n is not None for cell in cells):
        words.append(f"n {span([float(n) for n in counts]).replace('–', ' to ')}")
    elif table.n is not None:
        words.append(f"n = {table.n}")
    if any(cell.mark for cell in cells):
        words.append("bold: not clearly worse than the best")
    if any("≤" in cell.number for cell in cells):
        words.append("≤ an upper bound")
    if any(row.shaped for row in table.rows):
        words.append(f"{MARK} shaped, may follow another law")
    return "; ".join(words) + ("." if words else "") + (f"\n{key}" if key else "")
