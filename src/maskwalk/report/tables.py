"""Records to tables: samplers × graphs, as CSV, Markdown, LaTeX and in the terminal.

One `Table` for every mode, task and metric; best and second best are marked in every column, at the
three decimals a reader sees, so equal numbers carry equal marks. Where records carry a published
value it stands beside ours, and the rows have the order of the paper's tables. A graph on which a
parameter of the samplers is swept has other rows than the rest, and so a table of its own.
`long_csv` holds everything, one line a record.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from maskwalk.report.series import swept
from maskwalk.report.study import Estimate, Published, Record, Study, estimate, published

METRICS = {"coherence": "coherence", "tv1": "transition TV"}  # what tables and figures show
LOWER_IS_BETTER = {"tv1"}
DIGITS = 3
FAR = 3.0  # combined standard errors beyond which ours and the paper's are called different
PAPER_ORDER = ("bisection", "guided_bisection", "entropy", "random", "confidence", "margin")


@dataclass(frozen=True)
class Cell:
    """One estimate of a table; mark is "best", "second" or ""."""

    value: float | None = None
    se: float | None = None
    mark: str = ""
    paper: Published | None = None

    @property
    def text(self) -> str:
        """ "0.932 ± 0.011", or a dash where there is nothing."""
        if self.value is None:
            return "–"
        error = "" if self.se is None else f" ± {self.se:.{DIGITS}f}"
        return f"{self.value:.{DIGITS}f}{error}"

    @property
    def beside(self) -> str:
        """The paper's value in parentheses, where there is one."""
        return "" if self.paper is None else f" ({self.paper.value:.{DIGITS}f})"

    @property
    def far(self) -> bool:
        """Whether ours and the paper's differ by more than three standard errors."""
        return bool(self.paper and self.paper.away is not None and abs(self.paper.away) > FAR)


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
    lone: str = ""  # the graph, where it has this table for itself

    @property
    def caption(self) -> str:
        """What the table holds, in a line."""
        beside = ", the paper's value in parentheses" if any(self.published) else ""
        return f"{METRICS[self.metric]} ± standard error{beside}, {self.about} ({self.mode_label})"

    @property
    def about(self) -> str:
        """The task, and the graph if it is the only one: "unconditional, distant-K"."""
        return f"{self.task}, {self.lone}" if self.lone else self.task

    @property
    def published(self) -> list[bool]:
        """For every column whether the paper has values for it."""
        return [any(row.cells[c].paper for row in self.rows) for c in range(len(self.columns))]

    @property
    def stem(self) -> str:
        """A file name."""
        words = f"{self.metric}-{self.about}-{self.mode_label}".lower()
        return "-".join("".join(c if c.isalnum() else " " for c in words).split())


def tables(study: Study) -> list[Table]:
    """Every table of the study: modes, then metrics, then tasks."""
    out, own = [], swept(study)
    for mode in range(len(study.modes)):
        for metric in METRICS:
            for task in study.tasks:
                panels = study.of_task(task)
                alone = [p for p in panels if p in own] if len(panels) > 1 else []
                for part in ([p for p in panels if p not in alone], *([p] for p in alone)):
                    table = _table(study, mode, task, metric, part)
                    if table.rows:
                        lone = study.panels[part[0]].title if part[0] in alone else ""
                        out.append(replace(table, lone=lone))
    return out


def _table(study: Study, mode: int, task: str, metric: str, part: list[int]) -> Table:
    panels = [
        p
        for p in part
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
        paper = [study.published(mode, p, s) if metric == "coherence" else None for p in panels]
        cells = [
            Cell(e.value, e.se, marks[c][s], paper[c]) if e else Cell(paper=paper[c])
            for c, e in enumerate(grid[s])
        ]
        known = [e.value for e in calls if e]
        mean = sum(known) / len(known) if known else None
        rows.append(Row(s, sampler.label, sampler.family, span(known), mean, cells))
    if any(c.paper for row in rows for c in row.cells):
        rows.sort(key=lambda row: _paper_place(row.family))  # stable: blocks keep their order
    floor = [_floor([row[c] for row in grid]) for c in range(len(panels))]
    titles = [study.panels[p].title for p in panels]
    return Table(
        mode, study.modes[mode], task, metric, titles, rows, floor if metric == "tv1" else None
    )


def _paper_place(family: str) -> int:
    return PAPER_ORDER.index(family) if family in PAPER_ORDER else len(PAPER_ORDER)


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
    rows = [[r.label, r.calls, *(c.text + c.beside for c in r.cells)] for r in table.rows]
    if table.floor:
        rows.append(["exact walks (floor)", "", *(c.text for c in table.floor)])
    return [head, *rows]


def to_csv(table: Table) -> str:
    """Wide CSV: a value and a standard error for every graph, and the paper's if it has any."""
    head = ["sampler", "calls"]
    for column, known in zip(table.columns, table.published):
        head += [column, f"{column} (se)"]
        head += [f"{column} (paper)", f"{column} (paper sd)"] if known else []

    def numbers(cells: list[Cell]) -> Iterator[float | None]:
        for cell, known in zip(cells, table.published):
            yield from (cell.value, cell.se)
            if known:
                yield from (cell.paper.value, cell.paper.sd) if cell.paper else (None, None)

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row in table.rows:
        writer.writerow([row.label, row.calls, *numbers(row.cells)])
    if table.floor:
        writer.writerow(["floor", "", *numbers(table.floor)])
    return text.getvalue()


def to_markdown(table: Table) -> str:
    """A Markdown table: best bold, second best in italics."""
    wrap = {"best": "**{}**", "second": "*{}*", "": "{}"}
    head, *body = _sheet(table)
    for row, source in zip(body, table.rows):
        row[2:] = [wrap[c.mark].format(c.text) + c.beside for c in source.cells]
    return f"**{table.caption}**\n\n" + as_markdown([head, *body])


def as_markdown(lines: list[list[str]]) -> str:
    """Lines of text as a Markdown table; the first is the head, the first column is words."""
    head, *body = lines
    ruled = [head, ["---", *("---:" for _ in head[1:])], *body]
    return "".join("| " + " | ".join(x.replace("|", "\\|") for x in row) + " |\n" for row in ruled)


def to_latex(table: Table) -> str:
    """A LaTeX tabular for booktabs: best bold, second best underlined."""
    wrap = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}", "": "{}"}
    head, *body = [[tex(x) for x in line] for line in _sheet(table)]
    for row, source in zip(body, table.rows):
        row[2:] = [wrap[c.mark].format(tex(c.text)) + c.beside for c in source.cells]
    last = 1 if table.floor else 0
    return rf"% {table.caption}" + "\n" + tabular([head, *body], last)


def as_latex(lines: list[list[str]]) -> str:
    """Lines of text as a LaTeX tabular; the first is the head, the first column is words."""
    return tabular([[tex(x) for x in line] for line in lines])


def tabular(lines: list[list[str]], apart: int = 0) -> str:
    """Lines of LaTeX as a tabular; the `apart` last ones stand below a rule."""
    head, *body = [" & ".join(line) + r" \\" for line in lines]
    if apart:
        body.insert(len(body) - apart, r"\midrule")
    start = rf"\begin{{tabular}}{{l{'r' * (len(lines[0]) - 1)}}}"
    rows = [start, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join(rows)


def tex(text: str) -> str:
    """Text as LaTeX: what is special to it is escaped."""
    special = {
        "\\": r"\textbackslash{}",
        "±": r"$\pm$",
        "×": r"$\times$",
        "–": "--",
        "·": r"$\cdot$",
        "≤": r"$\leq$",
        "∞": r"$\infty$",
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
        paper = published(record)
        row |= {"published": paper.value, "published_sd": paper.sd} if paper else {}
        rows.append(row | all_numbers(record))
    return as_csv(rows)


def as_csv(rows: list[dict[str, Any]]) -> str:
    """Rows as CSV; the columns are all their keys, and what a row lacks is empty."""
    head = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, head, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def all_numbers(record: Record) -> dict[str, Any]:
    """Every number of every metric of a record, by column of the long table."""
    out: dict[str, Any] = {}
    for metric in record["metrics"]:
        held = estimate(record, metric)
        if held:
            out |= {metric: held.value, f"{metric}_se": held.se, f"{metric}_n": held.n}
            out |= {f"{metric}_{key}": value for key, value in held.more.items()}
    return out
