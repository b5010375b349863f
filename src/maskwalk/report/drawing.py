"""What the static figures share: style, sizes, axes set by hand, files that are always the same."""

import io
from math import ceil
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
WIDE, HIGH = 2.9, 2.1  # inches a panel
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
    """What the figure shows, above it."""
    figure.text(0.01, 1 - 0.06 / figure.get_figheight(), words, va="top", fontsize=9)
