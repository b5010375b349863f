"""The minute's reading: what was run, and what came out, as sentences computed from the records.

A sampler is called *as good as the best* when it is within the 95 % interval of the difference; the
cheapest such sampler is the one worth using. "Flawless" means in these samples.
"""

from collections import Counter
from dataclasses import dataclass

from maskwalk.bench import labels
from maskwalk.bench.records import Record
from maskwalk.decoding.kinds import MARK
from maskwalk.report.estimates import floor_of, number
from maskwalk.report.points import (
    Point,
    ahead_by_shaping,
    beyond_noise,
    by_panel,
    lawful,
    level,
    points_of,
)
from maskwalk.report.study import REFERENCE, Study
from maskwalk.report.swaps import Swaps
from maskwalk.report.words import capital, listed, plural, span
from maskwalk.stats import NORMAL, combined
from maskwalk.worlds.metrics import Metric

GOOD = 0.95  # of a quality that is a share: from here on a sampler should also be faithful
EQUAL = 0.05  # costs that differ by less are the same


@dataclass(frozen=True)
class Finding:
    """A headline and its sentence."""

    lead: str
    text: str


def intro(study: Study) -> str:
    """What was run, in two sentences."""
    if not study.records:
        return "Where nats are lost, and why: exact sequences forced through each sampler."
    samplers = sum(s not in study.causal for s in study.tried)
    ran = [plural(samplers, "sampler")] if samplers else []
    ran += ["AR"] * bool(study.causal) + [REFERENCE] * bool(study.references)
    titles = list(dict.fromkeys(panel.title for panel in study.panels))
    where = titles[0] if len(titles) == 1 else plural(len(titles), "world")
    tasks = f" and {plural(len(study.tasks), 'task')} ({listed(study.tasks)})"
    tasks = tasks if len(study.tasks) > 1 else f" ({study.tasks[0]})"
    text = f"{listed(ran)} on {where}{tasks}, with {listed(study.modes)}."
    sequences = sum(_sequences(record) for record in study.cells.values())
    lengths = [_length(record) for record in study.records]
    known = [float(length) for length in lengths if length is not None]
    long = f" of {span(known)} tokens" if len(known) == len(lengths) else ""
    return text + (f" {plural(sequences, 'sequence')}{long} in all." if sequences else "")


def _length(record: Record) -> int | None:
    """The tokens of its sequences: as its world says, or as its trace has."""
    length = labels.read(str(record["world"])).kwargs.get("length")
    trace = record.get("trace")
    return length if isinstance(length, int) else len(trace["tokens"]) if trace else None


def _sequences(record: Record) -> int:
    """How many were decoded: what its numbers are of, else what was asked for."""
    numbers = [metric for metric in record["metrics"].values() if isinstance(metric, dict)]
    return max([int(metric.get("n") or 0) for metric in numbers] or [record.get("count") or 0])


def findings(study: Study, mode: int, swaps: Swaps) -> list[Finding]:
    """The sentences of one mode by its quality; none where nothing can be compared."""
    every, metric = points_of(study, mode), study.quality
    if not every or metric is None:
        return []
    points = lawful(every)
    sentences = [_draws(study, mode), _flawless(study, metric, points)]
    sentences += [*_best(study, metric, points), _cheaper(study, metric, points)]
    sentences += [_shaped(study, mode, metric, every)]
    sentences += [_gap(study, metric, points), _swaps(swaps)]
    return [finding for finding in [*sentences, *_faithful(study, mode, metric)] if finding]


def _draws(study: Study, mode: int) -> Finding | None:
    """Where the draws are not exact nothing is."""
    if mode not in study.shaped_modes:
        return None
    text = "The draws are not exact, so every result of this mode is shaped: its sequences may "
    return Finding(f"All of this is {MARK}.", text + "follow another law than the denoiser's.")


def _shaped(study: Study, mode: int, metric: Metric, points: list[Point]) -> Finding | None:
    """Who would lead by another law, and how far that is from the right one."""
    parts = []
    for s, wins in _by_sampler(ahead_by_shaping(points)).items():
        law = Counter(study.law_words(mode, p.panel, s) for p in wins)
        words = next(iter(law)) if len(law) == 1 else _worst_law(study, mode, wins)
        values = span([p.value for p in wins], metric.digits)
        on = where(study, wins[0].panel) if len(wins) == 1 else plural(len(wins), "panel")
        parts.append(f"{study.label(s)}{MARK} on {on} ({values} at {_costs(study, wins)}; {words})")
    return Finding(f"Ahead of these, but {MARK}:", "; ".join(parts) + ".") if parts else None


def _by_sampler(points: list[Point]) -> dict[int, list[Point]]:
    by: dict[int, list[Point]] = {}
    for p in points:
        by.setdefault(p.sampler, []).append(p)
    return dict(sorted(by.items(), key=lambda item: -len(item[1])))


def _worst_law(study: Study, mode: int, wins: list[Point]) -> str:
    """The widest departure of several."""
    known = [(d.value, p) for p in wins if (d := study.departure(mode, p.panel, p.sampler))]
    most = max(known, key=lambda pair: pair[0])[1]
    words = study.law_words(mode, most.panel, most.sampler)
    every = "all" if len(known) == len(wins) else f"the {len(known)}"
    return f"{words} in the worst of {every} that were measured"


def _costs(study: Study, points: list[Point]) -> str:
    mean, name = span([p.cost for p in points]), study.cost.title
    most = max(p.cost_max for p in points)
    beyond = most > max(p.cost for p in points) + EQUAL
    return f"{mean} {name}" + (f" and at most {most:g}" if beyond else "")


def where(study: Study, panel: int) -> str:
    """The world, and the task if there are several."""
    place = study.panels[panel]
    return f"{place.title} ({place.task})" if len(study.tasks) > 1 else place.title


def _flawless(study: Study, metric: Metric, points: list[Point]) -> Finding | None:
    """Who has every sequence right, everywhere; else the best in its worst case."""
    panels = {p.panel for p in points}
    by = {s: [p for p in points if p.sampler == s] for s in {p.sampler for p in points}}
    whole = {s: mine for s, mine in by.items() if {p.panel for p in mine} == panels}
    if len(by) < 2 or not whole or not metric.share or metric.better < 0:
        return None
    clean = [s for s, mine in whole.items() if all(p.value == 1 for p in mine)]
    every = "in the only panel" if len(panels) == 1 else f"in all {len(panels)} panels"
    if clean:
        return Finding("Flawless.", _clean(study, metric, whole, clean, every))
    who = "No sampler" if len(whole) == len(by) else f"Of the {len(whole)} samplers run there none"
    worst = {s: min(mine, key=lambda p: p.value) for s, mine in whole.items()}
    top = max(worst, key=lambda s: (worst[s].value, -worst[s].cost))
    text = f"{who} was flawless {every}. The best in its worst case is "
    text += f"{study.label(top)} ({_costs(study, whole[top])}): {metric.title} at least "
    text += f"{number(metric, worst[top].value)}, on {where(study, worst[top].panel)}."
    return Finding("Nobody is always right.", text)


def _clean(
    study: Study, metric: Metric, whole: dict[int, list[Point]], clean: list[int], every: str
) -> str:
    cost = {s: max(p.cost for p in whole[s]) for s in clean}
    cheap = [s for s in clean if cost[s] < max(cost.values())] or clean
    rest = sorted(s for s in clean if s not in cheap)
    cheap.sort(key=lambda s: (cost[s], s))
    text = listed([f"{study.label(s)} ({_costs(study, whole[s])})" for s in cheap])
    have = "has" if len(cheap) == 1 else "have"
    text = f"{capital(text)} {have} {metric.title} {number(metric, 1.0)} {every}."
    if rest:
        also = listed([study.label(s) for s in rest])
        at = _costs(study, [p for s in rest for p in whole[s]])
        text += f" {capital(also)} {'has' if len(rest) == 1 else 'have'} it too, with {at}."
    return text


def _champions(points: list[Point]) -> list[Point]:
    """The cheapest among those as good as the best; several where cost and noise leave a tie."""
    best = max(points, key=lambda p: (p.score, -p.cost))
    good = [p for p in points if level(best, p)]
    least = min(p.cost for p in good)
    return [p for p in good if p.cost < least + EQUAL]


def _best(study: Study, metric: Metric, points: list[Point]) -> list[Finding]:
    """For every task: the cheapest samplers as good as the best; equal answers are said once."""
    answers: dict[str, list[str]] = {}
    here = by_panel(points)
    for task in study.tasks:
        panels = [p for p in study.of_task(task) if p in here]
        won: dict[tuple[int, ...], list[Point]] = {}
        for panel in panels:
            champions = _champions(here[panel])
            won.setdefault(tuple(sorted(q.sampler for q in champions)), []).extend(champions)
        parts = []
        for group, wins in sorted(won.items(), key=lambda item: -len(item[1])):
            who = listed([study.label(s) for s in group])
            values = span([w.value for w in wins], metric.digits)
            on = _on(study, panels, [w.panel for w in wins])
            parts.append(f"{who} on {on} ({values} at {_costs(study, wins)})")
        if parts:
            answers.setdefault("; ".join(parts) + ".", []).append(task)
    return [
        Finding(f"As good as the best with the fewest {study.cost.title}, {listed(tasks)}:", text)
        for text, tasks in answers.items()
    ]


def _on(study: Study, panels: list[int], won: list[int]) -> str:
    """Worlds by name, or "all 5 worlds but two" where they are most."""
    names = [study.panels[p].title for p in dict.fromkeys(won)]
    lacking = [study.panels[p].title for p in panels if p not in won]
    if len(names) <= max(2 * len(lacking), 1):
        return listed(names)
    every = "both worlds" if len(panels) == 2 else f"all {len(panels)} worlds"
    return every + (f" but {listed(lacking)}" if lacking else "")


def _cheaper(study: Study, metric: Metric, points: list[Point]) -> Finding | None:
    """What is left at a lower cost than the champion's."""
    tops = []
    for here in by_panel(points).values():
        least = _champions(here)[0].cost
        less = [p for p in here if p.cost < least - EQUAL]
        if less:
            tops.append(max(less, key=lambda p: (p.score, -p.cost)))
    if not tops:
        return None
    names = Counter(study.label(p.sampler) for p in tops)
    counted = [f"{name} ({plural(k, 'panel')})" for name, k in names.most_common(3)]
    most = listed(list(names) if study.single else counted)
    text = f"The best reach {span([p.value for p in tops], metric.digits)}, with {most}"
    lead = f"With fewer {study.cost.title} than that:"
    return Finding(lead, text + ("." if len(names) < 4 else " and others."))


def _gap(study: Study, metric: Metric, points: list[Point]) -> Finding | None:
    """The widest difference at equal cost: what choosing positions is worth."""
    cells: dict[tuple[int, float], list[Point]] = {}
    for point in points:
        cells.setdefault((point.panel, round(point.cost, 1)), []).append(point)
    ends = [
        (max(group, key=lambda p: p.score), min(group, key=lambda p: p.score))
        for group in cells.values()
    ]
    comparisons = sum(len(group) * (len(group) - 1) // 2 for group in cells.values())
    clear = beyond_noise(ends, max(comparisons, len(ends)))
    if not clear:
        return None
    high, low = max(clear, key=lambda pair: pair[0].score - pair[1].score)
    text = f"On {where(study, high.panel)}, at {_costs(study, [high])}, "
    text += f"{study.label(high.sampler)} reaches {number(metric, high.value)} and "
    text += f"{study.label(low.sampler)} {number(metric, low.value)}."
    return Finding("Which positions are drawn matters as much as how many.", text)


def _swaps(swaps: Swaps) -> Finding | None:
    if not swaps.comparisons:
        return None
    pairs = len(swaps.pairs)
    text = f"{plural(pairs, 'pair')} of {swaps.of} {'changes' if pairs == 1 else 'change'}"
    text = text if pairs else f"No pair of {swaps.of} changes"
    return Finding("Rankings and structure.", f"{text} order between worlds beyond the noise.")


def _faithful(study: Study, mode: int, quality: Metric) -> list[Finding]:
    """Good is not yet distributed as the law: metrics with a floor, and the widest excess."""
    out = []
    for metric in study.drawn:
        cells = []
        for m, p, s in study.cells:
            if m != mode:
                continue
            estimate = study.estimate(m, p, s, metric)
            floor, good = estimate and floor_of(estimate), study.estimate(m, p, s, quality)
            if estimate and floor and good:
                value, error = estimate.value, combined(estimate.se, floor.se)
                cells.append((value - floor.value, error, good.value, p, s, value))
        if cells:
            out.append(Finding(f"{capital(metric.title)}.", _excess(study, metric, quality, cells)))
    return out


def _excess(
    study: Study,
    metric: Metric,
    quality: Metric,
    cells: list[tuple[float, float, float, int, int, float]],
) -> str:
    near = sum(excess <= NORMAL * error for excess, error, *_ in cells)
    text = f"In {near or 'none'} of {plural(len(cells), 'cell')} {metric.title} is within the "
    text += "95 % interval of what exact sequences of the same number get."
    off = [row for row in cells if row[2] >= GOOD and row[0] > NORMAL * row[1]]
    if off and quality.share:
        excess, _, good, p, s, value = max(off, key=lambda row: row[0])
        text += f" High {quality.title} is not yet the right distribution: {study.label(s)} on "
        text += f"{study.panels[p].title} has {quality.title} {number(quality, good)}, but "
        text += f"{metric.title} {number(metric, value)} where exact sequences get "
        text += f"{number(metric, value - excess)}."
    return text
