"""The minute's reading: what was run, and what came out, as sentences computed from the records.

A sampler is called *as good as the best* when it is within two standard errors of the difference;
the cheapest such sampler is the one worth using. "Never off the graph" means in these samples.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot
from typing import Protocol, runtime_checkable

from maskwalk.report.study import Study, estimate, spread
from maskwalk.report.tables import span

NOISE = 2.0  # standard errors of a difference that are not called a difference


@dataclass(frozen=True)
class Finding:
    """A headline and its sentence."""

    lead: str
    text: str


@dataclass(frozen=True)
class Point:
    """A sampler in a panel: how coherent, at how many calls."""

    sampler: int
    panel: int
    value: float
    spread: float
    calls: float
    calls_max: float


@runtime_checkable
class Changes(Protocol):
    """Pairs that change order between graphs: of samplers (flips.py) or of rules (rules.py)."""

    @property
    def found(self) -> Sequence[object]:
        """The pairs."""

    @property
    def comparisons(self) -> int:
        """How many were looked at."""

    @property
    def of(self) -> str:
        """What the pairs consist of."""


def plural(count: int, word: str) -> str:
    """ "1 graph", "5 graphs"."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def listed(words: list[str], most: int = 8) -> str:
    """ "a, b and c", at most so many; "a; b, c; and d" where the words hold commas themselves."""
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} more"]
    if len(words) == 1:
        return words[0]
    if any("," in word for word in words):
        return "; ".join([*words[:-1], f"and {words[-1]}"])
    return ", ".join(words[:-1]) + " and " + words[-1]


def intro(study: Study) -> str:
    """What was run, in two sentences."""
    titles = dict.fromkeys(panel.title for panel in study.panels)
    records = list(study.cells.values())
    lengths = sorted({r["length"] for r in records if r.get("length")})
    held = [estimate(r, "coherence") for r in records]
    made = sum(e.n or 0 for e in held if e)
    if not records:
        return "The ledger of samplers: where nats are lost, and why."
    ran = f"{plural(len(study.tried), 'sampler')} on {plural(len(titles), 'graph')}"
    ran += f" and {plural(len(study.tasks), 'task')} ({listed(study.tasks)})"
    ran += f", with {listed(study.modes)}." if study.modes else "."
    long = f" of {span([float(x) for x in lengths])} tokens" if lengths else ""
    total = f" {plural(made, 'walk')}{long} in all." if made else ""
    return ran + total


def findings(study: Study, mode: int, flips: Changes) -> list[Finding]:
    """The sentences of one mode; empty where it has no coherence at all."""
    points = points_of(study, mode)
    if not points:
        return []
    made = [_flawless(study, points), *_best(study, points), _cheaper(study, points)]
    made += [_gap(study, points), _flips(flips), *_faithful(study, mode)]
    return [finding for finding in made if finding]


def points_of(study: Study, mode: int) -> list[Point]:
    """Every sampler of a mode in every panel, where coherence and calls are known."""
    out = []
    for (m, p, s), record in study.cells.items():
        held, calls = (study.estimate(m, p, s, metric) for metric in ("coherence", "calls"))
        if m == mode and held and calls:
            error = spread(held, record.get("per_prompt") or 1)
            most = calls.more.get("max") or calls.value
            out.append(Point(s, p, held.value, error, calls.value, most))
    return out


def _calls(points: list[Point]) -> str:
    mean = span([p.calls for p in points])
    most = max(p.calls_max for p in points)
    beyond = most > max(p.calls for p in points) + 0.05
    return f"{mean} calls" + (f" and never over {most:g}" if beyond else "")


def where(study: Study, panel: int) -> str:
    """The graph, and the task if there are several."""
    shown = study.panels[panel]
    return f"{shown.title} ({shown.task})" if len(study.tasks) > 1 else shown.title


def _flawless(study: Study, points: list[Point]) -> Finding | None:
    panels = {p.panel for p in points}
    by = {s: [p for p in points if p.sampler == s] for s in {p.sampler for p in points}}
    whole = {s: mine for s, mine in by.items() if {p.panel for p in mine} == panels}
    if len(by) < 2 or not whole:
        return None
    clean = [s for s, mine in whole.items() if all(p.value == 1 for p in mine)]
    every = "on the only graph and task" if len(panels) == 1 else f"in all {len(panels)} panels"
    who = "No sampler" if len(whole) == len(by) else f"Of the {len(whole)} samplers run there none"
    if clean:
        cost = {s: max(p.calls for p in whole[s]) for s in clean}
        cheap = [s for s in clean if cost[s] < max(cost.values())] or clean
        rest = [s for s in clean if s not in cheap]
        cheap.sort(key=lambda s: (cost[s], s))
        text = listed([f"{study.samplers[s].label} ({_calls(whole[s])})" for s in cheap])
        text = f"{text} made no invalid step {every}."
        if rest:
            also = listed([study.samplers[s].label for s in sorted(rest)])
            also_calls = _calls([p for s in rest for p in whole[s]])
            text += f" So did {also}, at {also_calls}."
        return Finding("Never off the graph.", text[0].upper() + text[1:])
    worst = {s: min(mine, key=lambda p: p.value) for s, mine in whole.items()}
    top = max(worst, key=lambda s: (worst[s].value, -worst[s].calls))
    text = f"{who} was flawless {every}. The best in its worst case is "
    text += f"{study.samplers[top].label} ({_calls(whole[top])}): at least "
    text += f"{worst[top].value:.3f}, on {where(study, worst[top].panel)}."
    return Finding("Nobody is always right.", text)


def _champions(points: list[Point]) -> list[Point]:
    """The cheapest among those as good as the best; several where calls and noise leave a tie."""
    best = max(points, key=lambda p: (p.value, -p.calls))
    good = [p for p in points if best.value - p.value <= NOISE * hypot(p.spread, best.spread)]
    least = min(p.calls for p in good)
    return [p for p in good if p.calls < least + 0.05]


def _best(study: Study, points: list[Point]) -> list[Finding]:
    """For every task: the cheapest samplers as good as the best; equal answers are said once."""
    said: dict[str, list[str]] = {}
    for task in study.tasks:
        panels = [p for p in study.of_task(task) if any(q.panel == p for q in points)]
        won: dict[tuple[int, ...], list[Point]] = {}
        for panel in panels:
            champions = _champions([q for q in points if q.panel == panel])
            won.setdefault(tuple(sorted(q.sampler for q in champions)), []).extend(champions)
        parts = []
        for group, wins in sorted(won.items(), key=lambda item: -len(item[1])):
            where = [study.panels[p].title for p in dict.fromkeys(w.panel for w in wins)]
            lacking = [study.panels[p].title for p in panels if study.panels[p].title not in where]
            on = listed(where)
            if len(where) > max(2 * len(lacking), 1):
                on = "both graphs" if len(panels) == 2 else f"all {len(panels)} graphs"
                on += f" but {listed(lacking)}" if lacking else ""
            who = listed([study.samplers[s].label for s in group])
            parts.append(f"{who} on {on} ({span_of([w.value for w in wins])} at {_calls(wins)})")
        if parts:
            said.setdefault("; ".join(parts) + ".", []).append(task)
    return [
        Finding(f"Cheapest of the best, {listed(tasks)}:", text) for text, tasks in said.items()
    ]


def span_of(values: list[float]) -> str:
    """ "1.000", or "0.870–0.932"."""
    ends = dict.fromkeys(f"{v:.3f}" for v in (min(values), max(values)))
    return "–".join(ends)


def _cheaper(study: Study, points: list[Point]) -> Finding | None:
    """What is left with fewer calls than the champion needs."""
    tops = []
    for panel in sorted({p.panel for p in points}):
        here = [p for p in points if p.panel == panel]
        less = [p for p in here if p.calls < _champions(here)[0].calls - 0.05]
        if less:
            tops.append(max(less, key=lambda p: (p.value, -p.calls)))
    if not tops:
        return None
    names = Counter(study.samplers[p.sampler].label for p in tops)
    most = listed([f"{name} ({plural(k, 'panel')})" for name, k in names.most_common(3)])
    text = f"The best reach {span_of([p.value for p in tops])}, with {most}"
    return Finding(
        "With fewer calls than that:", text + ("." if len(names) < 4 else " and others.")
    )


def _gap(study: Study, points: list[Point]) -> Finding | None:
    """The widest difference at equal calls: what choosing positions is worth."""
    widest: tuple[Point, Point] | None = None
    cells: dict[tuple[int, float], list[Point]] = {}
    for point in points:
        cells.setdefault((point.panel, round(point.calls, 1)), []).append(point)
    for group in cells.values():
        high, low = max(group, key=lambda p: p.value), min(group, key=lambda p: p.value)
        if widest is None or high.value - low.value > widest[0].value - widest[1].value:
            widest = (high, low)
    if not widest:
        return None
    high, low = widest
    if high.value - low.value <= 3 * hypot(high.spread, low.spread):
        return None
    names = [study.samplers[p.sampler].label for p in widest]
    text = f"On {where(study, high.panel)}, at {_calls([high])}, {names[0]} reaches "
    text += f"{high.value:.3f} and {names[1]} {low.value:.3f}."
    return Finding("Which positions matters as much as how many.", text)


def _flips(flips: Changes) -> Finding | None:
    if not flips.comparisons:
        return None
    pairs = plural(len(flips.found), "pair")
    text = f"{pairs} of {flips.of} change order between graphs beyond the noise."
    if not flips.found:
        text = f"No pair of {flips.of} changes order between graphs beyond the noise."
    return Finding("Rankings and structure.", text)


def _faithful(study: Study, mode: int) -> list[Finding]:
    """Coherent is not yet distributed as the walk: the widest TV excess among coherent samplers."""
    held = []
    for m, p, s in study.cells:
        tv, coherence = (study.estimate(m, p, s, x) for x in ("tv1", "coherence"))
        excess = tv.more.get("excess") if tv else None
        if m == mode and tv and excess is not None and coherence:
            error = hypot(tv.se or 0.0, tv.more.get("floor_se") or 0.0)
            held.append((excess, error, coherence.value, p, s, tv))
    if not held:
        return []
    near = sum(excess <= NOISE * error for excess, error, *_ in held)
    cells = plural(len(held), "unconditional cell")
    text = f"In {near or 'none'} of {cells} the transition TV is within two standard errors of "
    text += "that of exact walks of the same number."
    off = [row for row in held if row[2] >= 0.95 and row[0] > max(3 * row[1], 0.02)]
    if off:
        excess, _, coherence_value, p, s, tv = max(off, key=lambda row: row[0])
        text += f" Coherent is not yet faithful: {study.samplers[s].label} on "
        text += f"{study.panels[p].title} has coherence {coherence_value:.3f}, but TV "
        text += f"{tv.value:.3f} where exact walks have {tv.value - excess:.3f}."
    return [Finding("Distribution.", text)]
