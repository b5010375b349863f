"""Records to tables: samplers × panels for each metric, or samplers × metrics of a single panel.

Each number stands with half of its 95 % interval. Where a metric has a direction and no number is
only a bound, all that are not clearly worse than the best of a column are marked: within the 95 %
interval of the difference, and nothing is better than exact sequences are. References, AR models
and shaped results (†, where there are others) are not marked. Where records carry a published value
it stands beside ours, and the rows have the order of the records. A panel on which a parameter of
the samplers is swept has other rows than the rest, and so a table of its own.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from maskwalk.decoding.kinds import KINDS, MARK, SHAPED
from maskwalk.report import estimates
from maskwalk.report.estimates import (
    INTERVAL,
    NONE,
    Estimate,
    Published,
    floor_of,
    settled_value,
    with_interval,
)
from maskwalk.report.series import swept
from maskwalk.report.study import Study
from maskwalk.report.words import file_stem, span
from maskwalk.stats import NORMAL, combined
from maskwalk.worlds.metrics import Metric

FLOOR = "exact sequences (floor)"


@dataclass(frozen=True)
class Column:
    """A metric in a panel; `n` is of how many sequences most of its numbers are."""

    title: str
    metric: Metric
    panel: int
    n: int | None = None


@dataclass(frozen=True)
class Cell:
    """A number of the table; mark is "best" or "". `n` is said where it is another."""

    metric: Metric
    estimate: Estimate | None = None
    mark: str = ""
    n: int | None = None
    paper: Published | None = None

    @property
    def value(self) -> float | None:
        """The number alone, for sorting."""
        return None if self.estimate is None else self.estimate.value

    @property
    def number(self) -> str:
        """ "0.932", "≤ 1.616", or a dash where there is nothing."""
        return estimates.bounded_number(self.metric, self.estimate) if self.estimate else NONE

    @property
    def error(self) -> str:
        """ "0.021", a dash where the record has none, nothing where there is no number."""
        return estimates.error(self.metric, self.estimate) if self.estimate else ""

    @property
    def text(self) -> str:
        """ "0.932 ± 0.021 (n = 256)"."""
        error = f" ± {self.error}" if self.error else ""
        return self.number + error + ("" if self.n is None else f" (n = {self.n:,})")

    @property
    def beside(self) -> str:
        """The paper's value in parentheses, where there is one."""
        if self.paper is None:
            return ""
        return f" ({estimates.number(self.metric, self.paper.value)})"


@dataclass(frozen=True)
class Row:
    """A sampler, or the reference where `sampler` is None; its costs, and a cell a column."""

    sampler: int | None
    label: str
    cost: str
    cost_span: str
    cost_value: float | None
    cells: list[Cell]
    kinds: tuple[str, ...] = ()  # of its results: exact, factorised, shaped

    @property
    def shaped(self) -> bool:
        """Whether some of its results are."""
        return SHAPED in self.kinds

    @property
    def marked(self) -> str:
        """Its label, with a † where its results are shaped."""
        return self.label + MARK * self.shaped


@dataclass(frozen=True)
class Table:
    """One mode: a metric in the panels of a task, or (`metric` None) the metrics of a panel."""

    mode: int
    mode_label: str
    about: str
    metric: Metric | None
    columns: list[Column]
    rows: list[Row]
    floor: list[Cell] | None  # what exact sequences of the same number get

    @property
    def title(self) -> str:
        """ "unconditional: coherence"."""
        return f"{self.about}: {self.metric.title}" if self.metric else self.about

    @property
    def n(self) -> int | None:
        """Of how many sequences the numbers are, if that is the same in all columns."""
        counts = {column.n for column in self.columns}
        return counts.pop() if len(counts) == 1 else None

    @property
    def caption(self) -> str:
        """What the table holds, in a line."""
        what = self.metric.title if self.metric else "number"
        beside = ", the paper's value in parentheses" if any(self.published) else ""
        n = "" if self.n is None else f"; n = {self.n:,}"
        return f"{what} {INTERVAL}{beside}, {self.about} ({self.mode_label}){n}"

    @property
    def heads(self) -> list[tuple[str, str]]:
        """(title, n) of every column; n only where the columns differ in it."""
        return [
            (c.title, "" if c.n is None or self.n is not None else f"n = {c.n:,}")
            for c in self.columns
        ]

    @cached_property
    def published(self) -> list[bool]:
        """For every column whether the paper has values for it."""
        return [any(row.cells[c].paper for row in self.rows) for c in range(len(self.columns))]

    @property
    def stem(self) -> str:
        """A file name."""
        return file_stem(self.metric.key if self.metric else "metrics", self.about, self.mode_label)


def tables(study: Study) -> list[Table]:
    """Every table of the study: modes, then metrics, then tasks."""
    if "tables" not in study.memory:
        study.memory["tables"] = _tables(study)
    return list(study.memory["tables"])


def _tables(study: Study) -> list[Table]:
    sheets = []
    for mode in range(len(study.modes)):
        if study.single:
            columns = [Column(metric.title, metric, 0) for metric in study.drawn]
            about = f"{study.panels[0].task}, {study.panels[0].title}"
            sheets.append(_table(study, mode, about, None, columns))
            continue
        for metric in study.drawn:
            for about, panels in _parts(study):
                columns = [Column(study.panels[p].title, metric, p) for p in panels]
                sheets.append(_table(study, mode, about, metric, columns))
    return [table for table in sheets if table.rows]


def _parts(study: Study) -> list[tuple[str, list[int]]]:
    """The panels that share a table: those of a task, a swept one for itself."""
    alone = swept(study)
    parts = []
    for task in study.tasks:
        panels = study.of_task(task)
        apart = [p for p in panels if p in alone] if len(panels) > 1 else []
        parts.append((task, [p for p in panels if p not in apart]))
        parts += [(f"{task}, {study.panels[p].title}", [p]) for p in apart]
    return parts


def _table(
    study: Study, mode: int, about: str, metric: Metric | None, wanted: Sequence[Column]
) -> Table:
    order: list[int | None] = [None, *sorted(study.causal)]
    order += [s for s in range(len(study.samplers)) if s not in study.causal]
    columns, cells = [], []
    for column in wanted:
        numbers = [study.estimate(mode, column.panel, s, column.metric) for s in order]
        if any(numbers):
            head, filled = _column(study, mode, column, order, numbers)
            columns.append(head)
            cells.append(filled)
    rows = []
    for i, sampler in enumerate(order):
        line = [column[i] for column in cells]
        if any(cell.estimate for cell in line):
            panels = dict.fromkeys(column.panel for column in columns)
            costs = [study.estimate(mode, p, sampler, study.cost) for p in panels]
            row = _row(study, sampler, [cost for cost in costs if cost], line)
            kinds = {
                study.kinds[mode, p, sampler]
                for p in panels
                if sampler is not None and (mode, p, sampler) in study.kinds
            }
            rows.append(replace(row, kinds=tuple(k for k in KINDS if k in kinds)))
    if any(cell.paper for row in rows for cell in row.cells):
        first = _appearance(study)  # stable: settings keep their order
        rows.sort(key=lambda row: -1 if row.sampler is None else first[row.sampler])
    floors = [_floor(column.metric, filled) for column, filled in zip(columns, cells)]
    floor = floors if any(cell.estimate for cell in floors) else None
    return Table(mode, study.modes[mode], about, metric, columns, rows, floor)


def _row(study: Study, sampler: int | None, costs: list[Estimate], cells: list[Cell]) -> Row:
    values = [cost.value for cost in costs]
    text = with_interval(study.cost, costs[0]) if len(costs) == 1 else span(values)
    mean = sum(values) / len(values) if values else None
    return Row(sampler, study.label(sampler), text, span(values), mean, cells)


def _appearance(study: Study) -> dict[int, int]:
    """For every sampler when the first record of its family comes."""
    families: dict[str, int] = {}
    for _, _, s in study.cells:
        families.setdefault(study.samplers[s].family, len(families))
    return {s: families.get(one.family, len(families)) for s, one in enumerate(study.samplers)}


def _column(
    study: Study,
    mode: int,
    column: Column,
    order: Sequence[int | None],
    numbers: Sequence[Estimate | None],
) -> tuple[Column, list[Cell]]:
    """The column with the n of most of its numbers, and its cells."""
    counts = Counter(e.n for e in numbers if e and e.n is not None)
    usual = counts.most_common(1)[0][0] if counts else None
    marks = _marks(column.metric, numbers, _apart(study, mode, column.panel, order, numbers))
    cells = []
    for sampler, estimate, mark in zip(order, numbers, marks):
        paper = None
        if sampler is not None and column.metric == study.quality:
            paper = study.published(mode, column.panel, sampler)
        n = estimate.n if estimate and estimate.n != usual else None
        cells.append(Cell(column.metric, estimate, mark, n, paper))
    return Column(column.title, column.metric, column.panel, usual), cells


def _apart(
    study: Study,
    mode: int,
    panel: int,
    order: Sequence[int | None],
    numbers: Sequence[Estimate | None],
) -> list[bool]:
    """Who is not compared: references, AR, and shaped results where there are others."""
    apart = [s is None or s in study.causal for s in order]
    shaped = [s is not None and study.shaped(s, mode, panel) for s in order]
    lawful = any(e and not a and not b for e, a, b in zip(numbers, apart, shaped))
    return [a or (b and lawful) for a, b in zip(apart, shaped)]


def _marks(metric: Metric, numbers: Sequence[Estimate | None], apart: Sequence[bool]) -> list[str]:
    """ "best" for all that are not clearly worse than the best, unless that is everybody."""
    compared = [e for e, other in zip(numbers, apart) if e and not other]
    if not metric.better or len(compared) < 2 or any(e.bound for e in compared):
        return [""] * len(numbers)
    top = max(compared, key=lambda e: metric.better * settled_value(metric, e))
    best = [e for e in compared if not _worse(metric, e, top)]
    marked = {id(e) for e in best} if len(best) < len(compared) else set()
    return ["best" if id(e) in marked else "" for e in numbers]


def _worse(metric: Metric, one: Estimate, top: Estimate) -> bool:
    """Whether it is worse beyond the noise, or in print where nothing says how large that is."""
    gap = metric.better * (settled_value(metric, top) - settled_value(metric, one))
    if one.se is None or top.se is None:
        return round(one.value, metric.digits) != round(top.value, metric.digits)
    return gap > NORMAL * combined(one.se, top.se)


def _floor(metric: Metric, cells: Sequence[Cell]) -> Cell:
    """The floor of a column: it depends on the world and the number of sequences alone."""
    floors = [floor for cell in cells if cell.estimate and (floor := floor_of(cell.estimate))]
    return Cell(metric, floors[0] if floors else None)
