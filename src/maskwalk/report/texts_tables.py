"""The table of a report of texts: settings × metrics, each number with its 95 % interval and n.

Held-out text and AR models come first, then the policies; best and second best of these are marked
where a metric has a direction and no number is only a bound, at the digits a reader sees. A number
whose record has no standard error says so with a dash.
"""

from collections import Counter
from dataclasses import dataclass

from maskwalk.report.study import Estimate, finite
from maskwalk.report.tables import all_numbers, as_csv, as_markdown, tabular, tex
from maskwalk.report.texts import CALLS, REPLAY, Metric, TextStudy, at_most, half_width

NONE = "–"


@dataclass(frozen=True)
class TextCell:
    """A number of the table; `n` is said where it is not that of the column."""

    metric: Metric
    held: Estimate | None = None
    mark: str = ""
    n: int | None = None

    @property
    def value(self) -> float | None:
        """The number alone, for sorting."""
        return None if self.held is None else self.held.value

    @property
    def number(self) -> str:
        """ "0.932", "≤ 1.616", or a dash where there is nothing."""
        if self.held is None:
            return NONE
        return "≤ " * at_most(self.metric, self.held) + shown(self.metric, self.held.value)

    @property
    def error(self) -> str:
        """ "0.021", a dash where the record has none, nothing where calls are certain."""
        if self.held is None or (self.metric is CALLS and self.held.se == 0):
            return ""
        half = half_width(self.held)
        return NONE if half is None else f"{half:.{self.metric.digits}f}"

    @property
    def text(self) -> str:
        """ "0.932 ± 0.021 (n = 256)"; n only where it is not the column's."""
        error = f" ± {self.error}" if self.error else ""
        return self.number + error + ("" if self.n is None else f" (n = {self.n:,})")


@dataclass(frozen=True)
class TextRow:
    """A setting, or held-out text where `setting` is None."""

    setting: int | None
    label: str
    calls: TextCell
    cells: list[TextCell]


@dataclass(frozen=True)
class TextTable:
    """Settings × metrics of one mode; `ns` is the n of most numbers of a column, calls first."""

    mode: int
    mode_label: str
    metrics: list[Metric]
    ns: list[int | None]
    rows: list[TextRow]

    @property
    def caption(self) -> str:
        """What the table holds, in a line."""
        return f"number ± half of its 95 % interval ({self.mode_label})"

    @property
    def heads(self) -> list[tuple[str, str]]:
        """(name, n) of every column after the first."""
        names = [metric.name for metric in (CALLS, *self.metrics)]
        return [(name, "" if n is None else f"n = {n:,}") for name, n in zip(names, self.ns)]

    @property
    def stem(self) -> str:
        """A file name."""
        words = f"texts {self.mode_label}".lower()
        return "-".join("".join(c if c.isalnum() else " " for c in words).split())


def shown(metric: Metric, value: float) -> str:
    """The number with the digits of its metric; calls without a needless ".0"."""
    text = f"{value:.{metric.digits}f}"
    return text.removesuffix(".0") if metric is CALLS else text


def text_tables(study: TextStudy) -> list[TextTable]:
    """One table a mode."""
    return [_table(study, mode) for mode in range(len(study.modes))]


def _table(study: TextStudy, mode: int) -> TextTable:
    settings = study.settings(mode)
    order: list[int | None] = [None] if mode in study.held else []
    order += [s for s in settings if s in study.causal]
    order += [s for s in settings if s not in study.causal]
    metrics = [m for m in study.metrics if any(study.estimate(mode, s, m.key) for s in order)]
    columns = [
        _column(metric, [(s, study.estimate(mode, s, metric.key)) for s in order], study.causal)
        for metric in (CALLS, *metrics)
    ]
    rows = [
        TextRow(s, study.label(s), columns[0][1][i], [cells[i] for _, cells in columns[1:]])
        for i, s in enumerate(order)
    ]
    return TextTable(mode, study.modes[mode], metrics, [n for n, _ in columns], rows)


def _column(
    metric: Metric, held: list[tuple[int | None, Estimate | None]], causal: set[int]
) -> tuple[int | None, list[TextCell]]:
    """The n of most of a column's numbers, and its cells."""
    counts = Counter(e.n for _, e in held if e and e.n is not None)
    usual = counts.most_common(1)[0][0] if counts else None
    apart = {None, *causal}  # not policies
    seen = [None if e is None or s in apart else round(e.value, metric.digits) for s, e in held]
    order = sorted({v for v in seen if v is not None}, reverse=metric.better > 0)
    compared = metric.better and metric is not CALLS and len(order) > 1
    compared = compared and not any(e and at_most(metric, e) for _, e in held)
    places = dict(zip(order, ("best", "second"))) if compared else {}
    cells = [
        TextCell(metric, e, "" if v is None else places.get(v, ""), e.n if e.n != usual else None)
        if e
        else TextCell(metric)
        for (_, e), v in zip(held, seen)
    ]
    return usual, cells


def texts_csv(table: TextTable, study: TextStudy) -> str:
    """Wide CSV of a mode: for every metric the number, its standard error, and n."""
    rows = []
    for row in table.rows:
        record = (
            study.held[table.mode] if row.setting is None else study.cells[table.mode, row.setting]
        )
        line = {"setting": row.label, "sampler": record["sampler"], "model": record.get("model")}
        for cell in (row.calls, *row.cells):
            e, key = cell.held, cell.metric.key
            numbers = (e.value, e.se, e.n) if e else (None, None, None)
            line |= dict(zip((key, f"{key}_se", f"{key}_n"), numbers))
            if key == REPLAY:
                line["replay_bound"] = at_most(cell.metric, e) if e else None
        rows.append(line)
    return as_csv(rows)


def texts_long_csv(study: TextStudy) -> str:
    """Everything but the texts, one line a record."""
    rows = []
    keys = ("title", "model", "sampler", "preset", "ties", "length", "count", "seed")
    held = [(mode, record) for mode, record in study.held.items()]
    for mode, record in [*held, *((mode, r) for (mode, _), r in study.cells.items())]:
        row = {"mode": study.modes[mode]} | {key: record.get(key) for key in keys}
        row["seconds"] = finite(record.get("seconds"))
        rows.append(row | all_numbers(record))
    return as_csv(rows)


def texts_markdown(table: TextTable) -> str:
    """A Markdown table: best bold, second best in italics."""
    wrap = {"best": "**{}**", "second": "*{}*", "": "{}"}
    head = ["setting", *(f"{name} ({n})" if n else name for name, n in table.heads)]
    body = [
        [row.label, row.calls.text, *(wrap[c.mark].format(c.text) for c in row.cells)]
        for row in table.rows
    ]
    return f"**{table.caption}**\n\n" + as_markdown([head, *body])


def texts_latex(table: TextTable) -> str:
    """A LaTeX tabular for booktabs: best bold, second best underlined."""
    wrap = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}", "": "{}"}
    head = ["setting", *(f"{name} ({n})" if n else name for name, n in table.heads)]
    body = [
        [
            tex(row.label),
            tex(row.calls.text),
            *(wrap[c.mark].format(tex(c.text)) for c in row.cells),
        ]
        for row in table.rows
    ]
    return f"% {table.caption}\n" + tabular([[tex(word) for word in head], *body])
