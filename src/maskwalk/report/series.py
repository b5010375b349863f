"""Lines against a parameter: coherence and calls against bridges, memory order, separation.

A record says where it stands on an axis: `"axis": {"name": "bridges b", "value": 8, "marks": [4]}`
(marks are vertical lines). Two kinds of axis are told apart by the records alone:

    of the graph     every graph has one value; a line is a sampler, across the graphs
    of the sampler   one graph has many values; a line is what differs only in the parameter that
                     equals the value, and samplers of that graph without a value are level lines

A metric that holds its own curve, `{"by": [{"at": 3, "value": .5, "se": .02, "n": 640}, …]}`, such
as `coherence_by_separation`, is a figure for every graph and task.
"""

from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from typing import Any

from maskwalk.bench import labels
from maskwalk.report.study import Estimate, Record, Study, estimate, finite

METRICS = {"coherence": "coherence", "calls": "calls per walk"}
BY = "_by_"  # metrics that are curves: coherence_by_separation
SAID = {"separation": "separation h"}


@dataclass(frozen=True)
class Point:
    """One estimate on a line, and the sampler it belongs to; a level line has x None."""

    x: float | None
    value: float
    se: float | None
    n: int | None
    sampler: int


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
    metric: str
    marks: list[tuple[float, str]]  # vertical lines and what stands above them
    lines: list[Line]

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


Found = tuple[tuple[int, int, int], Record, float | None]  # place, record, value on the axis


def series(study: Study) -> list[Series]:
    """Every line figure of the study, in the order of its records."""
    figures: dict[tuple[Any, ...], list[Found]] = {}
    for place, record in study.cells.items():
        name, value = place_on_axis(record)
        if name:
            figures.setdefault((name, *_setting(record)), []).append((place, record, value))
    out, own = [], swept(study)
    for (name, *_), found in figures.items():
        one = any(place[1] in own for place, *_ in found)
        out += _of_sampler(study, name, found) if one else [_of_graph(study, name, found)]
    kept = [split for one in out for split in _by_metric(study, *one)]
    return [s for s in [*kept, *_curves(study)] if len(s.values) > 1]


def place_on_axis(record: Record) -> tuple[str, float | None]:
    """The axis a record stands on, "" for none, and where; a level line has no place."""
    held = record.get("axis")
    if not isinstance(held, dict) or not held.get("name"):
        return "", None
    return str(held["name"]), finite(held.get("value"))


def _setting(record: Record) -> tuple[Any, ...]:
    """What the graphs of one axis share."""
    family = labels.leading_name(str(record.get("graph")))
    return (labels.task_label(record["task"]), family, record.get("walk"), record.get("length"))


def swept(study: Study) -> set[int]:
    """The panels in which a parameter of the samplers is the axis."""
    values: dict[tuple[str, int], set[float]] = {}
    for (_, panel, _), record in study.cells.items():
        name, value = place_on_axis(record)
        if value is not None:
            values.setdefault((name, panel), set()).add(value)
    return {panel for (_, panel), held in values.items() if len(held) > 1}


Figure = tuple[Series, list[tuple[str, Found]]]  # without its lines, and what belongs to which line


def _of_graph(study: Study, name: str, found: list[Found]) -> Figure:
    titles = dict.fromkeys(study.panels[place[1]].title for place, *_ in found)
    task = study.panels[found[0][0][1]].task
    frame = Series(name, _shared(list(titles)), task, "", _marks(found), [])
    known = [item for item in found if item[2] is not None]
    return frame, [(study.samplers[item[0][2]].spec, item) for item in known]


def _of_sampler(study: Study, name: str, found: list[Found]) -> list[Figure]:
    out = []
    for panel in dict.fromkeys(place[1] for place, *_ in found):
        mine = [item for item in found if item[0][1] == panel]
        on_it = {place for place, *_ in mine}
        level = [item for item in mine if item[2] is None] or [
            (place, record, None)
            for place, record in study.cells.items()
            if place[1] == panel and place not in on_it
        ]
        knobs = _knobs(study, mine)
        keyed = []
        for item in [*(m for m in mine if m[2] is not None), *level]:
            sampler = study.samplers[item[0][2]]
            along = knobs.get(sampler.family, set()) if item[2] is not None else set()
            spec = labels.read(sampler.spec)
            keyed.append((labels.line(spec, along), item))
        shown = study.panels[panel]
        out.append((Series(name, shown.title, shown.task, "", _marks(mine), []), keyed))
    return out


def _knobs(study: Study, found: list[Found]) -> dict[str, set[str]]:
    """For every family the parameters that equal the axis value in all its records."""
    out: dict[str, set[str]] = {}
    for (_, _, s), _, value in found:
        if value is not None:
            sampler = study.samplers[s]
            held = labels.numbers(labels.read(sampler.spec))
            equal = {path for path, number in held.items() if number == value}
            out[sampler.family] = out.get(sampler.family, equal) & equal
    return out


def _shared(titles: list[str]) -> str:
    """What the titles of an axis's graphs begin with, in whole words; else all, or how many."""
    words = zip(*(title.split() for title in titles))
    prefix = [w[0] for w in takewhile(lambda w: len(set(w)) == 1, words)]
    every = " / ".join(titles) if len(titles) < 4 else f"{len(titles)} graphs"
    return " ".join(prefix).rstrip(",;:·") or every


def _marks(found: list[Found]) -> list[tuple[float, str]]:
    """Numbers, or {"at": 5, "label": "K + 1"}."""
    out: dict[float, str] = {}
    for mark in (m for _, record, _ in found for m in record["axis"].get("marks") or []):
        at = finite(mark.get("at") if isinstance(mark, dict) else mark)
        if at is not None:
            out[at] = str(mark.get("label", f"{at:g}")) if isinstance(mark, dict) else f"{at:g}"
    return sorted(out.items())


def _by_metric(study: Study, frame: Series, keyed: list[tuple[str, Found]]) -> list[Series]:
    """The figure of every metric that the records hold."""
    out = []
    for metric in METRICS:
        lines: dict[tuple[int, str], list[Point]] = {}
        for key, (place, record, x) in keyed:
            held = estimate(record, metric)
            if held:
                mode, _, sampler = place
                lines.setdefault((mode, key), []).append(_point(x, held, sampler))
        made = [_line(study, mode, points) for (mode, _), points in lines.items()]
        out.append(replace(frame, metric=metric, lines=_named(study, made)))
    return out


def _point(x: float | None, held: Estimate, sampler: int) -> Point:
    return Point(x, held.value, held.se, held.n, sampler)


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
    """Metrics that are curves of their own, a figure for every graph and task."""
    figures: dict[tuple[int, str], list[Line]] = {}
    for (mode, panel, sampler), record in study.cells.items():
        for metric, held in record["metrics"].items():
            rows = held.get("by") if isinstance(held, dict) else None
            points = [p for row in rows or [] if (p := _row(row, sampler))]
            if points and BY in metric:
                line = _line(study, mode, points)
                figures.setdefault((panel, metric), []).append(line)
    out = []
    for (panel, metric), lines in figures.items():
        what, _, by = metric.partition(BY)
        shown = study.panels[panel]
        axis = SAID.get(by, labels.spoken(by))
        out.append(Series(axis, shown.title, shown.task, what, [], _named(study, lines)))
    return out


def _row(row: Any, sampler: int) -> Point | None:
    if not isinstance(row, dict):
        return None
    x, value, n = (finite(row.get(key)) for key in ("at", "value", "n"))
    if x is None or value is None:
        return None
    return Point(x, value, finite(row.get("se")), None if n is None else int(n), sampler)
