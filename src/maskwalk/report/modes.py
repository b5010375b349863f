"""What the modes mean and where they differ: as published, exact, and with perfect conditionals.

Differences are taken over the cells that the modes share, so that a mode run on fewer worlds is not
praised or blamed for that; a change is named only beyond the noise, after Holm's correction.
"""

from itertools import combinations
from math import sqrt

from maskwalk.bench import labels
from maskwalk.bench.records import Record
from maskwalk.report.estimates import number, plus_minus
from maskwalk.report.points import Point, beyond_noise, points_of
from maskwalk.report.study import Study
from maskwalk.report.summary import Finding, where
from maskwalk.report.words import listed, plural
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
    metrics = study.drawn if study.single else [m for m in study.drawn if m == study.quality]
    parts, cells = [], 0
    for metric in metrics:
        shared = [cell for cell in _cells(study, metric) if len(cell) == len(study.modes)]
        if len(study.modes) > 1 and shared:
            cells = max(cells, len(shared))
            parts.append(f"{metric.title} is {_means(study, metric, shared)}")
    if not parts:
        return []
    text = f"On average over the {plural(cells, 'result')} that all have, {'; '.join(parts)}."
    out = [Finding("Modes compared.", text)]
    changes = _changes(study) if study.quality else []
    return out + ([Finding("Widest changes:", "; ".join(changes) + ".")] if changes else [])


def _cells(study: Study, metric: Metric) -> list[dict[int, Point]]:
    """For every panel and sampler its points by mode."""
    cells: dict[tuple[int, int], dict[int, Point]] = {}
    for mode in range(len(study.modes)):
        for point in points_of(study, mode, metric):
            cells.setdefault((point.panel, point.sampler), {})[mode] = point
    return list(cells.values())


def _means(study: Study, metric: Metric, cells: list[dict[int, Point]]) -> str:
    means = []
    for mode, name in enumerate(study.modes):
        mean = sum(cell[mode].value for cell in cells) / len(cells)
        half = half_width(combined(*(cell[mode].se for cell in cells)) / len(cells)) or 0.0
        means.append(f"{number(metric, mean)}{plus_minus(half, metric.digits)} with {name}")
    return listed(means)


def _changes(study: Study) -> list[str]:
    """The widest change of quality between two modes, where it is beyond the noise."""
    metric, changes = study.quality, []
    assert metric is not None
    cells = _cells(study, metric)
    for one, two in combinations(range(len(study.modes)), 2):
        both = [(cell[one], cell[two]) for cell in cells if one in cell and two in cell]
        different = beyond_noise(both)
        if different:
            a, b = max(different, key=lambda pair: abs(pair[0].value - pair[1].value))
            text = f"{study.modes[one]} to {study.modes[two]}, {study.label(a.sampler)} on "
            text += f"{where(study, a.panel)}: {number(metric, a.value)} to "
            changes.append(text + number(metric, b.value))
    return changes


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
    text = f"{plural(len(cells), 'cell')} of the paper's tables: root mean square difference "
    text += f"{number(metric, rms)}; {far or 'none'} lie outside the 95 % interval of the "
    text += f"difference (by chance about {LEVEL * len(cells):.0f} would)"
    _, ours, paper, p, s = max(cells, key=lambda cell: cell[0])
    if paper.far:
        text += f", {study.label(s)} on {where(study, p)} most ({number(metric, ours)}, in the "
        text += f"paper {number(metric, paper.value)})"
    return [Finding("Against the paper:", text + ".")]
