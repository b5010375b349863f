"""Figures of runs, made without pyplot: nothing is left open, and a notebook shows them as PNG."""

import io
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from jaxtyping import Int64
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from maskwalk.bench.labels import families, leading_name
from maskwalk.errors import MaskwalkError
from maskwalk.report.drawing import STYLE, SYMBOLS
from maskwalk.worlds.metrics import METRICS, Metric

if TYPE_CHECKING:
    from maskwalk.report.notebook.result import Number, Result
    from maskwalk.report.notebook.results import Results

WIDE, HIGH, DOTS = 5.6, 3.4, 110  # inches, and dots per inch
COHERENCE = "coherence"
INK = "#767c85"  # to be read on white and on black
LOOK = STYLE | {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": "#9aa1a944",
}
QUIET, LOUD = "#0072b2", "#d55e00"


class Drawing(Figure):
    """A figure that a notebook shows by itself."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        self.savefig(stream, format="png", dpi=DOTS)
        return stream.getvalue()


def against_calls(results: "Results") -> Figure:
    """Coherence against calls; each point says whose it is."""
    if any(run.coherence is None for run in results):
        raise MaskwalkError(
            "There is no coherence in this world, so there is nothing to draw against calls; see "
            "to_pandas() for what was measured."
        )
    with mpl.rc_context(LOOK):
        figure = Drawing(figsize=(WIDE, HIGH), layout="constrained")
        axes = figure.subplots()
        names = [leading_name(run.sampler) for run in results]
        looks = {family.name: family for family in families(names)}
        for run, name in zip(results, names):
            assert run.coherence is not None
            axes.errorbar(
                float(run.calls),
                float(run.coherence),
                yerr=_within(run.coherence, METRICS.describe(COHERENCE)),
                color=looks[name].light,
                marker=SYMBOLS[looks[name].marker],
                linestyle="none",
            )
        axes.set(
            xlabel=METRICS.cost.title, ylabel=METRICS.describe(COHERENCE).title, ylim=(-0.03, 1.03)
        )
        axes.set_xlim(0, 1.3 * max(float(run.calls) for run in results))  # room for words
        _say_whose(axes, results)
    return figure


def _within(number: "Number", metric: Metric) -> list[list[float]] | None:
    """How far an interval reaches down and up, no further than the metric's limits."""
    if number.half is None:
        return None
    low, high = metric.limits
    down = number.half if low is None else min(number.half, float(number) - low)
    up = number.half if high is None else min(number.half, high - float(number))
    return [[max(down, 0.0)], [max(up, 0.0)]]


def _say_whose(axes: Axes, results: "Results") -> None:
    """A label beside every point; runs at one point share theirs."""
    labels: dict[tuple[float, float], list[str]] = {}
    for run, label in zip(results, results.labels):
        assert run.coherence is not None
        labels.setdefault((round(float(run.calls), 2), float(run.coherence)), []).append(label)
    for (calls, coherence), words in labels.items():
        below = -9 if coherence > 0.5 else 4
        axes.annotate(
            "\n".join(words),
            (calls, coherence),
            xytext=(5, below),
            textcoords="offset points",
            va="center",
            fontsize=7,
        )


def positions(result: "Result") -> Figure:
    """Two panels over the positions: the share of sequences broken there, and when each comes."""
    valid, trace = result.world.valid(result.tokens), result.trace
    panels = [name for name, known in (("broken", valid), ("round", trace)) if known is not None]
    if not panels:
        raise MaskwalkError("Nothing to draw: this world cannot be checked, and trace=0 was asked.")
    with mpl.rc_context(LOOK):
        figure = Drawing(figsize=(WIDE, 1.7 * len(panels)), layout="constrained")
        every: Any = figure.subplots(len(panels), 1, sharex=True, squeeze=False)
        axes = dict(zip(panels, every[:, 0]))
        at = np.arange(result.tokens.shape[1])
        if valid is not None:
            axes["broken"].bar(at, (~valid).double().mean(0).numpy(), color=LOUD)
            axes["broken"].set(
                ylabel="share broken here",
                title=f"{result.label}: the share of sequences that break at a position",
            )
        if trace is not None:
            _rounds(axes["round"], at, trace.reveal_rounds().numpy())
        every[-1, 0].set_xlabel("position")
    return figure


def _rounds(
    axes: Axes, at: Int64[np.ndarray, " length"], rounds: Int64[np.ndarray, "n length"]
) -> None:
    """The mean round of each position, and from the first to the last over the sequences."""
    numbers = rounds + 1.0  # 0: given
    axes.vlines(at, numbers.min(0), numbers.max(0), color=QUIET, alpha=0.35, linewidth=3)
    axes.plot(at, numbers.mean(0), "o", color=QUIET, markersize=4)
    axes.set(ylabel="round (0: given)")
    axes.set_title("revealed when: the mean round (dot), from the earliest to the latest (bar)")
    axes.set_ylim(bottom=-0.5)
