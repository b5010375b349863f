"""The page of an evaluation: contract, verdict, where the policy stands on each front, nats lost.

Its figures are drawn here, so it can be read without scripts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskwalk import __version__
from maskwalk.bench.labels import samplers
from maskwalk.bench.verdict.read import Point, Setting, Stage, Verdict, read_evaluations
from maskwalk.bench.verdict.words import signed
from maskwalk.report.page import pasted, render
from maskwalk.resources import write_file

PAGE, REPORT = "verdict.html", "report.html"
WIDE, HIGH, LEFT, RIGHT, TOP, FOOT = 420, 250, 38, 14, 12, 34  # of a figure, in its own units
MEANS = {
    "beyond": "more often coherent than any mixture of baselines with as many calls",
    "near": "shaped, and within .05 of the law with 95 % confidence",
    "on": "no difference to the front is shown, corrected for the number of comparisons",
    "unclear": "shaped, and shown to be neither on nor off the law",
    "inside": "less often coherent than a mixture of baselines with as many calls",
    "dominated": "a baseline with fewer calls is at least as coherent",
    "off": "its sequences are further from the law than those of one token at a time",
    "void": "hardly a sequence is coherent, its own or the baselines'",
}
GOOD, BAD = ("beyond", "near"), ("inside", "dominated", "off")


@dataclass(frozen=True)
class Mark:
    """A point of a figure, with what a reader is told of it."""

    x: float
    y: float
    low: float
    high: float
    label: str
    words: str


@dataclass(frozen=True)
class Figure:
    """Quality against cost in a scene: baselines, their front, and the policy's settings."""

    baselines: list[Mark]
    settings: list[Mark]
    front: str
    columns: list[tuple[float, str]]
    rows: list[tuple[float, str]]


def write_verdicts(directory: Path, player: bool = False) -> Path | None:
    """Writes the page of a directory's evaluations; None where there are none.

    It links the `player` of the report beside it, where there is one or one is about to be.
    """
    found = read_evaluations(directory)
    if not found:
        return None
    path = directory / PAGE
    player = player or (directory / REPORT).is_file()
    write_file(path, verdict_page(found, player).encode())
    return path


def across(cards: int) -> int:
    """How many cards stand in a row: at most five, and the last row as full as can be."""
    return max(range(min(cards, 5), 1, -1), key=lambda n: ((cards - 1) % n + 1) / n, default=1)


def verdict_page(found: Sequence[Verdict], player: bool = False) -> str:
    """The page as text, the first evaluation first; `player`: the report beside it has one."""
    specs = {b.name for one in found for scene in one.scenes for b in scene.baselines}
    return render(
        "verdict.html",
        style=pasted("style.css", "verdict.css"),
        verdicts=[(one, [(scene, figure(scene)) for scene in one.scenes]) for one in found],
        names={one.spec: one.label for one in samplers(sorted(specs))},
        report=REPORT if player else None,
        signed=signed,
        tone=tone,
        across=across,
        means=MEANS,
        bar=forest,
        lost=_lost,
        chance=lambda p: "< .001" if p < 0.001 else f"{p:.3f}",
        size=(WIDE, HIGH, LEFT, RIGHT, TOP, FOOT),
        version=__version__,
    )


def tone(position: str) -> str:
    """The colour of a position: good, bad or neither."""
    return "good" if position in GOOD else "bad" if position in BAD else "even"


def figure(scene: Stage) -> Figure:
    """The places of every mark; the cost's axis begins at 0, the quality's runs from 0 to 1."""
    points = [*scene.baselines, *(s.point for s in scene.settings)]
    most = max((p.cost for p in points), default=1.0) or 1.0
    labels = {s.spec: s.label for s in samplers([b.name for b in scene.baselines])}
    front = sorted((p for p in scene.baselines if p.on_front), key=lambda p: p.cost)
    if front:  # one may always ask more often than the best needs
        front = [*front, Point("", max(most, front[-1].cost), front[-1].quality, 0.0)]
    return Figure(
        [_mark(p, most, labels.get(p.name, p.name)) for p in scene.baselines],
        [_mark(s.point, most, s.point.name) for s in scene.settings],
        " ".join(f"{x(p.cost, most):.1f},{y(p.quality):.1f}" for p in front),
        [(x(c, most), f"{c:g}") for c in _ticks(most)],
        [(y(q), f"{q:g}") for q in (0, 0.25, 0.5, 0.75, 1)],
    )


def x(cost: float, most: float) -> float:
    """Where a cost stands."""
    return LEFT + (WIDE - LEFT - RIGHT) * cost / most


def y(quality: float) -> float:
    """Where a share stands."""
    return HIGH - FOOT - (HIGH - TOP - FOOT) * quality


def _mark(point: Point, most: float, label: str) -> Mark:
    low, high = max(point.quality - point.half, 0.0), min(point.quality + point.half, 1.0)
    words = f"{label}: {point.quality:.3f} ± {point.half:.3f} at {point.cost:.3g}"
    return Mark(x(point.cost, most), y(point.quality), y(low), y(high), label, words)


def _ticks(most: float) -> list[float]:
    step = next(s for s in (0.5, 1, 2, 4, 5, 8, 10, 20, 50, 100, 1e9) if most / s <= 7)
    return [step * i for i in range(int(most / step) + 1)]


def forest(setting: Setting) -> dict[str, float] | None:
    """The interval of a difference on a line from -1 to 1, in per cent of its width."""
    shown = setting.front
    if shown is None:
        return None
    low, middle, high = (50 + 50 * max(-1.0, min(1.0, shown[k])) for k in ("low", "value", "high"))
    return {"low": low, "middle": middle, "width": high - low}


def _lost(one: Verdict) -> dict[str, Any]:
    """Nats lost by replay, scene by scene, with bars on one scale."""
    rows = [
        (scene.title, s.point.name, *parts)
        for scene in one.scenes
        for s in scene.settings
        if (parts := _parts(s)) is not None
    ]
    most = max((dependence + denoiser for *_, dependence, denoiser in rows), default=0.0) or 1.0
    return {"rows": rows, "most": most}


def _parts(setting: Setting) -> tuple[float, float] | None:
    """What is lost to dependence and to the denoiser, where both are known."""
    dependence, denoiser = ((setting.loss or {}).get(k) for k in ("dependence", "denoiser"))
    return None if dependence is None or denoiser is None else (dependence, denoiser)
