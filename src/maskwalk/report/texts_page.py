"""One self-contained HTML page of text records: a summary, figures, a table, texts side by side.

It is built as the page of graph records is (page.py), from the same style, switches and scripts;
texts only ever enter as JSON and leave as text nodes.
"""

from collections import Counter
from typing import Any

from maskwalk.report.page import about_records, embedded, legend, pasted, render
from maskwalk.report.study import Record, estimate
from maskwalk.report.texts import CALLS, METRICS, TextStudy, at_most, half_width, side_by_side
from maskwalk.report.texts_summary import (
    best_policies,
    draws_compared,
    draws_told,
    text_findings,
    text_intro,
)
from maskwalk.report.texts_tables import text_tables

SCRIPTS = ("base", "tips", "ticks", "layout", "listen", "texts", "report")  # one scope, in order


def text_page(study: TextStudy, command: str | None = None) -> str:
    """The page as text."""
    modes = range(len(study.modes))
    contests = [best_policies(study, mode) for mode in modes]
    drawn = [m for m in study.metrics if m.drawn]
    return render(
        "texts.html",
        study=study,
        style=pasted("style.css", "texts.css"),
        script=pasted(*(f"{name}.js" for name in SCRIPTS)),
        data=embedded(text_data(study)),
        switch="Draws",
        crowd=False,
        intro=text_intro(study),
        told=draws_told(study),
        compared=draws_compared(study),
        findings=[text_findings(study, mode) for mode in modes],
        contests=contests,
        budgets=[sorted({r.budget for c in found for r in c.rounds}) for found in contests],
        sections=[
            ("Better in one direction", [m for m in drawn if m.better]),
            ("Held-out text is the mark", [m for m in drawn if not m.better]),
        ],
        tables=text_tables(study),
        most_texts=max((len(r.get("texts") or []) for r in study.records), default=0),
        about=_about(study, command),
    )


def text_data(study: TextStudy) -> dict[str, Any]:
    """What the figures draw and the texts."""
    shown = legend(study.families, study.samplers)
    for i, sampler in enumerate(shown["samplers"]):
        sampler["causal"] = i in study.causal
    return {
        "modes": study.modes,
        "crowd": False,
        **shown,
        "metrics": [
            {"key": m.key, "name": m.name, "title": m.title, "better": m.better, "digits": m.digits}
            for m in (CALLS, *METRICS)
        ],
        "cells": [{"m": m, "s": s} | _cell(record) for (m, s), record in study.cells.items()],
        "held": [{"m": m, "s": None} | _cell(record) for m, record in study.held.items()],
        "chosen": [list(side_by_side(study, mode)) for mode in range(len(study.modes))],
    }


def _cell(record: Record) -> dict[str, Any]:
    """The numbers as the record has them, `half` of their intervals, and the texts."""
    shown: dict[str, Any] = {}
    for metric in (CALLS, *METRICS):
        held = estimate(record, metric.key)
        if held:
            shown[metric.key] = {"v": held.value, "half": half_width(held), "n": held.n}
            shown[metric.key] |= {"most": True} if at_most(metric, held) else {}
    texts = record.get("texts")
    shown["texts"] = [str(text) for text in texts] if isinstance(texts, list) else []
    return shown


def _about(study: TextStudy, command: str | None) -> dict[str, Any]:
    about = about_records(study.records, study.superseded)
    judges = Counter(str(r["judge"]) for r in study.records if r.get("judge"))
    models = sorted({str(r["model"]) for r in study.records if r.get("model")})
    figures = [name for name in about["experiments"] if name.startswith("figure_")]
    run = [f"maskwalk reproduce paper --only {name} --out DIR" for name in figures]
    title = f"{study.title}: quality of texts against calls"
    return about | {
        "title": title if study.title else "Quality of texts against calls",
        "models": models,
        "judges": sorted(judges.items()),
        "command": command or "\n".join([*run, "maskwalk report DIR"]),
    }
