"""One self-contained HTML page: summary, figures, tables, losses, swaps, traces and texts.

The page carries its records as one JSON object (page_data.py) and draws its figures in the browser
with plain JavaScript; sentences, tables and swaps are written here and can be read without it. A
content security policy forbids every request, so the page works from a disk and never asks the
network. Sections that have nothing to show are left out.
"""

import json
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from maskwalk import __version__
from maskwalk.bench.labels import read
from maskwalk.decoding.kinds import SHAPED
from maskwalk.report.budget_lines import drawn_series
from maskwalk.report.budgets import Leader, crowded, leaders
from maskwalk.report.estimates import INTERVAL, floor_of, number
from maskwalk.report.finding import Finding, noun
from maskwalk.report.folded import layout
from maskwalk.report.losses import HEADS, Group, sheet
from maskwalk.report.modes import against_paper, compared, mode_meanings
from maskwalk.report.page_data import left_out, page_data, pictured, text_panels, traced_panels
from maskwalk.report.player.casts import TEXT
from maskwalk.report.player.replays import Replays, replays
from maskwalk.report.standings import stand_number, standings
from maskwalk.report.study import Study
from maskwalk.report.summary import findings, intro
from maskwalk.report.swaps import Swaps, rule_swaps, sampler_swaps
from maskwalk.report.tables import FLOOR, tables
from maskwalk.report.words import SHAPED_MEANS, capital, chance, note_words, plural, small, typed
from maskwalk.worlds.metrics import Metric

TEMPLATES = Path(__file__).parent / "templates"
SHOWN_SWAPS, MOST_SWAPS = 12, 100
SHOWN_SENTENCES = 3  # the others are folded
MOST_OPEN = 24  # figures; of more, those of the first metric are shown and the others folded
PACKED = 200_000  # characters of data beyond which a page carries them deflated
SCRIPTS = (  # one scope, in this order
    *("inflate", "base", "tell", "tips", "ticks", "scales", "layout", "colours"),
    *("scatter", "listen", "series", "traces", "pictures", "losses", "texts", "save", "fade"),
    *("frames", "stages", "player", "watch", "address", "report"),
)


def page(
    study: Study,
    command: str | None = None,
    losses: Sequence[Group] = (),
    policies: Sequence[str] = (),
    replayed: float = 0.0,
) -> str:
    """The page as text; `policies` are those that the verdict page beside it is on.

    `replayed` seconds may be spent on sequences whose records hold no story.
    """
    series, traced, crowd = drawn_series(study), traced_panels(study), crowded(study)
    again = replays(study, replayed) if replayed else Replays()
    data = page_data(study, series, losses, traced, again.casts, policies)
    for one, sampler in zip(study.samplers, data["samplers"]):
        sampler["own"] = one.family in policies
    sections = _sections(study)
    modes, all_tables = range(len(study.modes)), tables(study)
    swaps = [rule_swaps(study, m) if crowd else sampler_swaps(study, m) for m in modes]
    winners = [leaders(study, m) if crowd or study.single else [] for m in modes]
    sentences = [_told(study, m, swaps[m], winners[m]) for m in modes]
    return render(
        "report.html",
        study=study,
        policies=policies,
        families=study.families,
        style=pasted("style.css", "player.css"),
        script=pasted(*(f"{name}.js" for name in SCRIPTS)),
        data=data_block(data),
        casts=bool(data["casts"]),
        replayed=bool(again.casts),
        late=again.late,
        walks=any(stage["kind"] == "graph" for one in data["casts"] for stage in one["stages"]),
        interval=INTERVAL,
        floor_row=FLOOR,
        number=number,
        chance=chance,
        capital=capital,
        small=small,
        crowd=crowd,
        daggers=SHAPED in study.kinds.values(),
        shaped_means=SHAPED_MEANS,
        shaped_families=_shaped_families(study),
        intro=intro(study),
        meanings=mode_meanings(study),
        glossary={metric.title: metric.meaning for metric in study.metrics if metric.meaning},
        compared=compared(study),
        findings=sentences,
        sections=sections,
        folds=sum(len(some) for _, tasks in sections for some in tasks.values()) > MOST_OPEN,
        loss_heads=HEADS,
        floors=_with(study, lambda e: floor_of(e) is not None),
        bounds=_with(study, lambda e: e.bound),
        series=series,
        losses=losses,
        sheets=[sheet(group, study) for group in losses],
        leaders=[_by_panel(one) for one in winners] if _contested(winners) else [],
        budgets=[sorted({one.budget for one in mine}) for mine in winners],
        stand_number=stand_number,
        tables=all_tables,
        layouts=[layout(study, table, policies) for table in all_tables],
        noun=noun(study),
        printed=any(any(table.published) for table in all_tables),
        swaps=swaps if any(one.comparisons for one in swaps) else [],
        shown_sentences=SHOWN_SENTENCES,
        shown_swaps=SHOWN_SWAPS,
        most_swaps=MOST_SWAPS,
        traced=traced,
        left_out=left_out(study, traced),
        pictured=pictured(study, traced),
        text_panels=text_panels(study),
        most_texts=max((len(r.get("texts") or []) for r in study.records), default=0),
        playable="" if data["casts"] else _playable(study),
        about=_about(study, command, losses, policies),
    )


def _told(study: Study, mode: int, swaps: Swaps, winners: Sequence[Leader]) -> list[Finding]:
    """What is said of a mode, the most important first; that all of it is shaped before that."""
    found = findings(study, mode, swaps)
    first = int(bool(found) and mode in study.shaped_modes)
    measured = standings(study, mode, winners) if study.single else []
    return [*found[:first], *against_paper(study, mode), *measured, *found[first:]]


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


def data_block(data: Any) -> Markup:
    """The element that holds a page's data: as JSON, or, where that is long, deflated (base64)."""
    text = embedded(data)
    if len(text) < PACKED:
        return Markup('<script type="application/json" id="data">') + text + Markup("</script>")
    press = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    packed = b64encode(press.compress(text.encode()) + press.flush()).decode()
    return Markup(f'<script type="text/plain" id="data" data-packed>{packed}</script>')


def embedded(data: Any) -> Markup:
    """JSON that is safe inside a script element: no "<" survives, so nothing can close it."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup(
        text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )


def _sections(study: Study) -> list[tuple[Metric, dict[str, list[int]]]]:
    """For every metric and task the panels that have it."""
    sections = []
    for metric in study.drawn:
        panels = {t: [p for p in study.of_task(t) if study.has(metric, p)] for t in study.tasks}
        by_task = {task: members for task, members in panels.items() if members}
        sections += [(metric, by_task)] if by_task else []
    return sections


def _shaped_families(study: Study) -> set[str]:
    """The families all of whose samplers are shaped where others are not."""
    shaped = {s: study.shaped(s) for s in study.tried}
    every = {study.samplers[s].family for s in shaped}
    return every - {study.samplers[s].family for s, one in shaped.items() if not one}


def _with(study: Study, test: Any) -> set[str]:
    """The keys of metrics of which some estimate passes a test."""
    return {
        metric.key
        for metric in study.drawn
        if any((one := study.number(r, metric)) and test(one) for r in study.records)
    }


def _contested(winners: Sequence[Sequence[Leader]]) -> bool:
    """Whether there are two rules to compare anywhere."""
    return any(one.second for mine in winners for one in mine)


def _by_panel(winners: Sequence[Leader]) -> dict[int, dict[float, Leader]]:
    by_panel: dict[int, dict[float, Leader]] = {}
    for one in winners:
        by_panel.setdefault(one.panel, {})[one.budget] = one
    return by_panel


# ---------------------------------------------------------------- about


def _about(
    study: Study, command: str | None, losses: Sequence[Group], policies: Sequence[str]
) -> dict[str, Any]:
    records, names = study.records, _values(study, "experiment")
    run = [_command(name, bool(policies)) for name in names]
    title = ", ".join(name.replace("_", " ") for name in names) or "Report"
    if any(record.get("published") for record in records):
        title, run = "The paper’s graph walks, reproduced", ["maskwalk reproduce paper --out DIR"]
    elif study.single and study.quality:
        title = f"{study.panels[0].title}: {study.quality.title} against {study.cost.title}"
    elif losses and not records:
        title = "Losses of samplers"
    run += [group.command for group in losses]
    notes = Counter(str(note) for record in records for note in record.get("notes") or [])
    judges = Counter(str(record["judge"]) for record in records if record.get("judge"))
    seconds = sum(record.get("seconds") or 0.0 for record in records)
    return {
        "title": title,
        "versions": _values(study, "version") or [__version__],
        "commits": _values(study, "commit"),
        "models": _values(study, "denoiser"),
        "judges": sorted(judges.items()),
        "draws": sorted(
            {f"{r['mode']}: {r.get('draw', '')}, ties {r.get('ties')}" for r in records}
        ),
        "notes": [(note_words(note), f"{k:,}") for note, k in sorted(notes.items())],
        "records": plural(len(records), "record") if records else "",
        "superseded": plural(study.superseded, "earlier record") if study.superseded else "",
        "seconds": f"{seconds:,.0f} s" if seconds >= 1 else "",
        "panels": [(f"{p.title}, {p.task}", p.detail) for p in study.panels],
        "command": command or "\n".join([*run, "maskwalk report DIR"]),
    }


def _playable(study: Study) -> str:
    """A command that plays one of the cells; empty where none can be played by one.

    Of texts it names the package's own small model of books.
    """
    for (_, _, s), record in study.cells.items():
        if read(str(record["world"])).name == TEXT and s not in study.causal:
            small_one = ["play", "--denoiser", "zoo:books_mdm", "--length", "64"]
            return typed([*small_one, "--sampler", str(record["sampler"])])
        if record.get("denoiser") == "oracle" and "†" not in study.label(s):
            words = ["play", "--world", str(record["world"])]
            words += ["--task", str(record["task"]), "--sampler", str(record["sampler"])]
            return typed(words)
    return ""


def _values(study: Study, key: str) -> list[str]:
    return sorted({str(r[key]) for r in study.records if r.get(key)})  # type: ignore[literal-required]


def _command(experiment: str, evaluated: bool) -> str:
    """How to run an experiment; an evaluation and those of the paper have their own commands."""
    if experiment == "evaluate" and evaluated:
        return "maskwalk evaluate POLICY --out DIR"
    if experiment.startswith(("table_", "figure_")):
        return f"maskwalk reproduce paper --only {experiment} --out DIR"
    return f"maskwalk bench experiments/{experiment}.toml --out DIR"
