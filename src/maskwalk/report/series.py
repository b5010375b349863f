"""Lines against a parameter: quality and cost against bridges, memory order, separation.

A record says where it stands on an axis: `"axis": {"name": "bridges b", "value": 8, "marks": [4]}`
(marks are vertical lines). Two kinds of axis are told apart by the records alone:

    of the world     every world has one value; a line is a sampler, across the worlds
    of the sampler   one world has many values; a line is what differs only in the parameter that
                     equals the value, and samplers of that world without a value are level lines

A metric that holds its own curve, `{"by": [{"at": 3, "value": .5, "se": .02, "n": 640}, …]}`, is a
figure for every world and task; what follows "_by_" in its name is the axis.
"""

from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from typing import Any

from maskwalk.bench import labels
from maskwalk.bench.records import Record
from maskwalk.report.estimates import Estimate, estimate, finite, read_estimate
from maskwalk.report.study import Place, Study
from maskwalk.specs import Spec
from maskwalk.worlds.metrics import COST, METRICS, Metric

BY = "_by_"
AXES = {"separation": "separation h", "level": "levels up h"}


@dataclass(frozen=True)
class Point:
    """One estimate on a line, and the sampler it belongs to; a level line has x None."""

    x: float | None
    estimate: Estimate
    sampler: int

    @property
    def value(self) -> float:
        """The number alone."""
        return self.estimate.value


@dataclass(frozen=True)
class Line:
    """The points of one line in one mode, by x."""

    mode: int
    label: str
    family: str
    points: list[Point]

    @property
    def level(self) -> bool:
        """Whether it does not depend on the axis."""
        return self.points[0].x is None


@dataclass(frozen=True)
class Series:
    """One figure: a metric against an axis."""

    axis: str
    title: str
    task: str
    metric: Metric
    marks: list[tuple[float, str]]  # vertical lines and what stands above them
    lines: list[Line]

    @property
    def y(self) -> str:
        """What the y axis says."""
        of_cost = self.metric.role == COST
        return f"{self.metric.title} per sequence" if of_cost else self.metric.title

    @property
    def values(self) -> list[float]:
        """The places on the axis, over all lines."""
        return sorted({p.x for line in self.lines for p in line.points if p.x is not None})

    @property
    def logarithmic(self) -> bool:
        """Whether the places spread over powers, as 1, 8, 64 do."""
        return (
            len(self.values) > 2 and self.values[0] > 0 and self.values[-1] >= 16 * self.values[0]
        )


Entry = tuple[Place, Record, float | None]  # where, what, and its value on the axis
Frame = tuple[Series, list[tuple[str, Entry]]]  # without lines, and what belongs to which line


def series(study: Study) -> list[Series]:
    """Every line figure of the study, in the order of its records."""
    figures: dict[tuple[str, ...], list[Entry]] = {}
    for (name, task), entries in _axes(study).items():
        along = _along(entries)
        for entry in entries:
            figures.setdefault((name, task, _fixed(entry[1], along)), []).append(entry)
    frames: list[Frame] = []
    alone = swept(study)
    for (name, *_), entries in figures.items():
        own = any(place[1] in alone for place, *_ in entries)
        frames += _of_sampler(study, name, entries) if own else [_of_world(study, name, entries)]
    lines = [one for frame in frames for one in _by_metric(study, *frame)]
    return [one for one in [*lines, *_curves(study)] if len(one.values) > 1]


def place_on_axis(record: Record) -> tuple[str, float | None]:
    """The axis a record stands on, "" for none, and where; a level line has no place."""
    axis = record.get("axis")
    if not isinstance(axis, dict) or not axis.get("name"):
        return "", None
    return str(axis["name"]), finite(axis.get("value"))


def _axes(study: Study) -> dict[tuple[str, str], list[Entry]]:
    """What stands on each axis, task by task."""
    axes: dict[tuple[str, str], list[Entry]] = {}
    for place, record in study.cells.items():
        name, value = place_on_axis(record)
        if name:
            key = (name, study.panels[place[1]].task)
            axes.setdefault(key, []).append((place, record, value))
    return axes


def _along(entries: list[Entry]) -> set[str]:
    """The parameters of the worlds that hold the axis's value in every record."""
    known = [(record, value) for _, record, value in entries if value is not None]
    holding = [
        {key for key, part in _parameters(record) if value in _numbers(part)}
        for record, value in known
    ]
    return set.intersection(*holding) if holding else set()


def _fixed(record: Record, along: set[str]) -> str:
    """What the worlds of one figure share: all but the numbers that the axis runs along.

    Those of the first parameter (a graph) go too: a structure may have more to it than the value.
    """
    parts = []
    for i, (key, part) in enumerate(_parameters(record)):
        free = not i or key == "seed" or key in along
        stars = labels.line(part) if isinstance(part, Spec) else "*"
        parts.append(f"{key}={stars if free else part}")
    return f"{labels.read(str(record['world'])).name}({', '.join(parts)})"


def _parameters(record: Record) -> list[tuple[str, Any]]:
    return list(labels.read(str(record["world"])).kwargs.items())


def _numbers(part: Any) -> list[float | None]:
    return list(labels.numbers(part).values()) if isinstance(part, Spec) else [finite(part)]


def swept(study: Study) -> set[int]:
    """The panels in which a parameter of the samplers is the axis."""
    values: dict[tuple[str, int], set[float]] = {}
    for (_, panel, _), record in study.cells.items():
        name, value = place_on_axis(record)
        if value is not None:
            values.setdefault((name, panel), set()).add(value)
    return {panel for (_, panel), different in values.items() if len(different) > 1}


def _of_world(study: Study, name: str, entries: list[Entry]) -> Frame:
    titles = dict.fromkeys(study.panels[place[1]].title for place, *_ in entries)
    task = study.panels[entries[0][0][1]].task
    frame = Series(name, _shared(list(titles)), task, study.cost, _marks(entries), [])
    placed = [entry for entry in entries if entry[2] is not None]
    return frame, [(study.samplers[entry[0][2]].spec, entry) for entry in placed]


def _of_sampler(study: Study, name: str, entries: list[Entry]) -> list[Frame]:
    out = []
    for panel in dict.fromkeys(place[1] for place, *_ in entries):
        mine = [entry for entry in entries if entry[0][1] == panel]
        on_it = {place for place, *_ in mine}
        level = [entry for entry in mine if entry[2] is None] or [
            (place, record, None)
            for place, record in study.cells.items()
            if place[1] == panel and place not in on_it
        ]
        knobs = _knobs(study, mine)
        keyed = []
        for entry in [*(e for e in mine if e[2] is not None), *level]:
            sampler = study.samplers[entry[0][2]]
            along = knobs.get(sampler.family, set()) if entry[2] is not None else set()
            keyed.append((labels.line(labels.read(sampler.spec), along), entry))
        title, task = study.panels[panel].title, study.panels[panel].task
        out.append((Series(name, title, task, study.cost, _marks(mine), []), keyed))
    return out


def _knobs(study: Study, entries: list[Entry]) -> dict[str, set[str]]:
    """For every family the parameters that equal the axis value in all its records."""
    out: dict[str, set[str]] = {}
    for (_, _, s), _, value in entries:
        if value is not None:
            sampler = study.samplers[s]
            numbers = labels.numbers(labels.read(sampler.spec))
            equal = {path for path, number in numbers.items() if number == value}
            out[sampler.family] = out.get(sampler.family, equal) & equal
    return out


def _shared(titles: list[str]) -> str:
    """What the titles of an axis's worlds begin with, in whole words; else all, or how many."""
    words = zip(*(title.split() for title in titles))
    prefix = [w[0] for w in takewhile(lambda w: len(set(w)) == 1, words)]
    every = " / ".join(titles) if len(titles) < 4 else f"{len(titles)} worlds"
    return " ".join(prefix).rstrip(",;:·") or every


def _marks(entries: list[Entry]) -> list[tuple[float, str]]:
    """Numbers, or {"at": 5, "label": "K + 1"}."""
    out: dict[float, str] = {}
    for mark in (m for _, record, _ in entries for m in record["axis"].get("marks") or []):
        at = finite(mark.get("at") if isinstance(mark, dict) else mark)
        if at is not None:
            out[at] = str(mark.get("label", f"{at:g}")) if isinstance(mark, dict) else f"{at:g}"
    return sorted(out.items())


def _by_metric(study: Study, frame: Series, keyed: list[tuple[str, Entry]]) -> list[Series]:
    """The figure of the quality, and that of the cost."""
    out = []
    for metric in (m for m in (study.quality, study.cost) if m):
        lines: dict[tuple[int, str], list[Point]] = {}
        for key, (place, record, x) in keyed:
            result = estimate(record, metric)
            if result:
                mode, _, sampler = place
                lines.setdefault((mode, key), []).append(Point(x, result, sampler))
        named = [_line(study, mode, points) for (mode, _), points in lines.items()]
        out.append(replace(frame, metric=metric, lines=_named(study, named)))
    return out


def _line(study: Study, mode: int, points: list[Point]) -> Line:
    points = sorted(points, key=lambda p: p.x or 0.0)
    first = study.samplers[points[0].sampler]
    return Line(mode, first.label, first.family, points)


def _named(study: Study, lines: list[Line]) -> list[Line]:
    """A line over several samplers has the name they share, "bisection" of "bisection order 1"."""
    order = sorted(lines, key=lambda line: (line.mode, line.points[0].sampler))
    out = []
    for _, group in groupby(order, key=lambda line: (line.mode, line.family)):
        mates = list(group)
        for line in mates:
            several = len({p.sampler for p in line.points}) > 1
            family = next(f for f in study.families if f.name == line.family)
            short = several and len(mates) == 1
            common = _common([study.samplers[p.sampler].label for p in line.points])
            label = family.label if short else common if several else line.label
            out.append(replace(line, label=label or line.label))
    return out


def _common(names: list[str]) -> str:
    words = [name.split() for name in names]
    return " ".join(w[0] for w in zip(*words) if len(set(w)) == 1)


def _curves(study: Study) -> list[Series]:
    """Metrics that are curves of their own, a figure for every world and task."""
    figures: dict[tuple[int, Metric], list[Line]] = {}
    for (mode, panel, sampler), record in study.cells.items():
        for key, numbers in record["metrics"].items():
            rows = numbers.get("by") if isinstance(numbers, dict) else None
            if not rows or BY not in key:
                continue
            metric = METRICS.describe(key, record.get("described"))
            per_prompt = finite(record.get("per_prompt")) or 1.0
            points = [p for row in rows if (p := _point(row, metric, per_prompt, sampler))]
            if points:
                line = _line(study, mode, points)
                figures.setdefault((panel, metric), []).append(line)
    out = []
    for (panel, metric), lines in figures.items():
        by = metric.key.partition(BY)[2]
        place, axis = study.panels[panel], AXES.get(by, labels.spoken(by))
        out.append(Series(axis, place.title, place.task, metric, [], _named(study, lines)))
    return out


def _point(row: Any, metric: Metric, per_prompt: float, sampler: int) -> Point | None:
    result = read_estimate(row, metric, per_prompt)
    x = finite(row.get("at")) if result else None
    return None if result is None or x is None else Point(x, result, sampler)
