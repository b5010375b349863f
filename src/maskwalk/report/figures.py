"""The figures of the page as static SVG or PDF: value against calls, and the rounds of the traces.

One file for every mode and task, a panel for every graph, drawn with matplotlib's object interface
(no global figure), with the colours and markers of the page. Lines against a parameter and ledgers
are drawn in line_figures.py.
"""

from collections.abc import Iterator, Sequence
from math import ceil, exp, log

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from maskwalk.report.drawing import (
    HIGH,
    STYLE,
    WIDE,
    Mark,
    calls_axis,
    draw_front,
    draw_labels,
    draw_legend,
    draw_marks,
    grid,
    head,
    saved,
)
from maskwalk.report.layout import dodge, pareto_front
from maskwalk.report.ledger import Group
from maskwalk.report.line_figures import ledger_figure, series_figures
from maskwalk.report.rules import crowded
from maskwalk.report.rules import front as steps
from maskwalk.report.study import Study
from maskwalk.report.summary import NOISE, points_of
from maskwalk.report.tables import LOWER_IS_BETTER, METRICS, Table, tables

NAMES = 7  # of families in a line of the legend below three panels


def figures(study: Study, suffix: str, ledger: Sequence[Group] = ()) -> Iterator[tuple[str, bytes]]:
    """(file stem, contents) of every figure, as "svg" or "pdf"."""
    with mpl.rc_context(STYLE):
        for table in tables(study):
            yield table.stem, saved(_scatter(study, table), suffix)
            if table.metric == "coherence":
                figure = _traces(study, table)
                if figure:
                    yield table.stem.replace("coherence", "traces", 1), saved(figure, suffix)
        for stem, figure in series_figures(study):
            yield stem, saved(figure, suffix)
        for group in ledger:
            yield group.stem, saved(ledger_figure(study, group), suffix)


def _panels(study: Study, table: Table) -> list[int]:
    return [p for p in study.of_task(table.task) if study.panels[p].title in table.columns]


def _scatter(study: Study, table: Table) -> Figure:
    panels = _panels(study, table)
    used = {study.samplers[row.sampler].family for row in table.rows}
    columns = NAMES * min(len(panels), 3) // 3 or 1
    foot = 0.17 * (ceil(len(used) / columns) - 1)
    figure, axes = grid(len(panels), 3, WIDE, HIGH, 0.6, foot)
    for axis, panel in zip(axes, panels):
        _draw_panel(axis, study, table.mode, panel, table.metric)
    draw_legend(figure, [f for f in study.families if f.name in used], columns)
    head(figure, table.caption)
    return figure


def _draw_panel(axis: Axes, study: Study, mode: int, panel: int, metric: str) -> None:
    points: list[Mark] = []
    for s, sampler in enumerate(study.samplers):
        held, calls = (study.estimate(mode, panel, s, name) for name in (metric, "calls"))
        if held and calls:
            points.append((calls.value, held, sampler))
    sign = -1 if metric in LOWER_IS_BETTER else 1
    low, high = max(min(x for x, *_ in points), 1) * 0.6, max(x for x, *_ in points) * 1.3
    top = 1.1 if sign > 0 else max(e.value + (e.se or 0) for _, e, _ in points) * 1.08
    bottom = -0.05 * top
    axis.set(ylim=(bottom, top), ylabel=METRICS[metric])
    calls_axis(axis, low, high, "calls per walk")
    axis.set_title(study.panels[panel].title, loc="left", fontweight="bold", fontsize=8.5)

    across, up = 72 * WIDE / log(high / low), 72 * HIGH / (top - bottom)  # points of paper a unit
    paper = [(across * log(max(x, 1) / low), up * (e.value - bottom)) for x, e, _ in points]
    front = pareto_front([(x, e.value) for x, e, _ in points], sign)
    shifted = dodge(paper, front, 5.0, 2 if crowded(study) else 12)
    taken = [(x - 3, y - 3, x + 3, y + 3) for x, (_, y) in zip(shifted, paper)]
    draw_marks(axis, study.families, points, [low * exp(x / across) for x in shifted])
    floor = _draw_floor(axis, [e.more.get("floor") for _, e, _ in points])
    if floor is not None:
        level = up * (floor - bottom)
        taken += [
            (0.0, level - 1, 72 * WIDE, level + 1),
            (72 * WIDE - 42, level - 11, 72 * WIDE, level),
        ]
    corners = [(points[i][0], points[i][1].value) for i in front]
    taken += draw_front(axis, corners, [paper[i] for i in front], high)
    clear = _clear(study, mode, panel) if crowded(study) and metric == "coherence" else None
    shown = [i for i in front if clear is None or points[i][2].spec in clear]
    wanted = [(*paper[i], points[i][2].label) for i in shown]
    draw_labels(axis, wanted, taken, sign)


def _clear(study: Study, mode: int, panel: int) -> set[str]:
    """The samplers at steps of the front that gain something beyond the noise."""
    here = [p for p in points_of(study, mode) if p.panel == panel]
    return {study.samplers[p.sampler].spec for p in steps(here, NOISE) if p.value > 0}


def _draw_floor(axis: Axes, floors: list[float | None]) -> float | None:
    known = [floor for floor in floors if floor is not None]
    if not known:
        return None
    middle = (min(known) + max(known)) / 2
    axis.axhline(middle, color="#59616b", linewidth=1, zorder=2)
    axis.annotate(
        f"floor {middle:.3f}", (1, middle), (0, -3), va="top", ha="right", color="#59616b",
        xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=6.5,
    )  # fmt: skip
    return middle


def _traces(study: Study, table: Table) -> Figure | None:
    """The round of every position, a row a sampler; given positions stay white."""
    kept = []
    for panel in _panels(study, table):
        rows = [
            (row.label, held)
            for row in table.rows
            if (held := (study.cells.get((table.mode, panel, row.sampler)) or {}).get("trace"))
        ]
        if rows:
            kept.append((panel, rows))
    if not kept:
        return None
    most = max(len(rows) for _, rows in kept)
    figure, axes = grid(len(kept), 2, 4.0, 0.16 * most, 1.2)
    for axis, (panel, rows) in zip(axes, kept):
        length = max(len(trace["rounds"]) for _, trace in rows)
        shades = []
        for i, (_, trace) in enumerate(rows):
            rounds = trace["rounds"]
            last = max([r for r in rounds if r >= 0], default=0) or 1
            shade = [float("nan") if r < 0 else 1 - 0.85 * r / last for r in rounds]
            shades.append(shade + [float("nan")] * (length - len(shade)))
            wrong = [t for t, ok in enumerate(trace.get("valid") or []) if not ok]
            if wrong:
                axis.plot([wrong[0] - 0.5] * 2, [i - 0.5, i + 0.5], color="#c81e1e", linewidth=2)
        axis.imshow(shades, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        axis.set_yticks(range(len(rows)), [label for label, _ in rows], fontsize=6.5)
        axis.grid(visible=False)
        axis.hlines(
            [i - 0.5 for i in range(len(rows))], -0.5, length - 0.5, color="white", linewidth=0.8
        )
        axis.set(xlabel="position")
        axis.set_title(study.panels[panel].title, loc="left", fontweight="bold", fontsize=8.5)
    head(figure, f"rounds of one walk (darker is earlier), {table.task} ({table.mode_label})")
    return figure
