"""The figures of the page as static SVG or PDF: a metric against cost, and rounds of traces.

One file for every table, a panel for every column of it, drawn with matplotlib's object interface
(no global figure), with the colours and markers of the page. Lines against a parameter and losses
are drawn in line_figures.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, log
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from maskwalk.bench.labels import Family
from maskwalk.decoding.kinds import MARK
from maskwalk.report.budgets import crowded
from maskwalk.report.drawing import (
    HIGH,
    STYLE,
    WIDE,
    Mark,
    cost_axis,
    draw_front,
    draw_labels,
    draw_legend,
    draw_marks,
    grid,
    head,
    saved,
)
from maskwalk.report.estimates import Estimate, floor_of, number, settled_value
from maskwalk.report.layout import Box, rings
from maskwalk.report.line_figures import losses_figure, series_figures
from maskwalk.report.losses import Group
from maskwalk.report.study import REFERENCE, Study
from maskwalk.report.tables import Column, Table, tables
from maskwalk.report.words import file_stem
from maskwalk.stats import clear_steps, pareto_front
from maskwalk.worlds.metrics import Metric

LEAST_COST = 1 / 16  # on a logarithmic axis: a mean may be below one call
NAMES = 7  # of families in a line of the legend below three panels


def figures(study: Study, suffix: str, losses: Sequence[Group] = ()) -> Iterator[tuple[str, bytes]]:
    """(file stem, contents) of every figure, as "svg" or "pdf"."""
    with mpl.rc_context(STYLE):
        for table in tables(study):
            figure = _scatter(study, table)
            if figure:
                yield table.stem, saved(figure, suffix)
            if table.metric in (None, study.quality):
                figure = _traces(study, table)
                if figure:
                    stem = file_stem("traces", table.about, table.mode_label)
                    yield stem, saved(figure, suffix)
        for stem, figure in series_figures(study):
            yield stem, saved(figure, suffix)
        for group in losses:
            yield group.stem, saved(losses_figure(study, group), suffix)


def _scatter(study: Study, table: Table) -> Figure | None:
    marks = [(column, _marks(study, table.mode, column)) for column in table.columns]
    panels = [(column, points) for column, points in marks if points]
    if not panels:
        return None
    used = {p.sampler.family for _, points in panels for p in points}
    columns = NAMES * min(len(panels), 3) // 3 or 1
    foot = 0.17 * (ceil(len(used) / columns) - 1)
    figure, axes = grid(len(panels), 3, WIDE, HIGH, 0.7, foot)
    for axis, (column, points) in zip(axes, panels):
        reference = study.estimate(table.mode, column.panel, None, column.metric)
        _draw(axis, study, column, points, reference)
    draw_legend(figure, _daggers(panels, [f for f in study.families if f.name in used]), columns)
    against = f"against {study.cost.title} ({table.mode_label}); bars are 95 % intervals"
    head(figure, f"{table.title}, {against}")
    return figure


def _daggers(panels: Sequence[tuple[Column, list[Mark]]], families: list[Family]) -> list[Family]:
    """Families with a † where all their marks are shaped."""
    lawful = {p.sampler.family for _, points in panels for p in points if not p.shaped}
    return [f if f.name in lawful else replace(f, label=f.label + MARK) for f in families]


def _marks(study: Study, mode: int, column: Column) -> list[Mark]:
    marks = []
    for s, sampler in enumerate(study.samplers):
        estimate = study.estimate(mode, column.panel, s, column.metric)
        cost = study.estimate(mode, column.panel, s, study.cost)
        if estimate and cost:
            shaped = study.shaped(s, mode, column.panel)
            marks.append(Mark(cost.value, estimate, sampler, shaped))
    return marks


def _ends(metric: Metric, points: list[Mark], reference: Estimate | None) -> tuple[float, float]:
    """The y axis: a share has its limits, anything else what there is, with some room."""
    if metric.share and metric.better:
        return -0.05, 1.1
    values = [p.estimate.value + side * (p.estimate.half or 0) for p in points for side in (-1, 1)]
    values += [reference.value] if reference else []
    values += [floor.value for p in points if (floor := floor_of(p.estimate))]
    low = 0.0 if metric.limits[0] == 0 and metric.better else min(values)
    room = 0.12 * (max(values) - low) or 0.1
    return low - room / 2, max(values) + room


def _draw(
    axis: Axes, study: Study, column: Column, points: list[Mark], reference: Estimate | None
) -> None:
    metric = column.metric
    low = max(min(p.cost for p in points), LEAST_COST) * 0.6
    high = max(max(p.cost for p in points), low) * 1.5
    bottom, top = _ends(metric, points, reference)
    axis.set(ylim=(bottom, top), ylabel=metric.title)
    cost_axis(axis, low, high, study.unit)
    title = column.title if not study.single else metric.heading or metric.title
    axis.set_title(title, loc="left", fontweight="bold", fontsize=8.5)

    across, up = 72 * WIDE / log(high / low), 72 * HIGH / (top - bottom)  # points of paper a unit
    paper = [
        (across * log(max(p.cost, LEAST_COST) / low), up * (p.estimate.value - bottom))
        for p in points
    ]
    sign, front = metric.better or 1, _front(metric, points)
    taken: list[Box] = [(x - 3, y - 3, x + 3, y + 3) for x, y in paper]
    around = rings(paper, front, 3.5, 1 if crowded(study) else 3)
    draw_marks(axis, study.families, points, around)
    taken += _draw_floor(axis, metric, points, up, bottom)
    if reference:
        taken += _draw_reference(axis, metric, reference, up * (reference.value - bottom))
    if front:
        corners = [(points[i].cost, points[i].estimate.value) for i in front]
        taken += draw_front(axis, corners, [paper[i] for i in front], high)
    named = _named(study, metric, points, front)
    draw_labels(axis, [(*paper[i], points[i].label) for i in named], taken, sign)


def _front(metric: Metric, points: list[Mark]) -> list[int]:
    """Steps that gain more than the noise; none where nothing is better, nor through a bound.

    Shaped results lead where there are no others.
    """
    if not metric.better or any(p.estimate.bound for p in points):
        return []
    lawful = [i for i, p in enumerate(points) if not p.shaped] or list(range(len(points)))
    values = [settled_value(metric, points[i].estimate) for i in lawful]
    costs = [points[i].cost for i in lawful]
    steps = pareto_front(list(zip(costs, values)), metric.better)
    errors = [points[i].estimate.se for i in lawful]
    return [lawful[i] for i in clear_steps(values, errors, steps, metric.better)]


def _named(study: Study, metric: Metric, points: list[Mark], front: list[int]) -> list[int]:
    """What gets a label: steps of the front that are not the worst there is, and AR."""
    worst = metric.limits[0 if metric.better > 0 else 1]
    clear = [i for i in front if points[i].estimate.value != worst]
    causal = {study.samplers[s] for s in study.causal}
    return clear + [i for i, p in enumerate(points) if p.sampler in causal and i not in clear]


def _draw_floor(
    axis: Axes, metric: Metric, points: list[Mark], up: float, bottom: float
) -> list[Box]:
    """The line of what exact sequences get; returns what it covers on paper."""
    floors = [floor.value for p in points if (floor := floor_of(p.estimate))]
    if not floors:
        return []
    middle = (min(floors) + max(floors)) / 2
    axis.axhline(middle, color="#59616b", linewidth=1, zorder=2)
    axis.annotate(
        f"floor {number(metric, middle)}", (1, middle), (0, -3), va="top", ha="right",
        color="#59616b", xycoords=("axes fraction", "data"), textcoords="offset points",
        fontsize=6.5,
    )  # fmt: skip
    level = up * (middle - bottom)
    right = 72 * WIDE
    return [(0.0, level - 1, right, level + 1), (right - 42, level - 11, right, level)]


def _draw_reference(axis: Axes, metric: Metric, reference: Estimate, level: float) -> list[Box]:
    """The line of the reference; returns what it covers on paper."""
    axis.axhline(reference.value, color="#59616b", linewidth=0.9, linestyle=(0, (5, 3)), zorder=2)
    axis.annotate(
        f"{REFERENCE} {number(metric, reference.value)}", (0, reference.value), (3, 2),
        color="#59616b", fontsize=6.5, xycoords=("axes fraction", "data"),
        textcoords="offset points",
    )  # fmt: skip
    return [(0.0, level - 1, 72 * WIDE, level + 1), (0.0, level, 82.0, level + 10)]


Trace = tuple[str, Any]  # whose, and the record's trace


def _traces(study: Study, table: Table) -> Figure | None:
    """The round of every position, a row per sampler; given positions stay white."""
    panels: list[tuple[int, list[Trace]]] = []
    for panel in dict.fromkeys(column.panel for column in table.columns):
        rows = [
            (row.label, trace)
            for row in table.rows
            if (trace := (study.record(table.mode, panel, row.sampler) or {}).get("trace"))
        ]
        panels += [(panel, rows)] if rows else []
    if not panels:
        return None
    most = max(len(rows) for _, rows in panels)
    figure, axes = grid(len(panels), 2, 4.0, 0.16 * most, 1.2)
    for axis, (panel, rows) in zip(axes, panels):
        _draw_traces(axis, rows)
        axis.set_title(study.panels[panel].title, loc="left", fontweight="bold", fontsize=8.5)
    head(figure, f"rounds of one sequence (darker is earlier), {table.about} ({table.mode_label})")
    return figure


def _draw_traces(axis: Axes, rows: list[Trace]) -> None:
    length = max(len(trace["rounds"]) for _, trace in rows)
    shades = []
    for i, (_, trace) in enumerate(rows):
        rounds = trace["rounds"]
        last = max([r for r in rounds if r >= 0], default=0) or 1
        shade = [float("nan") if r < 0 else 1 - 0.85 * r / last for r in rounds]
        shades.append(shade + [float("nan")] * (length - len(shade)))
        wrong = [t for t, fine in enumerate(trace.get("valid") or []) if not fine]
        if wrong:
            axis.plot([wrong[0] - 0.5] * 2, [i - 0.5, i + 0.5], color="#c81e1e", linewidth=2)
    axis.imshow(shades, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    axis.set_yticks(range(len(rows)), [label for label, _ in rows], fontsize=6.5)
    axis.grid(visible=False)
    axis.hlines(
        [i - 0.5 for i in range(len(rows))], -0.5, length - 0.5, color="white", linewidth=0.8
    )
    axis.set(xlabel="position")
