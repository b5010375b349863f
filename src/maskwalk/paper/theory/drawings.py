"""Both level DAGs drawn from the graphs themselves, laid out as in the paper's figures.

Tree-Line-DAG: chains side by side, walks run downwards. Bottleneck DAG: walks run to the right,
the paths of a corridor above each other, bottlenecks larger and grey.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from maskwalk.errors import MaskwalkError
from maskwalk.worlds.walks.graphs import Graph, bottleneck_dag, tree_line_dag

SMALL, LARGE = 0.31, 0.42  # radii of ordinary nodes and bottlenecks
Place = tuple[float, float]


def draw_dags(directory: Path) -> list[Path]:
    """Draws the figures' two DAGs (d = 3, m = 2; K = 2, W = 4) as SVG and PNG into `directory`."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        return _tree_line(directory, 3, 2) + _bottleneck(directory, 2, 4)
    except OSError as problem:
        raise MaskwalkError(
            f"Cannot write drawings to {directory}: {problem.strerror}. Name another directory."
        ) from None


def _tree_line(directory: Path, d: int, m: int) -> list[Path]:
    graph = tree_line_dag(d, m)
    places: list[Place] = [(1.4 * (d - 1) / 2, 0.0)]
    labels = [r"$\rho$"]
    for i in range(d):
        for j in range(m):
            places.append((1.4 * i, -1.5 - 1.3 * j))
            labels.append(f"$v_{{{i + 1},{j + 1}}}$")
    return _draw(graph, places, labels, set(), directory / "tree_line_dag")


def _bottleneck(directory: Path, K: int, W: int) -> list[Path]:
    graph = bottleneck_dag(K, W)
    places: list[Place] = []
    labels: list[str] = []
    for i in range(K):
        left = 4.7 * i
        rows = [(W - 1) / 2 - j for j in range(W)]
        places += [(left, 0.0), *((left + 1.1, y) for y in rows), *((left + 2.2, y) for y in rows)]
        places.append((left + 3.3, 0.0))
        inner = [f"${name}_{{{i + 1},{j + 1}}}$" for name in "ab" for j in range(W)]
        labels += [f"$u_{i + 1}$", *inner, f"$v_{i + 1}$"]
    size = 2 * W + 2
    grey = {n for n in range(graph.nodes) if n % size in (0, size - 1)}
    return _draw(graph, places, labels, grey, directory / "bottleneck_dag")


def _draw(
    graph: Graph, places: list[Place], labels: list[str], grey: set[int], stem: Path
) -> list[Path]:
    """Circles at the places, arrows along the arcs; the same bytes every time."""
    radius = [LARGE if n in grey else SMALL for n in range(graph.nodes)]
    low, high = np.min(places, axis=0) - 0.6, np.max(places, axis=0) + 0.6
    figure = Figure(figsize=tuple(0.75 * (high - low)))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    axes.axis("off")
    for a, b in zip(graph.sources.tolist(), graph.targets.tolist()):
        axes.add_patch(_arrow(places[a], radius[a], places[b], radius[b]))
    for n, (place, label) in enumerate(zip(places, labels, strict=True)):
        fill = "#d9d9d9" if n in grey else "white"
        axes.add_patch(Circle(place, radius[n], facecolor=fill, edgecolor="black", lw=1.2))
        axes.text(*place, label, ha="center", va="center", fontsize=13 if n in grey else 10)
    paths = [stem.with_suffix(suffix) for suffix in (".svg", ".png")]
    with mpl.rc_context({"svg.hashsalt": stem.name}):
        figure.savefig(paths[0], metadata={"Date": None})
    figure.savefig(paths[1], dpi=160)
    return paths


def _arrow(a: Place, from_radius: float, b: Place, to_radius: float) -> FancyArrowPatch:
    """From the rim of one circle to the rim of the other."""
    step = np.subtract(b, a)
    unit = step / np.hypot(*step)
    return FancyArrowPatch(
        tuple(np.add(a, unit * from_radius)),
        tuple(np.subtract(b, unit * (to_radius + 0.02))),
        arrowstyle="-|>",
        mutation_scale=10,
        lw=1.2,
        color="black",
        shrinkA=0,
        shrinkB=0,
    )
