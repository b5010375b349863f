"""How much of a table a page shows at once: its front, one line where all rows are alike, or all.

A long table of another metric than the quality is folded altogether.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from maskwalk.report.budgets import front_samplers
from maskwalk.report.estimates import NONE
from maskwalk.report.finding import settings
from maskwalk.report.study import Study
from maskwalk.report.tables import Row, Table

MOST_ROWS = 14  # of more a page shows the front, and folds the rest


@dataclass(frozen=True)
class Layout:
    """The rows that are shown, whether all others are folded, and a line where none is needed."""

    rows: list[Row]
    folded: bool
    line: str = ""


def layout(study: Study, table: Table, policies: Sequence[str] = ()) -> Layout:
    """What a page shows of a table before the reader asks for more; `policies`: evaluated ones."""
    line = _alike(study, table)
    if line:
        return Layout([], False, line)
    if len(table.rows) <= MOST_ROWS:
        return Layout(table.rows, False)
    if table.metric not in (None, study.quality):
        return Layout([], True)
    first = front_samplers(study, table.mode, [column.panel for column in table.columns])
    own = {i for i, one in enumerate(study.samplers) if one.family in policies}
    shown = {*first, *study.causal, *own}
    return Layout([r for r in table.rows if r.sampler is None or r.sampler in shown], True)


def _alike(study: Study, table: Table) -> str:
    """One line for a table that says one number, or two of them, row by row, and no other's."""
    if any(cell.paper for row in table.rows for cell in row.cells):
        return ""
    found = [{c.number for c in row.cells if c.value is not None} for row in table.rows]
    numbers = Counter(one.copy().pop().removeprefix("≤ ") for one in found if len(one) == 1)
    if len(table.rows) < 3 or sum(numbers.values()) < len(table.rows) or len(numbers) != 1:
        return ""
    title = table.metric.title if table.metric else NONE
    (number, count), *_ = numbers.items()
    return f"{title} is {number} for all {settings(study, count)}."
