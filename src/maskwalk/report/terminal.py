"""The tables in the terminal: samplers × graphs, or settings × metrics of texts, in 80 columns.

Standard errors are shown where they fit; otherwise the caption gives the largest. Long graph titles
that do not fit over their columns become letters with a key below.
"""

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from maskwalk.report.study import Record, arrange
from maskwalk.report.summary import plural
from maskwalk.report.tables import Cell, Table, tables
from maskwalk.report.texts import arrange_texts, half_width
from maskwalk.report.texts_tables import TextCell, TextTable, text_tables

WIDTH = 80
TEXT_METRICS = {  # the most important ones, with heads that fit
    "mauve": "MAUVE",
    "judge_bpb": "judge\nbpb",
    "own_bpb": "own\nbpb",
    "entropy": "entropy",
    "rep1": "rep1",
    "replay_bpb": "replay\nbpb",
}
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
    grid = _grid(f"{table.task} · {table.mode_label}", _caption(table, part, errors, key))
    grid.add_column("sampler", max_width=name, no_wrap=True, overflow="ellipsis")
    grid.add_column("calls", justify="right", no_wrap=True)
    for head in heads:
        grid.add_column(Text(head), justify="right", vertical="bottom", max_width=max(width, 5))
    for row in table.rows:
        cells = [Text(_cell(c, errors), STYLE[c.mark]) for c in row.cells[part]]
        grid.add_row(Text(row.label), row.calls, *cells)
    return Group(grid, Text())


def _grid(title: str, caption: str) -> RichTable:
    return RichTable(
        title=title,
        caption=caption,
        title_justify="left",
        caption_justify="left",
        title_style="bold",
        caption_style="dim",
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
        min_width=60,
    )


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


def text_table(records: list[Record]) -> RenderableType:
    """The tables of records of texts, one a mode: the most important metrics in 80 columns."""
    shown = text_tables(arrange_texts(records))
    return Group(*(part for table in shown for part in (_text_grid(table), Text())))


def _text_grid(table: TextTable) -> RichTable:
    keys = [metric.key for metric in table.metrics]
    columns = [keys.index(key) for key in TEXT_METRICS if key in keys]
    mixed = {c for c in columns if any(row.cells[c].n is not None for row in table.rows)}
    heads = []
    for c in columns:
        n = None if c in mixed else table.ns[c + 1]
        heads.append("\n".join([TEXT_METRICS[keys[c]], *([] if n is None else [f"n={n}"])]))
    calls = max(len("calls"), *(len(row.calls.number) for row in table.rows))
    name = max(len("setting"), *(len(row.label) for row in table.rows))

    def taken(errors: bool) -> int:
        shown = [[_text_cell(row.cells[c], errors) for row in table.rows] for c in columns]
        wide = [max(map(len, (*h.split("\n"), *cells))) for h, cells in zip(heads, shown)]
        return calls + sum(wide) + 2 * (len(columns) + 1)

    errors = name + taken(True) <= WIDTH
    grid = _grid(table.mode_label, _text_caption(table, columns, errors, bool(mixed)))
    room = WIDTH - taken(errors)
    grid.add_column("setting", max_width=room, no_wrap=True, overflow="ellipsis", vertical="bottom")
    grid.add_column("calls", justify="right", no_wrap=True, vertical="bottom")
    for head in heads:
        grid.add_column(Text(head), justify="right", no_wrap=True, vertical="bottom")
    for row in table.rows:
        cells = [Text(_text_cell(row.cells[c], errors), STYLE[row.cells[c].mark]) for c in columns]
        grid.add_row(Text(row.label), row.calls.number, *cells)
    return grid


def _text_cell(cell: TextCell, errors: bool) -> str:
    error = f"±{cell.error}".replace("0.", ".") if errors and cell.error else ""
    return f"{cell.number}{error}".replace("≤ ", "≤")


def _text_caption(table: TextTable, columns: list[int], errors: bool, mixed: bool) -> str:
    said = ["± half of a 95 % interval"] if errors else []
    held = [row.cells[c].held for row in table.rows for c in columns]
    widths = [half_width(e) for e in held if e]
    known = [width for width in widths if width is not None]
    if not errors and known:
        said.append(f"half of a 95 % interval is at most {max(known):.3f}")
    if len(known) < len(widths):
        said.append(f"{plural(len(widths) - len(known), 'number')} without")
    ns = sorted({e.n for e in held if e and e.n is not None})
    if mixed:
        said.append(f"n from {ns[0]} to {ns[-1]}")
    if any(row.cells[c].mark for row in table.rows for c in columns):
        said.append("best policy bold, second underlined")
    if any("≤" in row.cells[c].number for row in table.rows for c in columns):
        said.append("≤ an upper bound")
    return "; ".join(said) + "."
