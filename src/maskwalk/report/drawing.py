"""What the static figures share: style, sizes, axes set by hand, files that are always the same."""

import io
from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from textwrap import fill
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from maskwalk.bench.labels import Family, Sampler
from maskwalk.decoding.kinds import MARK
from maskwalk.report.estimates import Estimate
from maskwalk.report.layout import Box, place_labels


class Mark(NamedTuple):
    """A point of a figure: its cost, its value, whose it is, and whether it is shaped."""

    cost: float
    estimate: Estimate
    sampler: Sampler
    shaped: bool = False

    @property
    def label(self) -> str:
        """The sampler's name, with a † where the result is shaped."""
        return self.sampler.label + MARK * self.shaped


SIGNS = 15  # letters of a heading to an inch
SYMBOLS = {
    "circle": "o", "square": "s", "diamond": "D", "up": "^", "down": "v", "star": "*", "cross": "X",
    "hexagon": "h", "pentagon": "p",
}  # fmt: skip
STYLE: Any = {
    "svg.hashsalt": "maskwalk",  # else ids are random
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#eceef0",
    "axes.edgecolor": "#9aa1a9",
    "axes.axisbelow": True,
}
WIDE, HIGH = 2.9, 2.1  # inches per panel
RING = 2.5  # points from one ring to the next
ROOMY = 32  # from how wide a range of cost on only powers of two have room
STOPS = [1, *(stop for i in range(1, 16) for stop in (2**i, 3 * 2 ** (i - 1)))]


def saved(figure: Figure, suffix: str) -> bytes:
    """The figure's file, without dates: the same records give the same bytes."""
    stream = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}[suffix]
    figure.savefig(stream, format=suffix, metadata=undated)
    return stream.getvalue()


def grid(
    count: int, columns: int, wide: float, high: float, side: float, foot: float = 0.0
) -> tuple[Figure, list[Axes]]:
    """`count` axes of so many inches, set by hand: matplotlib's own layout doubles the time.

    `foot` is room below them, for a legend of several lines.
    """
    columns = min(columns, count)
    rows = ceil(count / columns)
    width, height = (wide + side) * columns + 0.2, (high + 0.75) * rows + 0.6 + foot
    figure = Figure(figsize=(width, height))
    axes = []
    for i in range(count):
        left = side + (i % columns) * (wide + side)
        bottom = height - 0.25 - (i // columns + 1) * (high + 0.75) + 0.45
        box = (left / width, bottom / height, wide / width, high / height)
        axes.append(figure.add_axes(box))
    return figure, axes


def head(figure: Figure, words: str) -> None:
    """What the figure shows, above it, in lines as wide as the figure."""
    lines = fill(words, int(SIGNS * figure.get_figwidth()))
    figure.text(0.01, 1 - 0.06 / figure.get_figheight(), lines, va="top", fontsize=9)


def cost_axis(axis: Axes, low: float, high: float, words: str) -> None:
    """Cost along x, from `low` to `high`, on a logarithmic scale with whole numbers."""
    axis.set(xscale="log", xlim=(low, high), xlabel=words)
    stops = STOPS if high / low < ROOMY else [2**i for i in range(16)]
    axis.xaxis.set_major_locator(FixedLocator([s for s in stops if low <= s <= high]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(ScalarFormatter())


def draw_marks(
    axis: Axes,
    families: Sequence[Family],
    points: Sequence[Mark],
    around: Sequence[int],
) -> None:
    """Marks with bars over their 95 % intervals, settings joined; rings around marks they share.

    One artist a family and ring: matplotlib is slow with many.
    """
    for family in families:
        for ring in sorted({*around}, reverse=True):
            mine = [
                (p.cost, p.estimate)
                for p, level in zip(points, around)
                if p.sampler.family == family.name and level == ring
            ]
            if mine:
                _draw_ring(axis, family, mine, ring)
        own = [p.sampler for p in points if p.sampler.family == family.name]
        lines = dict.fromkeys(sampler.line for sampler in own)
        for kind in lines:  # in their order: a set's order, and so the file, would change by run
            places = sorted((p.cost, p.estimate.value) for p in points if p.sampler.line == kind)
            axis.plot(*zip(*places), color=family.light, linewidth=0.8, alpha=0.35, zorder=1)


def _draw_ring(
    axis: Axes, family: Family, mine: Sequence[tuple[float, Estimate]], ring: int
) -> None:
    """Marks of one family, or its outlines of one size; the smallest are drawn last."""
    size = (8 if family.marker == "star" else 5) + RING * ring
    axis.errorbar(
        [cost for cost, _ in mine], [e.value for _, e in mine],
        [e.half or 0 for _, e in mine],
        color=family.light, marker=SYMBOLS[family.marker], linestyle="", elinewidth=0.9,
        markersize=size, markerfacecolor="none" if ring else family.light,
        markeredgecolor=family.light if ring else "white",
        markeredgewidth=0.8 if ring else 0.4, zorder=3 - ring / 10,
    )  # fmt: skip


def draw_front(
    axis: Axes,
    corners: Sequence[tuple[float, float]],
    paper: Sequence[tuple[float, float]],
    high: float,
) -> list[Box]:
    """The steps of a Pareto front, up to a cost of `high`; returns what they cover on paper."""
    steps = [*corners, (high, corners[-1][1])]
    axis.step(
        *zip(*steps), where="post", color="#1f2328", linewidth=1, linestyle=(0, (3, 2)), zorder=2
    )
    taken: list[Box] = []
    for (ax, ay), (bx, by) in pairwise([*paper, (72 * WIDE, paper[-1][1])]):
        taken += [(ax, ay - 1, bx, ay + 1), (bx - 1, min(ay, by), bx + 1, max(ay, by))]
    return taken


def draw_labels(
    axis: Axes, wanted: list[tuple[float, float, str]], taken: list[Box], sign: int
) -> None:
    """Words beside points, off what is taken, with a line where they stand far away."""
    frame = (2.0, 2.0, 72 * WIDE, 72 * HIGH + 4)
    for (px, py, _), label in zip(wanted, place_labels(wanted, taken, frame, sign, 6.5)):
        near = (min(max(px, label.box[0]), label.box[2]), min(max(py, label.box[1]), label.box[3]))
        line = {"arrowstyle": "-", "linewidth": 0.4, "color": "#59616b", "shrinkA": 0, "shrinkB": 0}
        spot: Any = {"xycoords": "axes points", "textcoords": "axes points"}
        if label.far:
            axis.annotate("", (px, py), near, arrowprops=line, **spot)
        axis.annotate(label.text, (px, py), (label.x, label.y), fontsize=6.5, **spot)


def draw_legend(figure: Figure, families: Sequence[Family], columns: int) -> None:
    """The families below the panels."""
    handles = [
        Line2D([], [], color=f.light, marker=SYMBOLS[f.marker], linestyle="", label=f.label)
        for f in families
    ]
    figure.legend(handles=handles, loc="lower center", ncols=columns, frameon=False)
