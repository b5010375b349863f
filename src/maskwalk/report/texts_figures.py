"""The figures of a report of texts as static SVG or PDF: one file a mode, one panel a metric."""

from collections.abc import Iterator
from math import ceil, exp, hypot, log

import matplotlib as mpl
from matplotlib.axes import Axes

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
from maskwalk.report.layout import Box, dodge, pareto_front
from maskwalk.report.study import Estimate
from maskwalk.report.texts import INTERVAL, Metric, TextStudy, at_most
from maskwalk.report.texts_tables import text_tables

NAMES = 7  # of families in a line of the legend below three panels


def text_figures(study: TextStudy, suffix: str) -> Iterator[tuple[str, bytes]]:
    """(file stem, contents) of every figure, as "svg" or "pdf"."""
    with mpl.rc_context(STYLE):
        for table in text_tables(study):
            marks = {m: _marks(study, table.mode, m) for m in table.metrics if m.drawn}
            drawn = {metric: found for metric, found in marks.items() if found}
            if not drawn:
                continue
            used = {sampler.family for found in drawn.values() for *_, sampler in found}
            columns = NAMES * min(len(drawn), 3) // 3 or 1
            foot = 0.17 * (ceil(len(used) / columns) - 1)
            figure, axes = grid(len(drawn), 3, WIDE, HIGH, 0.75, foot)
            for axis, (metric, found) in zip(axes, drawn.items()):
                level = study.estimate(table.mode, None, metric.key)
                _draw(axis, study, metric, found, level)
            draw_legend(figure, [f for f in study.families if f.name in used], columns)
            words = f"{study.title}, " if study.title else ""
            head(figure, f"{words}{table.mode_label}: against calls, bars are 95 % intervals")
            yield table.stem, saved(figure, suffix)


def _marks(study: TextStudy, mode: int, metric: Metric) -> list[Mark]:
    out = []
    for s in study.settings(mode):
        held, calls = study.estimate(mode, s, metric.key), study.estimate(mode, s, "calls")
        if held and calls:
            out.append((calls.value, held, study.samplers[s]))
    return out


def _draw(
    axis: Axes, study: TextStudy, metric: Metric, points: list[Mark], mark: Estimate | None
) -> None:
    low, high = max(min(x for x, *_ in points), 1) * 0.6, max(x for x, *_ in points) * 1.6
    ends = [e.value + side * INTERVAL * (e.se or 0) for _, e, _ in points for side in (-1, 1)]
    ends += [mark.value] if mark else []
    room = 0.12 * (max(ends) - min(ends)) or 0.1
    bottom, top = min(ends) - room, max(ends) + room
    axis.set(ylim=(bottom, top), ylabel=metric.name)
    calls_axis(axis, low, high, "calls per text")
    axis.set_title(metric.title, loc="left", fontweight="bold", fontsize=8.5)

    across, up = 72 * WIDE / log(high / low), 72 * HIGH / (top - bottom)  # points of paper a unit
    paper = [(across * log(max(x, 1) / low), up * (e.value - bottom)) for x, e, _ in points]
    sign = metric.better or 1
    ranked = metric.better and not any(at_most(metric, e) for _, e, _ in points)
    front = pareto_front([(x, e.value) for x, e, _ in points], sign) if ranked else []
    shifted = dodge(paper, front, 5.0, 2)
    taken: list[Box] = [(x - 3, y - 3, x + 3, y + 3) for x, (_, y) in zip(shifted, paper)]
    draw_marks(axis, study.families, points, [low * exp(x / across) for x in shifted], INTERVAL)
    if mark:
        taken += _draw_mark(axis, mark, up * (mark.value - bottom))
    if front:
        corners = [(points[i][0], points[i][1].value) for i in front]
        taken += draw_front(axis, corners, [paper[i] for i in front], high)
    causal = {study.samplers[s] for s in study.causal}
    named = _clear(points, front, sign)
    named += [i for i, (*_, s) in enumerate(points) if s in causal and i not in named]
    draw_labels(axis, [(*paper[i], points[i][2].label) for i in named], taken, sign)


def _clear(points: list[Mark], front: list[int], sign: int) -> list[int]:
    """The steps of a front that gain more than the interval of the difference."""
    kept: list[int] = []
    for i in front:
        now, last = points[i][1], points[kept[-1]][1] if kept else None
        noise = INTERVAL * hypot(now.se or 0, last.se or 0) if last else 0.0
        if last is None or sign * (now.value - last.value) > noise:
            kept.append(i)
    return kept


def _draw_mark(axis: Axes, mark: Estimate, level: float) -> list[Box]:
    """The line of held-out text; returns what it covers on paper."""
    axis.axhline(mark.value, color="#59616b", linewidth=0.9, linestyle=(0, (5, 3)), zorder=2)
    axis.annotate(
        f"held-out text {mark.value:.3f}", (0, mark.value), (3, 2), color="#59616b", fontsize=6.5,
        xycoords=("axes fraction", "data"), textcoords="offset points",
    )  # fmt: skip
    return [(0.0, level - 1, 72 * WIDE, level + 1), (0.0, level, 82.0, level + 10)]
