"""Records to tables: samplers × graphs, as CSV, Markdown, LaTeX and in the terminal.

One `Table` for every mode, task and metric; best and second best are marked in every column, at the
three decimals a reader sees, so equal numbers carry equal marks. `long_csv` holds everything, one
line a record.
"""

import csv
import io
from dataclasses import dataclass
from typing import Any

from maskwalk.report.study import Estimate, Record, Study, estimate

METRICS = {"coherence": "coherence", "tv1": "transition TV"}  # what tables and figures show
LOWER_IS_BETTER = {"tv1"}
DIGITS = 3


@dataclass(frozen=True)
class Cell:
    """One estimate of a table; mark is "best", "second" or ""."""

    value: float | None = None
    se: float | None = None
    mark: str = ""

    @property
    def text(self) -> str:
        """ "0.932 ± 0.011", or a dash where there is nothing."""
        if self.value is None:
            return "–"
        error = "" if self.se is None else f" ± {self.se:.{DIGITS}f}"
        return f"{self.value:.{DIGITS}f}{error}"


@dataclass(frozen=True)
class Row:
    """One sampler: its calls over the graphs of the table, and a cell for each."""

    sampler: int
    label: str
    family: str
    calls: str
    calls_value: float | None
    cells: list[Cell]


@dataclass(frozen=True)
class Table:
    """Samplers × graphs of one mode, task and metric."""

    mode: int
    mode_label: str
    task: str
    metric: str
    columns: list[str]
    rows: list[Row]
    floor: list[Cell] | None  # the value exact walks of the same number would have

    @property
    def caption(self) -> str:
        """What the table holds, in a line."""
        return f"{METRICS[self.metric]} ± standard error, {self.task} ({self.mode_label})"

    @property
    def stem(self) -> str:
        """A file name."""
        words = f"{self.metric}-{self.task}-{self.mode_label}".lower()
        return "-".join("".join(c if c.isalnum() else " " for c in words).split())


def tables(study: Study) -> list[Table]:
    """Every table of the study: modes, then metrics, then tasks."""
    out = []
    for mode in range(len(study.modes)):
        for metric in METRICS:
            for task in study.tasks:
                table = _table(study, mode, task, metric)
                if table.rows:
                    out.append(table)
    return out


def _table(study: Study, mode: int, task: str, metric: str) -> Table:
    panels = [
        p
        for p in study.of_task(task)
        if any(study.estimate(mode, p, s, metric) for s in range(len(study.samplers)))
    ]
    grid = [
        [study.estimate(mode, p, s, metric) for p in panels] for s in range(len(study.samplers))
    ]
    marks = [_marks([row[c] for row in grid], metric) for c in range(len(panels))]
    rows = []
    for s, sampler in enumerate(study.samplers):
        if not any(grid[s]):
            continue
        calls = [study.estimate(mode, p, s, "calls") for p in panels]
        cells = [Cell(e.value, e.se, marks[c][s]) if e else Cell() for c, e in enumerate(grid[s])]
        known = [e.value for e in calls if e]
        mean = sum(known) / len(known) if known else None
        rows.append(Row(s, sampler.label, sampler.family, span(known), mean, cells))
    floor = [_floor([row[c] for row in grid]) for c in range(len(panels))]
    titles = [study.panels[p].title for p in panels]
    return Table(
        mode, study.modes[mode], task, metric, titles, rows, floor if metric == "tv1" else None
    )


def _marks(column: list[Estimate | None], metric: str) -> list[str]:
    shown = [None if e is None else round(e.value, DIGITS) for e in column]
    ranked = sorted({v for v in shown if v is not None}, reverse=metric not in LOWER_IS_BETTER)
    names = dict(zip(ranked, ("best", "second"))) if len(ranked) > 1 else {}
    return ["" if v is None else names.get(v, "") for v in shown]


def _floor(column: list[Estimate | None]) -> Cell:
    """The floor of a column: it depends on the graph and the number of walks, on no sampler."""
    held = [e for e in column if e is not None and e.more.get("floor") is not None]
    return Cell(held[0].more["floor"], held[0].more.get("floor_se")) if held else Cell()


def span(values: list[float]) -> str:
    """ "5", or "6.1–6.4" where the graphs differ."""
    if not values:
        return "–"
    ends = list(dict.fromkeys(f"{v:.1f}".removesuffix(".0") for v in (min(values), max(values))))
    return "–".join(ends)


def _sheet(table: Table) -> list[list[str]]:
    head = ["sampler", "calls", *table.columns]
    rows = [[r.label, r.calls, *(c.text for c in r.cells)] for r in table.rows]
    if table.floor:
        rows.append(["exact walks (floor)", "", *(c.text for c in table.floor)])
    return [head, *rows]


def to_csv(table: Table) -> str:
    """Wide CSV: a value and a standard error for every graph."""
    head = ["sampler", "calls"]
    for column in table.columns:
        head += [column, f"{column} (se)"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row in table.rows:
        numbers = [v for c in row.cells for v in (c.value, c.se)]
        writer.writerow([row.label, row.calls, *numbers])
    if table.floor:
        writer.writerow(["floor", "", *(v for c in table.floor for v in (c.value, c.se))])
    return text.getvalue()


def to_markdown(table: Table) -> str:
    """A Markdown table: best bold, second best in italics."""
    wrap = {"best": "**{}**", "second": "*{}*", "": "{}"}
    head, *body = _sheet(table)
    for row, source in zip(body, table.rows):
        row[2:] = [wrap[c.mark].format(c.text) for c in source.cells]
    lines = [head, ["---", "---:", *("---:" for _ in table.columns)], *body]
    shown = ["| " + " | ".join(x.replace("|", "\\|") for x in line) + " |" for line in lines]
    return f"**{table.caption}**\n\n" + "\n".join(shown) + "\n"


def to_latex(table: Table) -> str:
    """A LaTeX tabular for booktabs: best bold, second best underlined."""
    wrap = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}", "": "{}"}
    head, *body = [[_tex(x) for x in line] for line in _sheet(table)]
    for row, source in zip(body, table.rows):
        row[2:] = [wrap[c.mark].format(_tex(c.text)) for c in source.cells]
    lines = [" & ".join(line) + r" \\" for line in body]
    if table.floor:
        lines.insert(len(lines) - 1, r"\midrule")
    return "\n".join(
        [
            rf"% {table.caption}",
            rf"\begin{{tabular}}{{lr{'r' * len(table.columns)}}}",
            r"\toprule",
            " & ".join(head) + r" \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _tex(text: str) -> str:
    special = {
        "\\": r"\textbackslash{}",
        "±": r"$\pm$",
        "×": r"$\times$",
        "–": "--",
        "·": r"$\cdot$",
    }
    special |= {c: "\\" + c for c in "&%$#_{}"} | {"~": r"\textasciitilde{}", "^": r"\^{}"}
    return "".join(special.get(c, c) for c in text)


def long_csv(study: Study) -> str:
    """Everything, one line a record: specs, and every number of every metric."""
    specs = ("graph", "graph_seed", "walk", "length", "denoiser", "preset", "count", "per_prompt")
    rows: list[dict[str, Any]] = []
    for (mode, panel, sampler), record in study.cells.items():
        row: dict[str, Any] = {
            "mode": study.modes[mode],
            "title": study.panels[panel].title,
            "task": study.panels[panel].task,
            "sampler": study.samplers[sampler].spec,
        }
        row |= {key: record.get(key) for key in (*specs, "seed", "seconds")}
        rows.append(row | _numbers(record))
    head = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, head, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _numbers(record: Record) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for metric in record["metrics"]:
        held = estimate(record, metric)
        if held:
            out |= {metric: held.value, f"{metric}_se": held.se, f"{metric}_n": held.n}
            out |= {f"{metric}_{key}": value for key, value in held.more.items()}
    return out
