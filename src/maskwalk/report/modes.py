"""What the modes mean and where they differ: as published, exact, and with perfect conditionals.

Differences are taken over the cells that the modes share, so that a mode run on fewer worlds is not
praised or blamed for that; a change is named only beyond the noise, after Holm's correction.
"""

from itertools import combinations
from math import sqrt

from maskwalk.bench import labels
from maskwalk.bench.records import Record
from maskwalk.report.estimates import number, plus_minus
from maskwalk.report.finding import Finding, Sheet, where
from maskwalk.report.points import Point, beyond_noise, points_of
from maskwalk.report.study import Study
from maskwalk.report.words import capital, listed, plural
from maskwalk.stats import LEVEL, combined, half_width
from maskwalk.worlds.metrics import Metric

OWNERS = {"oracle": "perfect conditionals", "zoo": "the models shipped with maskwalk"}
TIES = {"index": "to the lowest position", "uniform": "at random"}


def mode_meanings(study: Study) -> list[tuple[str, str]]:
    """What each mode means: whose conditionals, and how tokens are drawn from them."""
    out = []
    for mode, name in enumerate(study.modes):
        cells = [r for (m, _, s), r in study.cells.items() if m == mode and s not in study.causal]
        if cells:
            out.append((name, f"{_owner(cells[0])}; {_draw_words(cells[0])}"))
    return out


def _owner(record: Record) -> str:
    kind = labels.leading_name(str(record.get("denoiser") or ""))
    return OWNERS.get(kind, "a trained model")


def _draw_words(record: Record) -> str:
    draw = labels.read(str(record.get("draw") or "")).kwargs
    if "precision" not in draw:
        return "draws unknown"
    words = f"tokens drawn in {draw['precision']}"
    share = min((draw.get(key, 1.0) for key in ("top_p", "top_p_strict")), default=1.0)
    if share < 1.0:
        words += f" from the likeliest tokens that together hold {share} of the probability"
    if draw.get("min_p"):
        words += f", none below {draw['min_p']} of the likeliest"
    if draw.get("floor"):
        words += f", none below {draw['floor']} of the typical one"
    if draw.get("temperature", 1.0) != 1.0:
        words += f", at temperature {draw['temperature']}"
    return f"{words}, ties broken {TIES.get(str(record.get('ties')), 'as recorded')}"


def compared(study: Study) -> list[Finding]:
    """What changes between modes, over the cells they share: means, and the widest changes."""
    if len(study.modes) < 2:
        return []
    metrics = study.drawn if study.single else [m for m in study.drawn if m == study.quality]
    rows = []
    for metric in metrics:
        shared = [cell for cell in _cells(study, metric) if len(cell) == len(study.modes)]
        rows += [(metric, len(shared), _means(study, metric, shared))] if shared else []
    if not rows:
        return []
    metric, cells, means = rows[0]
    each = listed([f"{mean} with {name}" for name, mean in zip(study.modes, means)])
    text = f"Over the {plural(cells, 'result')} that all have, mean {metric.title} is {each}."
    table = [(m.title, f"{n:,}", *numbers) for m, n, numbers in rows]
    sheet = Sheet("All metrics, mode by mode", ("mean of", "results", *study.modes), table)
    out = [Finding("Modes compared.", text, sheet if len(rows) > 1 else None)]
    return out + (_widest(study) if study.quality else [])


def _cells(study: Study, metric: Metric) -> list[dict[int, Point]]:
    """For every panel and sampler its points by mode."""
    cells: dict[tuple[int, int], dict[int, Point]] = {}
    for mode in range(len(study.modes)):
        for point in points_of(study, mode, metric):
            cells.setdefault((point.panel, point.sampler), {})[mode] = point
    return list(cells.values())


def _means(study: Study, metric: Metric, cells: list[dict[int, Point]]) -> list[str]:
    """For every mode the mean with its interval."""
    means = []
    for mode in range(len(study.modes)):
        mean = sum(cell[mode].value for cell in cells) / len(cells)
        half = half_width(combined(*(cell[mode].se for cell in cells)) / len(cells)) or 0.0
        means.append(f"{number(metric, mean)}{plus_minus(half, metric.digits)}")
    return means


def _widest(study: Study) -> list[Finding]:
    """The widest change of quality between two modes, where it is beyond the noise."""
    metric, changes = study.quality, []
    assert metric is not None
    cells = _cells(study, metric)
    for one, two in combinations(range(len(study.modes)), 2):
        both = [(cell[one], cell[two]) for cell in cells if one in cell and two in cell]
        different = beyond_noise(both)
        if different:
            a, b = max(different, key=lambda pair: abs(pair[0].value - pair[1].value))
            changes.append((abs(a.value - b.value), one, two, a, b))
    if not changes:
        return []
    _, one, two, a, b = max(changes, key=lambda change: change[0])
    text = f"From {study.modes[one]} to {study.modes[two]}, the {metric.title} of "
    text += f"{study.label(a.sampler)} on {where(study, a.panel)} goes from "
    text += f"{number(metric, a.value)} to {number(metric, b.value)}."
    rows = [_change(study, metric, *change[1:]) for change in changes]
    heads = ("from", "to", "sampler", "on", f"{metric.title} before", "after")
    sheet = Sheet("The widest change between every two modes", heads, rows)
    return [Finding("Widest change.", text, sheet if len(rows) > 1 else None)]


def _change(
    study: Study, metric: Metric, one: int, two: int, a: Point, b: Point
) -> tuple[str, ...]:
    place = (study.modes[one], study.modes[two], study.label(a.sampler), where(study, a.panel))
    return (*place, number(metric, a.value), number(metric, b.value))


def against_paper(study: Study, mode: int) -> list[Finding]:
    """How far these numbers are from the printed ones, where records carry them."""
    metric, cells = study.quality, []
    if metric is None:
        return []
    for m, p, s in study.cells:
        estimate, paper = study.estimate(m, p, s, metric), study.published(m, p, s)
        if m == mode and estimate and paper:
            cells.append((abs(paper.away or 0.0), estimate.value, paper, p, s))
    if not cells:
        return []
    rms = sqrt(sum((ours - paper.value) ** 2 for _, ours, paper, *_ in cells) / len(cells))
    far = sum(paper.far for _, _, paper, *_ in cells)
    text = f"Of {plural(len(cells), 'cell')} of the paper's tables, {far or 'none'} lie outside "
    text += "the 95 % interval of the difference, where chance alone gives about "
    text += f"{LEVEL * len(cells):.0f}. The root mean square difference is {number(metric, rms)}."
    _, ours, paper, p, s = max(cells, key=lambda cell: cell[0])
    if paper.far:
        text += f" {capital(study.label(s))} on {where(study, p)} is furthest off: "
        text += f"{number(metric, ours)}, in the paper {number(metric, paper.value)}."
    return [Finding("Against the paper.", text)]
