"""The minute's reading: what was run, and what came out, as sentences computed from the records.

A few short sentences a mode, and small tables for what does not fit into them. "Flawless" means in
these samples.
"""

from maskwalk.bench import labels
from maskwalk.bench.records import Record
from maskwalk.decoding.kinds import MARK
from maskwalk.report.budgets import crowded
from maskwalk.report.champions import choice, shaped
from maskwalk.report.estimates import floor_of, number
from maskwalk.report.finding import Finding, Sheet, all_panels, cost_words, costs, settings, where
from maskwalk.report.points import Point, beyond_noise, lawful, points_of
from maskwalk.report.study import REFERENCE, Study
from maskwalk.report.swaps import Swaps
from maskwalk.report.words import brief, capital, listed, plural, span
from maskwalk.stats import NORMAL, combined
from maskwalk.worlds.metrics import Metric

GOOD = 0.95  # of a quality that is a share: from here on a sampler should also be faithful
FEW = 3  # flawless samplers that a sentence names


def intro(study: Study) -> str:
    """What was run, in two sentences."""
    if not study.records:
        return "Where nats are lost, and why: exact sequences forced through each sampler."
    samplers = sum(s not in study.causal for s in study.tried)
    ran = [_ran(study, samplers)] if samplers else []
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


def _ran(study: Study, samplers: int) -> str:
    """ "30 samplers"; where there are many, "181 settings of 43 rules"."""
    rules = len({study.samplers[s].family for s in study.tried if s not in study.causal})
    return settings(study, samplers) + (f" of {plural(rules, 'rule')}" if crowded(study) else "")


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
    sentences += [choice(study, metric, points), _gap(study, metric, points)]
    sentences += [shaped(study, mode, metric, every), _swaps(swaps)]
    return [finding for finding in [*sentences, *_faithful(study, mode, metric)] if finding]


def _draws(study: Study, mode: int) -> Finding | None:
    """Where the draws are not exact nothing is."""
    if mode not in study.shaped_modes:
        return None
    text = "The draws are not exact, so every result of this mode is shaped: its sequences may "
    return Finding(f"All of this is {MARK}.", text + "follow another law than the denoiser's.")


def _flawless(study: Study, metric: Metric, points: list[Point]) -> Finding | None:
    """Who has every sequence right, everywhere; else the best in its worst case."""
    panels = {p.panel for p in points}
    by = {s: [p for p in points if p.sampler == s] for s in {p.sampler for p in points}}
    whole = {s: mine for s, mine in sorted(by.items()) if {p.panel for p in mine} == panels}
    if len(by) < 2 or not whole or not metric.share or metric.better < 0:
        return None
    every = all_panels(len(panels))
    clean = {s: mine for s, mine in whole.items() if all(p.value == 1 for p in mine)}
    if clean:
        return _clean(study, metric, clean, len(whole), every)
    worst = {s: min(mine, key=lambda p: p.value) for s, mine in whole.items()}
    top = max(worst, key=lambda s: (worst[s].value, -worst[s].cost))
    low = f"{number(metric, worst[top].value)} on {where(study, worst[top].panel)}"
    name, at = study.label(top), costs(study, whole[top])
    if len(whole) == 1:
        text = f"Only {name} was run in {every}; its worst {metric.title} is {low}, with {at}."
    else:
        text = f"Of the {settings(study, len(whole))} run in {every}, {name} has the best worst "
        text += f"case: {metric.title} {low}, with {at}."
    return Finding("No sampler is right everywhere.", text)


def _clean(
    study: Study, metric: Metric, clean: dict[int, list[Point]], run: int, every: str
) -> Finding:
    """Those without a fault: by name where they are few, else how many, and the cheapest."""
    mean = {s: sum(p.cost for p in mine) / len(mine) for s, mine in clean.items()}
    order = sorted(clean, key=lambda s: (mean[s], s))
    value = f"{metric.title} {number(metric, 1.0)} in {every}"
    if len(clean) <= FEW:
        who = listed([f"{study.label(s)} ({costs(study, clean[s])})" for s in order])
        text = f"{capital(who)} {'has' if len(clean) == 1 else 'have'} {value}."
        return Finding("Flawless.", text)
    least = [s for s in order if mean[s] < mean[order[0]] + 0.05]
    text = f"{len(clean)} of {settings(study, run)} have {value}."
    if len(least) <= FEW:
        at = cost_words(study, brief(mean[order[0]]))
        need = "needs" if len(least) == 1 else "need"
        text += f" {capital(listed([study.label(s) for s in least]))} {need} the fewest: {at} on "
        text += "average."
    rows = [(study.label(s), span([p.cost for p in clean[s]]), brief(mean[s])) for s in order]
    heads = ("sampler", study.cost.title, "on average")
    return Finding("Flawless.", text, Sheet(f"The {len(clean)} flawless", heads, rows))


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
    text = f"On {where(study, high.panel)}, at {costs(study, [high])}, "
    text += f"{study.label(high.sampler)} reaches {number(metric, high.value)} and "
    text += f"{study.label(low.sampler)} {number(metric, low.value)}."
    return Finding("It matters which positions are drawn, not only how many.", text)


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
            out.append(_excess(study, metric, quality, cells))
    return out


def _excess(
    study: Study,
    metric: Metric,
    quality: Metric,
    cells: list[tuple[float, float, float, int, int, float]],
) -> Finding:
    """How many are as near to the law as exact sequences; who is good, and furthest from it."""
    near = sum(excess <= NORMAL * error for excess, error, *_ in cells)
    text = f"By {metric.title}, {near or 'none'} of {plural(len(cells), 'result')} "
    text += "cannot be told from exact sequences."
    off = [row for row in cells if row[2] >= GOOD and row[0] > NORMAL * row[1]]
    if not (off and quality.share):
        return Finding(f"{capital(metric.title)}.", text)
    excess, _, good, p, s, value = max(off, key=lambda row: row[0])
    text += f" {capital(study.label(s))} on {where(study, p)} has {quality.title} "
    text += f"{number(quality, good)}, but {metric.title} {number(metric, value)} where exact "
    text += f"sequences get {number(metric, value - excess)}."
    return Finding(f"High {quality.title} is not yet the right law.", text)
