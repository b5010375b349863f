"""Static figures of lines: a metric against a parameter, and the bars and rounds of losses.

One file for every axis and mode (quality and cost side by side), and one for every group of losses:
stacked bars of dependence and denoiser error, and the nats lost in each round.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from maskwalk.bench.labels import Family
from maskwalk.report.budget_lines import drawn_series
from maskwalk.report.drawing import HIGH, STOPS, SYMBOLS, WIDE, grid, head
from maskwalk.report.estimates import finite
from maskwalk.report.losses import Group, Row, loss, lost_in
from maskwalk.report.series import BY, Line, Series
from maskwalk.report.study import Study
from maskwalk.report.words import file_stem
from maskwalk.worlds.metrics import COST

PARTS = {"dependence": ("#8a4fb0", ""), "denoiser": ("#2f8577", "////")}  # hatched: also in grey
LEAST = 1e-3  # nats; what a round loses spans powers, and may be nothing
ROOM = 1.8  # inches for labels beside the ends of lines
MOST_LINES = 10  # that one panel can show
STROKES: Any = ("-", (0, (5, 2)), (0, (2, 2)), (0, (7, 2, 1, 2)), (0, (1, 1)), (0, (9, 3)))
LABEL = 6.5  # points; a label at the end of a line needs as much room


def series_figures(study: Study) -> Iterator[tuple[str, Figure]]:
    """(file stem, figure): every axis in every mode that has lines on it."""
    for _, group in groupby(drawn_series(study), key=lambda s: (s.axis, s.title, s.task)):
        mates = list(group)
        for mode, name in enumerate(study.modes):
            pair = [s for s in mates if any(line.mode == mode for line in s.lines)]
            if pair:
                first = pair[0]
                metric = first.metric.key.partition(BY)[0]
                words = (metric, first.axis, first.title, first.task, name)
                yield file_stem(*words), _figure(study, pair, mode)


def _figure(study: Study, pair: list[Series], mode: int) -> Figure:
    lines = [line for line in pair[0].lines if line.mode == mode]
    if len(pair) == 1 and len(lines) > MOST_LINES:
        return multiples(study, pair[0], mode, lines)
    figure, axes = grid(len(pair), 2, WIDE, 1.3 * HIGH, 0.6)
    figure.set_figwidth(figure.get_figwidth() + ROOM)  # labels stand right of the last
    for i, (axis, one) in enumerate(zip(axes, pair)):
        box = axis.get_position()
        share = (figure.get_figwidth() - ROOM) / figure.get_figwidth()
        step = i * 0.9 / figure.get_figwidth()
        axis.set_position((box.x0 * share + step, box.y0, box.width * share * 0.82, box.height))
        _draw(axis, study, one, [line for line in one.lines if line.mode == mode])
    _title(figure, study, pair[0], mode)
    return figure


def _title(figure: Figure, study: Study, one: Series, mode: int) -> None:
    about = f"{one.title}, {one.task}: against {one.axis} ({study.modes[mode]})"
    head(figure, f"{about}; bars are 95 % intervals")


def _draw(axis: Axes, study: Study, one: Series, lines: list[Line]) -> None:
    look = {f.name: f for f in study.families}
    for line in lines:
        family = look[line.family]
        if line.level:
            axis.axhline(line.points[0].value, color=family.light, linewidth=1, linestyle=":")
            continue
        axis.errorbar(
            [p.x or 0.0 for p in line.points], [p.value for p in line.points],
            [p.estimate.half or 0.0 for p in line.points], color=family.light, linewidth=1,
            elinewidth=0.8, marker=SYMBOLS[family.marker], markeredgecolor="white",
            markersize=6 if family.marker == "star" else 4, markeredgewidth=0.3,
        )  # fmt: skip
    _axes(axis, one)
    _ends(axis, lines)


def _axes(axis: Axes, one: Series) -> None:
    """Scales, ticks, names and upright marks."""
    low, high = one.values[0], one.values[-1]
    if one.logarithmic:
        axis.set(xscale="log", xlim=(low / 1.3, high * 1.3))
    axis.xaxis.set_major_locator(FixedLocator(one.values))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(ScalarFormatter())
    if one.metric.role == COST:
        axis.set(yscale="log")
        axis.yaxis.set_major_locator(FixedLocator(STOPS))
        axis.yaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter(ScalarFormatter())
    elif one.metric.share:
        axis.set(ylim=(-0.03, 1.05))
    axis.set(xlabel=one.axis, ylabel=one.y)
    for at, words in one.marks:
        axis.axvline(at, color="#59616b", linewidth=0.9, linestyle="--", zorder=1)
        axis.annotate(
            words, (at, 1), (0, 2), xycoords=("data", "axes fraction"), ha="center",
            textcoords="offset points", fontsize=LABEL,
        )  # fmt: skip


def multiples(study: Study, one: Series, mode: int, lines: list[Line]) -> Figure:
    """Many lines: a panel a family, its own lines in colour and named, all the others pale."""
    families = [f for f in study.families if any(line.family == f.name for line in lines)]
    figure, axes = grid(len(families), 3, WIDE, HIGH, 0.7)
    for axis, family in zip(axes, families):
        mine = [line for line in lines if line.family == family.name]
        for line in lines:
            if line.family != family.name:
                axis.plot(*_track(one, line), color="#d9dde2", linewidth=0.7, zorder=1)
        for i, line in enumerate(mine):
            _draw_own(axis, one, family, line, i)
        _axes(axis, one)
        axis.set_title(family.label, loc="left", fontweight="bold", fontsize=8.5)
        if len(mine) > 1:
            axis.legend(frameon=False, fontsize=LABEL, handlelength=2.8, labelspacing=0.25)
    _title(figure, study, one, mode)
    return figure


def _track(one: Series, line: Line) -> tuple[list[float], list[float]]:
    """The places of a line; a level one spans the axis."""
    if line.level:
        return [one.values[0], one.values[-1]], [line.points[0].value] * 2
    return [p.x or 0.0 for p in line.points], [p.value for p in line.points]


def _draw_own(axis: Axes, one: Series, family: Family, line: Line, i: int) -> None:
    """The i-th line of a family: strokes and shades tell its settings apart."""
    xs, ys = _track(one, line)
    halves = [0.0] * 2 if line.level else [p.estimate.half or 0.0 for p in line.points]
    axis.errorbar(
        xs, ys, halves, color=family.light, linewidth=1.1, elinewidth=0.8, zorder=3,
        linestyle=STROKES[i % len(STROKES)], alpha=max(1.0 - 0.13 * i, 0.3), label=line.label,
        marker="" if line.level else SYMBOLS[family.marker], markersize=3.5, markeredgewidth=0,
    )  # fmt: skip


def _ends(axis: Axes, lines: list[Line]) -> None:
    """Labels beside the ends of lines: equal ends share one, close ones are pushed apart."""
    high = axis.get_window_extent().height * 72 / axis.figure.dpi
    merged: dict[int, list[str]] = {}
    order = sorted(lines, key=lambda line: -line.points[-1].value)
    for line in order:
        up = axis.transData.transform((1, line.points[-1].value))[1]
        at = (up - axis.get_window_extent().y0) * 72 / axis.figure.dpi
        merged.setdefault(round(at), []).append(line.label)
    labels: list[tuple[float, float, str]] = []  # the end, where its label stands, what it says
    for at, names in merged.items():
        tries = [at + step * 0.7 * LABEL for step in (0, 1, -1, 2, -2, 3)]
        free = (y for y in tries if -4 <= y <= high + 4)
        y = next((y for y in free if all(abs(y - k[1]) >= LABEL for k in labels)), None)
        if y is not None:  # else it would have to stand far from its line
            labels.append((at, y, names[0] + (f" +{len(names) - 1}" if len(names) > 1 else "")))
    for at, y, words in labels:
        axis.annotate(
            words, (1, at / high), (5, y - at), xycoords="axes fraction", va="center",
            textcoords="offset points", fontsize=LABEL, annotation_clip=False,
        )  # fmt: skip


def losses_figure(study: Study, group: Group) -> Figure:
    """Stacked bars of the two parts, least loss on top, and the loss of every round."""
    order = sorted(range(len(group.rows)), key=lambda i: loss(group.rows[i]))
    high = max(0.17 * len(order), HIGH)
    figure = Figure(figsize=(8.6, high + 1.1))
    bottom, tall = 0.5 / (high + 1.1), high / (high + 1.1)
    bars = figure.add_axes((0.19, bottom, 0.33, tall))
    rounds = figure.add_axes((0.6, bottom, 0.37, tall))
    look = {f.name: f for f in study.families}
    for y, i in enumerate(order):
        row, sampler = group.rows[i], study.samplers[group.samplers[i]]
        start, total = _stack(bars, row, y), loss(row)
        bound = "≤ " if row.get("kl_kind") == "upper" else ""
        words = "∞" if total == float("inf") else f"{bound}{total:.2f}"
        bars.annotate(
            words, (start, y), (3, 0), textcoords="offset points", va="center", fontsize=6
        )
        nats = [max(lost_in(part), LEAST) for part in row["rounds"]]
        family = look[sampler.family]
        rounds.plot(
            range(1, len(nats) + 1), nats, color=family.light, linewidth=0.9,
            marker=SYMBOLS[family.marker], markersize=3, markeredgewidth=0,
        )  # fmt: skip
    names = [study.samplers[group.samplers[i]].label for i in order]
    bars.set_yticks(range(len(order)), names, fontsize=LABEL)
    bars.set(ylim=(len(order) - 0.4, -0.6), xlabel="nats per sequence")
    bars.margins(x=0.16)
    bars.grid(visible=False, axis="y")
    rounds.set(xlabel="round", ylabel="nats lost in the round", yscale="log", ylim=(LEAST, None))
    if group.split:
        handles = [Patch(color=c, label=n) for n, (c, _) in PARTS.items()]
        bars.legend(handles=handles, loc="upper right", frameon=False, fontsize=LABEL)
    head(figure, f"where nats are lost: {group.title}")
    return figure


def _stack(bars: Axes, row: Row, y: int) -> float:
    """Draws the parts of a row and returns where they end."""
    parts = {name: finite(row.get(name)) for name in PARTS}
    if parts["dependence"] is None:
        whole = finite(row.get("kl")) or finite(row.get("nll")) or 0.0
        bars.barh(y, whole, 0.7, color="#6b7280")
        return whole
    start = 0.0
    for name, (colour, hatch) in PARTS.items():
        width = parts[name] or 0.0
        bars.barh(y, width, 0.7, start, color=colour, hatch=hatch, edgecolor="white", linewidth=0)
        start += width
    return start
