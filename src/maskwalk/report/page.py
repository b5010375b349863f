"""One self-contained HTML page: a summary, figures, tables, the ledger, ranking flips and traces.

The page carries its records as one JSON object and draws its figures in the browser with plain
JavaScript; sentences, tables and flips are written here and can be read without it. A content
security policy forbids every request, so the page works from a disk and never asks the network.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from maskwalk.bench.labels import Family, Sampler
from maskwalk.report import series as lines
from maskwalk.report.flips import ranking_flips
from maskwalk.report.ledger import Group, ledger_data, sheet
from maskwalk.report.modes import against_paper, compared, modes_told
from maskwalk.report.rule_lines import drawn_series
from maskwalk.report.rules import BUDGETS, Leader, crowded, front_samplers, leaders, turns
from maskwalk.report.study import Record, Study, estimate, finite, published
from maskwalk.report.summary import findings, intro, plural
from maskwalk.report.tables import METRICS, Table, tables

TEMPLATES = Path(__file__).parent / "templates"
SHOWN_FLIPS, MOST_FLIPS = 12, 100
TOLD = ("coherence", "transition_validity", "first_invalid", "tv1", "calls")  # by the tooltips
UNTOLD = ("group_sd",)
SCRIPTS = (  # one scope, in this order
    *("base", "tell", "tips", "ticks", "scales", "layout", "scatter", "listen"),
    *("series", "traces", "ledger", "report"),
)
MOST_TRACED = 60_000  # tokens of traces a page carries, about a megabyte


def page(study: Study, command: str | None = None, ledger: Sequence[Group] = ()) -> str:
    """The page as text."""
    drawn, shown = drawn_series(study), tables(study)
    traced, crowd = traced_panels(study), crowded(study)
    modes = range(len(study.modes))
    flips = [turns(study, m) if crowd else ranking_flips(study, m) for m in modes]
    return render(
        "report.html",
        study=study,
        style=pasted("style.css"),
        script=pasted(*(f"{name}.js" for name in SCRIPTS)),
        data=embedded(page_data(study, drawn, ledger, traced)),
        switch="Mode",
        intro=intro(study),
        told=modes_told(study),
        compared=compared(study),
        series=drawn,
        series_metrics=lines.METRICS,
        ledger=ledger,
        sheets=[sheet(group, study) for group in ledger],
        left_out=len({(m, p) for m, p, _ in study.cells}) - len(traced) if traced else 0,
        findings=[
            findings(study, mode, flips[mode]) + against_paper(study, mode) for mode in modes
        ],
        crowd=crowd,
        budgets=BUDGETS,
        leaders=[_by_panel(leaders(study, mode)) for mode in modes] if crowd else [],
        fronted=[_fronted(study, table) for table in shown] if crowd else [],
        flips=flips,
        shown_flips=SHOWN_FLIPS,
        most_flips=MOST_FLIPS,
        sections=_sections(study),
        metrics=METRICS,
        tables=shown,
        printed=any(any(table.published) for table in shown),
        about=_about(study, command, ledger),
    )


def render(template: str, **values: Any) -> str:
    """A template, filled in; values are escaped unless they are Markup."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)


def pasted(*names: str) -> Markup:
    """Files of the templates' folder as they are, one after the other."""
    return Markup("".join((TEMPLATES / name).read_text("utf-8") for name in names))


def embedded(data: Any) -> Markup:
    """JSON that is safe inside a script element: no "<" survives, so nothing can close it."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup(
        text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )


def _sections(study: Study) -> dict[str, dict[str, list[int]]]:
    """For every metric and task the panels that have it."""
    out: dict[str, dict[str, list[int]]] = {}
    for metric in METRICS:
        held = {t: [p for p in study.of_task(t) if study.has(metric, p)] for t in study.tasks}
        out[metric] = {task: panels for task, panels in held.items() if panels}
    return out


def _by_panel(found: Sequence[Leader]) -> dict[int, dict[float, Leader]]:
    out: dict[int, dict[float, Leader]] = {}
    for one in found:
        out.setdefault(one.panel, {})[one.budget] = one
    return out


def _fronted(study: Study, table: Table) -> set[int]:
    """The samplers of a table that are on the Pareto front of one of its graphs."""
    panels = [p for p in study.of_task(table.task) if study.panels[p].title in table.columns]
    return front_samplers(study, table.mode, panels)


def traced_panels(study: Study) -> set[tuple[int, int]]:
    """The (mode, panel) whose traces the page carries: the first, up to a size."""
    sizes: dict[tuple[int, int], int] = {}
    for (mode, panel, _), record in sorted(study.cells.items(), key=lambda item: item[0]):
        trace = record.get("trace")
        tokens = trace.get("tokens") if isinstance(trace, dict) else None
        sizes[mode, panel] = sizes.get((mode, panel), 0) + len(tokens or [])
    kept: set[tuple[int, int]] = set()
    total = 0
    for place, size in sizes.items():
        total += size
        if total <= MOST_TRACED or not kept:
            kept.add(place)
    return kept


def legend(families: Sequence[Family], samplers: Sequence[Sampler]) -> dict[str, Any]:
    """How the page names and draws the samplers."""
    place = {family.name: i for i, family in enumerate(families)}
    shown = [
        {
            "label": s.label,
            "short": s.short,
            "family": place[s.family],
            "spec": s.spec,
            "line": s.line,
        }
        for s in samplers
    ]
    look = [{"label": f.label, "marker": f.marker} for f in families]
    return {"families": look, "samplers": shown}


def page_data(
    study: Study,
    drawn: Sequence[lines.Series] = (),
    ledger: Sequence[Group] = (),
    traced: set[tuple[int, int]] | None = None,
) -> dict[str, Any]:
    """What the figures and traces draw, as compactly as is readable."""
    place = {family.name: i for i, family in enumerate(study.families)}
    return {
        "modes": study.modes,
        "crowd": crowded(study),
        **legend(study.families, study.samplers),
        "panels": [{"title": p.title, "task": p.task} for p in study.panels],
        "cells": [
            {"m": mode, "p": panel, "s": sampler}
            | _cell(record)
            | (_traced(record) if traced is None or (mode, panel) in traced else {})
            for (mode, panel, sampler), record in study.cells.items()
        ],
        "series": [_series(one, place) for one in drawn],
        "ledger": ledger_data(ledger),
    }


def _series(one: lines.Series, place: dict[str, int]) -> dict[str, Any]:
    shown = [
        {
            "m": line.mode,
            "label": line.label,
            "family": place[line.family],
            "points": [
                {"x": _short(p.x), "v": _short(p.value), "se": _short(p.se), "n": p.n}
                | {"s": p.sampler}
                for p in line.points
            ],
        }
        for line in one.lines
    ]
    about: dict[str, Any] = {
        "title": one.title,
        "task": one.task,
        "axis": one.axis,
        "metric": one.metric,
    }
    about |= {"y": lines.METRICS.get(one.metric, one.metric), "log": one.logarithmic}
    return about | {"marks": one.marks, "lines": shown}


def _cell(record: Record) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for metric in TOLD:
        held = estimate(record, metric)
        if held:
            numbers = {"v": held.value, "se": held.se, **held.more}
            shown[metric] = {
                k: _short(v) for k, v in numbers.items() if v is not None and k not in UNTOLD
            }
            shown[metric]["n"] = held.n
    paper = published(record)
    if paper:
        numbers = {"v": paper.value, "sd": paper.sd, "away": paper.away}
        shown["paper"] = {k: _short(v) for k, v in numbers.items() if v is not None}
    return shown


def _traced(record: Record) -> dict[str, Any]:
    return {"trace": trace} if (trace := _trace(record)) else {}


def _trace(record: Record) -> dict[str, Any] | None:
    """The trace, if it is whole: equally many tokens, rounds and verdicts."""
    held = record.get("trace")
    if not isinstance(held, dict) or not held.get("tokens") or not held.get("rounds"):
        return None
    length = len(held["tokens"])
    valid = held.get("valid") or [True] * length
    entropy = held.get("entropy") or [None] * length
    if not len(held["rounds"]) == len(valid) == len(entropy) == length:
        return None
    bits = "".join("1" if ok else "0" for ok in valid)
    shown = [_short(finite(x), 3) for x in entropy]
    return {"tokens": held["tokens"], "rounds": held["rounds"], "valid": bits, "entropy": shown}


def _short(value: float | None, digits: int = 5) -> float | None:
    if value is None:
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded == int(rounded) else rounded


def _about(study: Study, command: str | None, ledger: Sequence[Group]) -> dict[str, Any]:
    records = list(study.cells.values())
    about = about_records(records, study.superseded)
    names = about["experiments"]
    run = [f"maskwalk bench experiments/{name}.toml --out DIR" for name in names]
    title = ", ".join(name.replace("_", " ") for name in names) or "Report"
    if any(record.get("published") for record in records):
        title, run = "The paper’s graph walks, reproduced", ["maskwalk reproduce paper --out DIR"]
    run += [group.command for group in ledger]
    return about | {
        "title": title,
        "command": command or "\n".join([*run, "maskwalk report DIR"]),
        "panels": [(f"{p.title}, {p.task}", p.detail) for p in study.panels],
    }


def about_records(records: Sequence[Record], superseded: int) -> dict[str, Any]:
    """What records say of their making: versions, draws, notes with how often, time."""

    def values(key: str) -> list[str]:
        return sorted({str(r[key]) for r in records if r.get(key) is not None})

    draws = {f"{r['preset']}: {_draw(r)}" for r in records}
    notes: dict[str, int] = {}
    for record in records:
        for note in record.get("notes") or []:
            notes[str(note)] = notes.get(str(note), 0) + 1
    seconds = sum(finite(r.get("seconds")) or 0.0 for r in records)
    return {
        "experiments": values("experiment"),
        "versions": values("version"),
        "commits": values("commit"),
        "presets": sorted(draws),
        "notes": sorted(notes.items()),
        "records": plural(len(records), "record"),
        "superseded": plural(superseded, "earlier record") if superseded else "",
        "seconds": f"{seconds:,.0f} s" if seconds >= 1 else "",
    }


def _draw(record: Record) -> str:
    draw = record.get("draw") or {}
    said = [f"{key} {value}" for key, value in draw.items()] if isinstance(draw, dict) else []
    return ", ".join([*said, f"ties {record.get('ties', 'unknown')}"])
