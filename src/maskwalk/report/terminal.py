"""The tables in the terminal: samplers × graphs in 80 columns.

Standard errors are shown where they fit; otherwise the caption gives the largest. Long graph titles
that do not fit over their columns become letters with a key below.
"""

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from maskwalk.report.study import Record, arrange
from maskwalk.report.tables import Cell, Table, tables

WIDTH = 80
STYLE = {"best": "bold", "second": "underline", "": ""}


def terminal_table(records: list[Record]) -> RenderableType:
    """The coherence tables of the records, each at most 80 columns wide."""
    shown = [t for t in tables(arrange(records)) if t.metric == "coherence"]
    if not shown:
        return Text("The records hold no coherence.")
    return Group(*(part for table in shown for part in _parts(table)))


def _parts(table: Table) -> list[RenderableType]:
    """One table, or several where even bare numbers of all graphs do not fit."""
    name = max(len("sampler"), *(len(r.label) for r in table.rows))
    name = min(name, 34)
    calls = max(len("calls"), *(len(r.calls) for r in table.rows))
    room = WIDTH - name - calls - 4  # two spaces between columns
    full = max(len(_cell(c, True)) for r in table.rows for c in r.cells)
    errors = len(table.columns) * (full + 2) <= room + 2
    width = full if errors else 5
    each = max(1, (room + 2) // (width + 2))
    starts = range(0, len(table.columns), each)
    return [_part(table, slice(i, i + each), errors, room, name) for i in starts]


def _part(table: Table, part: slice, errors: bool, room: int, name: int) -> RenderableType:
    columns = table.columns[part]
    width = room // len(columns) - 2
    fits = all(len(word) <= width for title in columns for word in title.split())
    letters = [chr(ord("A") + i) for i in range(len(table.columns))][part]
    heads = columns if fits else letters
    key = "" if fits else "; ".join(f"{a} = {b}" for a, b in zip(letters, columns))
    grid = RichTable(
        title=f"{table.task} · {table.mode_label}",
        caption=_caption(table, part, errors, key),
        title_justify="left",
        caption_justify="left",
        title_style="bold",
        caption_style="dim",
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
        min_width=60,
    )
    grid.add_column("sampler", max_width=name, no_wrap=True, overflow="ellipsis")
    grid.add_column("calls", justify="right", no_wrap=True)
    for head in heads:
        grid.add_column(Text(head), justify="right", vertical="bottom", max_width=max(width, 5))
    for row in table.rows:
        cells = [Text(_cell(c, errors), STYLE[c.mark]) for c in row.cells[part]]
        grid.add_row(Text(row.label), row.calls, *cells)
    return Group(grid, Text())


def _cell(cell: Cell, errors: bool) -> str:
    if cell.value is None:
        return "–"
    error = f"±{cell.se:.3f}".replace("0.", ".") if errors and cell.se is not None else ""
    return f"{cell.value:.3f}{error}"


def _caption(table: Table, part: slice, errors: bool, key: str) -> str:
    said = ["coherence ± standard error" if errors else "coherence"]
    largest = max((c.se or 0 for r in table.rows for c in r.cells[part]), default=0.0)
    if not errors:
        said.append(f"standard errors at most {largest:.3f}")
    said.append("best bold, second underlined")
    return "; ".join(said) + ("." if not key else f".\n{key}")
