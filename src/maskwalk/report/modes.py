"""What the modes mean and where they differ: as published, exact, and with perfect conditionals.

Differences are taken over the cells that the modes share, so that a mode run on fewer graphs is not
praised or blamed for that; a change is named only beyond three standard errors.
"""

from itertools import combinations
from math import hypot, sqrt

from maskwalk.bench.labels import leading_name
from maskwalk.report.study import Study
from maskwalk.report.summary import Finding, Point, listed, plural, points_of, where
from maskwalk.report.tables import FAR


def modes_told(study: Study) -> list[tuple[str, str]]:
    """What each mode means: whose conditionals, and how tokens are drawn from them."""
    out = []
    for mode, name in enumerate(study.modes):
        record = next(r for (m, _, _), r in study.cells.items() if m == mode)
        kind = leading_name(record["denoiser"])
        whose = {"oracle": "perfect conditionals", "zoo": "the models shipped with maskwalk"}
        draw = record.get("draw")
        precision = draw.get("precision") if isinstance(draw, dict) else None
        ties = {"index": "to the lowest position", "uniform": "at random"}.get(
            str(record.get("ties")), "as recorded"
        )
        how = f"tokens drawn in {precision}, ties broken {ties}" if precision else "draws unknown"
        out.append((name, f"{whose.get(kind, 'a trained model')}; {how}"))
    return out


def compared(study: Study) -> list[Finding]:
    """What changes between modes, over the cells they share: the mean, and the widest change."""
    held: dict[tuple[int, int], dict[int, Point]] = {}
    for mode in range(len(study.modes)):
        for point in points_of(study, mode):
            held.setdefault((point.panel, point.sampler), {})[mode] = point
    every = [cell for cell in held.values() if len(cell) == len(study.modes)]
    if len(study.modes) < 2 or not every:
        return []
    means = [sum(cell[m].value for cell in every) / len(every) for m in range(len(study.modes))]
    shown = listed([f"{v:.3f} with {name}" for v, name in zip(means, study.modes)])
    text = f"Over the {plural(len(every), 'cell')} that every mode has, mean coherence is {shown}."
    out = [Finding("Modes compared.", text)]
    changes = []
    for one, two in combinations(range(len(study.modes)), 2):
        both = [(cell[one], cell[two]) for cell in held.values() if one in cell and two in cell]
        a, b = max(both, key=lambda pair: abs(pair[0].value - pair[1].value))
        if abs(a.value - b.value) > 3 * hypot(a.spread, b.spread):
            text = f"{study.modes[one]} to {study.modes[two]}, {study.samplers[a.sampler].label} "
            changes.append(f"{text}on {where(study, a.panel)}: {a.value:.3f} to {b.value:.3f}")
    if changes:
        out.append(Finding("Widest changes:", "; ".join(changes) + "."))
    return out


def against_paper(study: Study, mode: int) -> list[Finding]:
    """How far these numbers are from the printed ones, where records carry them."""
    held = []
    for m, p, s in study.cells:
        found, printed = study.estimate(m, p, s, "coherence"), study.published(m, p, s)
        if m == mode and found and printed:
            held.append((abs(printed.away or 0.0), found.value, printed.value, p, s))
    if not held:
        return []
    rms = sqrt(sum((ours - paper) ** 2 for _, ours, paper, _, _ in held) / len(held))
    far = sum(away > FAR for away, *_ in held)
    text = f"{plural(len(held), 'cell')} of the paper's tables: root mean square difference "
    text += f"{rms:.3f}; {far or 'none'} differ by more than {FAR:g} combined standard errors"
    away, ours, paper, p, s = max(held)
    if away > FAR:
        text += f", {study.samplers[s].label} on {where(study, p)} most ({ours:.3f}, in the paper "
        text += f"{paper:.3f})"
    return [Finding("Against the paper:", text + ".")]
