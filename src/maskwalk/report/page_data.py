"""What the page carries for its scripts, as one JSON object: numbers, intervals, traces, texts.

An estimate is {v, half, n, …}: the value, half of its 95 % interval, of how many sequences. Scripts
read these; they compute no error themselves.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from maskwalk.bench.records import Record
from maskwalk.bench.stored import loaded
from maskwalk.decoding.draw import decoding_in
from maskwalk.report.budgets import crowded
from maskwalk.report.estimates import Estimate, finite, floor_of, published
from maskwalk.report.frames import frames
from maskwalk.report.losses import Group, losses_data
from maskwalk.report.player.casts import casts
from maskwalk.report.series import Series
from maskwalk.report.study import REFERENCE, Place, Study
from maskwalk.worlds.metrics import COST, Metric

EXTRAS = ("max", "excess")  # what else an estimate may say in a tooltip
MOST_TRACED = 60_000  # tokens of traces a page carries, about a megabyte
SIGNS = 8  # of a picture take as much room as a token
BISECTIONS = ("bisection", "guided_bisection")
Data = dict[str, Any]


def page_data(
    study: Study,
    series: Sequence[Series] = (),
    losses: Sequence[Group] = (),
    traced: set[tuple[int, int]] | None = None,
    again: Sequence[Data] = (),
    own: Sequence[str] = (),
) -> Data:
    """What the figures, traces and texts draw, as compactly as is readable.

    `again` are the casts that were played again, which the player opens on; `own` families are
    those that an evaluation is on.
    """
    played = {(cast["m"], cast["p"]) for cast in again}
    texts = text_panels(study)
    drawn = {place: decoding_in(record, False) for place, record in study.cells.items()}
    draws = sorted({line for line in drawn.values() if line})
    cells: list[Data] = [
        {"m": m, "p": p, "s": s}
        | ({"d": draws.index(line)} if (line := drawn[m, p, s]) else {})
        | _cell(study, record)
        | _law(study, (m, p, s))
        | (_traced(record) if traced is None or (m, p) in traced else {})
        for (m, p, s), record in study.cells.items()
    ]
    traces = {(one["m"], one["p"], one["s"]): one["trace"] for one in cells if "trace" in one}
    return {
        "modes": study.modes,
        "crowd": crowded(study),
        "single": study.single,
        "reference": REFERENCE,
        "unit": study.unit,
        "cost": study.cost.key,
        "quality": study.quality.key if study.quality else None,
        "metrics": [_metric(metric) for metric in _told(study)],
        **_legend(study),
        "panels": [{"title": p.title, "task": p.task} for p in study.panels],
        "draws": draws,
        "cells": cells,
        "casts": [
            *again,
            *(c for c in casts(study, traces, own) if (c["m"], c["p"]) not in played),
        ],
        "references": [
            {"m": m, "p": p, "s": None} | _cell(study, record)
            for (m, p), record in study.references.items()
        ],
        "pairs": [[list(text_pair(study, m, p)) for p in texts] for m in range(len(study.modes))],
        "textPanels": texts,
        "series": [_series(study, one) for one in series],
        "losses": losses_data(losses),
    }


def _told(study: Study) -> list[Metric]:
    """What a tooltip says, in this order: the quality, the cost, and all the others."""
    first = [m for m in (study.quality, study.cost) if m]
    return [*first, *(m for m in study.metrics if m not in first)]


def _metric(metric: Metric) -> Data:
    return {
        "key": metric.key,
        "title": metric.title,
        "heading": metric.heading or metric.title,
        "better": metric.better,
        "digits": metric.digits,
        "limits": list(metric.limits),
        "share": metric.share,
        "plain": metric.role == COST,
    }


def _legend(study: Study) -> Data:
    """How the page names and draws the samplers."""
    place = {family.name: i for i, family in enumerate(study.families)}
    samplers = [
        {"label": s.label, "short": s.short, "family": place[s.family], "line": s.line}
        | {"spec": s.spec, "causal": i in study.causal}
        for i, s in enumerate(study.samplers)
    ]
    return {
        "families": [{"label": f.label, "marker": f.marker} for f in study.families],
        "samplers": samplers,
    }


def _cell(study: Study, record: Record) -> Data:
    numbers = {
        m.key: _estimate(number) for m in study.metrics if (number := study.number(record, m))
    }
    cell: Data = {"e": numbers}
    paper = published(record, study.quality)
    if paper:
        printed = {"v": paper.value, "sd": paper.sd, "away": paper.away}
        cell["paper"] = {k: _short(v) for k, v in printed.items() if v is not None}
    texts = record.get("texts")
    return cell | ({"texts": [str(text) for text in texts]} if isinstance(texts, list) else {})


def _law(study: Study, place: Place) -> Data:
    """What a shaped result says of the law; nothing of another."""
    words = study.law_words(*place)
    return {"law": words} if words else {}


def _estimate(estimate: Estimate) -> Data:
    numbers: Data = {"v": _short(estimate.value), "half": _short(estimate.half), "n": estimate.n}
    if estimate.bound:
        numbers["bound"] = True
    floor = floor_of(estimate)
    if floor:
        numbers |= {"floor": _short(floor.value), "floorHalf": _short(floor.half or 0.0)}
    for key in EXTRAS:
        if key in estimate.more and (value := finite(estimate.more[key])) is not None:
            numbers[key] = _short(value)
    return numbers


def _series(study: Study, one: Series) -> Data:
    place = {family.name: i for i, family in enumerate(study.families)}
    lines = [
        {
            "m": line.mode,
            "label": line.label,
            "family": place[line.family],
            "points": [
                {"x": _short(p.x), "s": p.sampler}
                | _estimate(p.estimate)
                | ({"shaped": True} if study.shaped(p.sampler, line.mode) else {})
                for p in line.points
            ],
        }
        for line in one.lines
    ]
    about = {"title": one.title, "task": one.task, "axis": one.axis, "y": one.y}
    return about | {
        "metric": _metric(one.metric),
        "log": one.logarithmic,
        "marks": one.marks,
        "lines": lines,
    }


# ---------------------------------------------------------------- traces


def traced_panels(study: Study) -> set[tuple[int, int]]:
    """The (mode, panel) whose traces the page carries: the first, up to a size."""
    carried: set[tuple[int, int]] = set()
    total, places = 0, sorted(study.cells)
    for place, cells in groupby(places, key=lambda cell: cell[:2]):
        size = sum(_size(study.cells[cell]) for cell in cells)
        total += size
        if carried and total > MOST_TRACED:
            break  # traces are not looked at beyond what is carried
        if size:
            carried.add(place)
    return carried


def _size(record: Record) -> int:
    """The room that a trace takes on the page, in tokens."""
    trace = _trace(record)
    if trace is None:
        return 0
    return len(trace["tokens"]) + sum(map(len, _pictures(record))) // SIGNS


def left_out(study: Study, traced: set[tuple[int, int]]) -> int:
    """How many panels have traces that the page does not carry."""
    return len(
        {(m, p) for (m, p, _), record in study.cells.items() if record.get("trace")} - traced
    )


def pictured(study: Study, traced: set[tuple[int, int]]) -> bool:
    """Whether the page carries pictures."""
    carried = (record for (m, p, _), record in study.cells.items() if (m, p) in traced)
    return any(_pictures(record) for record in carried)


def _pictures(record: Record) -> list[str]:
    trace: Any = record.get("trace")
    return (trace.get("pictures") or []) if isinstance(trace, Mapping) else []


def _traced(record: Record) -> Data:
    trace = _trace(record)
    if trace is None:
        return {}
    drawn = frames(record["trace"]) if record["trace"] and _pictures(record) else []
    return {"trace": trace | ({"pictures": drawn} if drawn else {})}


def _trace(record: Record) -> Data | None:
    """The trace, if it is whole: equally many tokens, rounds and verdicts (where there are any)."""
    trace = loaded(record.get("trace"))
    if trace is None or not trace.get("tokens") or not trace.get("rounds"):
        return None
    length, valid = len(trace["tokens"]), trace.get("valid")
    spread = trace.get("entropy") or [None] * length
    probs = trace.get("prob") or []
    lists = (trace["rounds"], valid or spread, spread, probs or spread)
    if any(len(one) != length for one in lists):
        return None
    return {
        "tokens": trace["tokens"],
        "rounds": trace["rounds"],
        "valid": "".join("1" if fine else "0" for fine in valid) if valid else None,
        "nats": [_short(finite(x), 3) for x in spread],
    } | ({"probs": [_short(finite(x), 3) for x in probs]} if probs else {})


# ---------------------------------------------------------------- texts


def text_panels(study: Study) -> list[int]:
    """The panels whose records hold texts."""
    cells = [(p, record) for (_, p, _), record in study.cells.items()]
    every = [*((p, record) for (_, p), record in study.references.items()), *cells]
    return sorted({p for p, record in every if record.get("texts")})


def text_pair(study: Study, mode: int, panel: int) -> tuple[int | None, int | None]:
    """The two samplers whose texts are shown first: AR, and the best bisection in the middle.

    In the middle: at the median of the bisections' costs. None is the reference.
    """
    mine = [s for s in study.tried if (study.record(mode, panel, s) or {}).get("texts")]
    left = next((s for s in mine if s in study.causal), None)
    choices = []
    for s in mine:
        cost = study.estimate(mode, panel, s, study.cost)
        if cost and study.samplers[s].family in BISECTIONS:
            choices.append((round(cost.value), _merit(study, mode, panel, s), s))
    if choices:
        levels = sorted({cost for cost, *_ in choices})
        middle = levels[(len(levels) - 1) // 2]
        return left, max(choice for choice in choices if choice[0] == middle)[2]
    return left, next((s for s in mine if s != left), None)


def _merit(study: Study, mode: int, panel: int, sampler: int) -> float:
    quality = study.quality
    estimate = study.estimate(mode, panel, sampler, quality) if quality else None
    return quality.better * estimate.value if quality and estimate else float("-inf")


def _short(value: float | None, digits: int = 5) -> float | None:
    if value is None:
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded == int(rounded) else rounded
