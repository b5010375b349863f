"""The figure and the front of docs/frontier.md: quality against calls, distance and KL.

    python benchmarks/frontier.py                                       # the front, a table
    python benchmarks/frontier.py --figure docs/figures/frontier.svg    # the figure
    python benchmarks/frontier.py --task endpoints

From the records of seeds, maskings, zeros and long in results/frontier, 16,384 walks per cell, and
for coherence against calls also those of the shipped model in results/atlas, 512 walks per cell. A
setting is on the front if no other is at least as good in all of: coherence, calls, TV excess (not
between endpoints) and the bound on KL. Draws that lose a measured walk, in whatever order their
sampler takes, have no finite bound, and stand last in it.
"""

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from maskwalk.bench.labels import samplers as labels
from maskwalk.bench.records import Record, latest, load_records
from maskwalk.report.drawing import saved

RESULTS = Path(__file__).parent.parent / "results"
SEEDS = ("st_er_deg7_coarse", "st_er_deg7_coarse_seed1", "st_er_deg7_coarse_seed2")
NAMES = {
    "zoo:st_er_deg7": "shipped",
    "zoo:deg7_uniform": "uniform",
    "zoo:deg7_coarse": "half coarse",
    "zoo:deg7_coarse_most": "mostly coarse",
    "zoo:deg7_planner": "planner",
    "zoo:deg7_mistakes": "mistakes",
    "zoo:deg7_distil": "distil",
    "zoo:deg7_along": "along",
    "zoo:deg7_along_all": "along, all",
    "zoo:deg7_entmax": "entmax",
    **{f"zoo:{name}": f"chain, seed {seed}" for seed, name in enumerate(SEEDS)},
}
LONG = "chain, 150,000 steps"
CHAINS = (*(NAMES[f"zoo:{name}"] for name in SEEDS), LONG)
GROUPS = (
    ("shipped model, every rule of the atlas", ("shipped",), "#8b95a1"),
    ("paper's network, dropout 0", ("uniform", "half coarse", "mostly coarse"), "#c2571a"),
    ("the same, an output with zeros", ("entmax",), "#2f6fb0"),
    ("the same, a planner's weight", ("planner",), "#8a4fb0"),
    ("the same, other maskings", ("mistakes", "distil", "along", "along, all"), "#c9a227"),
    ("small network with a chain", CHAINS, "#0f7b6c"),
)


@dataclass(frozen=True)
class Point:
    """A setting with what it costs; None where a record has no such number."""

    model: str
    sampler: str
    draw: str
    coherence: float
    calls: float
    excess: float | None
    kl: float | None

    @property
    def exact(self) -> bool:
        """Whether its draws are the model's marginals."""
        return self.draw == "exact"

    def costs(self) -> tuple[float, ...]:
        """What a front compares, all the smaller the better."""
        kl = inf if self.kl is None else self.kl
        return (-self.coherence, self.calls, 0.0 if self.excess is None else self.excess, kl)


def points(
    folder: str, task: str, denoiser: str | None = None, model: str | None = None
) -> Iterator[Point]:
    """The settings of a folder of records on one task; `model`: its name, if not the usual."""
    records = [
        r
        for r in latest(load_records(RESULTS / folder))
        if r["denoiser"] in NAMES
        and denoiser in (None, r["denoiser"])
        and r["task"].startswith(task)
        and "coherence" in r["metrics"]
    ]
    names = {s.spec: s.label for s in labels(list(dict.fromkeys(r["sampler"] for r in records)))}
    for record in records:
        if record["mode"] == "exact" or record["mode"].startswith("draw(floor"):
            yield _point(record, names, model or NAMES[record["denoiser"]])


def _point(record: Record, names: dict[str, str], model: str) -> Point:
    metrics: dict[str, Any] = record["metrics"]
    tv, kl = metrics.get("tv1") or {}, metrics.get("replay_kl") or {}
    draw = record["mode"] if record["mode"] == "exact" else record["mode"][len("draw(") : -1]
    return Point(
        model,
        names[record["sampler"]],
        draw.replace("=", " "),
        metrics["coherence"]["value"],
        metrics["calls"]["value"],
        tv["value"] - tv["floor"] if "floor" in tv else None,
        kl.get("value"),
    )


def measured(task: str) -> list[Point]:
    """All that was measured with 16,384 walks."""
    folders = ("seeds", "maskings", "zeros")
    several = [point for folder in folders for point in points(f"frontier/{folder}", task)]
    return [*several, *points("frontier/long", task, model=LONG)]


def front(every: list[Point]) -> list[Point]:
    """Those that no other equals or beats in everything, the dearest in calls last."""
    costs = {point: point.costs() for point in every}

    def beaten(mine: tuple[float, ...]) -> bool:
        return any(
            other != mine and all(a <= b for a, b in zip(other, mine)) for other in costs.values()
        )

    best = [point for point in every if not beaten(costs[point])]
    return sorted(best, key=lambda p: (p.calls, -p.coherence))


def verify(name: str, *words: str) -> str:
    """What docs/frontier.md is compared with."""
    return front_table(*words)


def front_table(task: str = "unconditional") -> str:
    """The front as a Markdown table."""
    head = ["model", "sampler", "draws", "calls", "coherence", "TV excess", "KL per token, at most"]
    rows = [head, ["---"] * len(head), *(_row(point) for point in front(measured(task)))]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(point: Point) -> list[str]:
    def shown(value: float | None, digits: int, none: str = "–") -> str:
        return none if value is None else re.sub(r"^0\.", ".", f"{value:.{digits}f}")

    return [
        point.model,
        point.sampler,
        point.draw,
        f"{point.calls:.1f}",
        shown(point.coherence, 3),
        shown(point.excess, 4),
        shown(point.kl, 4, "no bound"),
    ]


def figure(task: str, file: Path) -> None:
    """Three panels with one vertical axis."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "frontier", "font.size": 9})
    every = [*points("atlas", task, "zoo:st_er_deg7"), *measured(task)]
    panels: list[tuple[str, str]] = [
        ("calls", "calls per walk"),
        ("excess", "transition TV above the floor"),
        ("kl", "KL to the true distribution, nats per token"),
    ]
    panels = [(k, t) for k, t in panels if any(getattr(p, k) is not None for p in measured(task))]
    sheet = Figure(figsize=(4.1 * len(panels), 4.3), layout="constrained")
    for axis, (key, title) in zip(sheet.subplots(1, len(panels), sharey=True), panels):
        _points(axis, every, key)
        axis.set_xlabel(title)
        axis.grid(alpha=0.25, linewidth=0.5)
        axis.spines[["top", "right"]].set_visible(False)
        if key != "excess":
            axis.set_xscale("log")
        if key == "calls":
            axis.axvline(8, color="#555", linewidth=0.6, linestyle=":")
            axis.set_xticks([1, 2, 5, 8, 12, 24], ["1", "2", "5", "8", "12", "24"], minor=False)
            axis.minorticks_off()
            axis.set_ylabel("coherence")
    _legend(sheet)
    file.write_bytes(saved(sheet, "svg"))


def _points(axis: Any, every: list[Point], key: str) -> None:
    """Coherence against one cost; the shipped model, of few walks, against calls only."""
    shown = [p for p in every if getattr(p, key) is not None]
    for _, models, colour in GROUPS:
        few = models == ("shipped",)
        for exact in (True, False) if key == "calls" or not few else ():
            mine = [p for p in shown if p.model in models and p.exact == exact]
            axis.plot(
                [getattr(p, key) for p in mine],
                [p.coherence for p in mine],
                linestyle="",
                marker="o",
                markersize=3.5 if few else 5,
                markerfacecolor=colour if exact else "none",
                markeredgecolor=colour,
                alpha=0.5 if few else 0.95,
            )
    random = next(p for p in shown if p.sampler.startswith("random") and p.model in CHAINS)
    where = (getattr(random, key), random.coherence)
    axis.annotate("random ×4", where, (0, 8), textcoords="offset points", ha="center")


def _legend(sheet: Any) -> None:
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], marker="o", linestyle="", color=colour, markersize=5, label=name)
        for name, _, colour in GROUPS
    ]
    marks.append(Line2D([], [], marker="o", linestyle="", color="#333", markersize=5))
    marks[-1].set(markerfacecolor="none", label="hollow: draws with a floor")
    sheet.legend(handles=marks, loc="outside lower center", ncols=3, frameon=False, fontsize=8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--task", default="unconditional")
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    if given.figure is None:
        print(front_table(given.task))
    else:
        figure(given.task, given.figure)


if __name__ == "__main__":
    main()
