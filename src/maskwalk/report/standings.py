"""Sentences of a single panel: the reference and AR, who leads within a budget, who is near.

Rules are compared within a budget as in budgets.py: each at its best setting, the best against the
next, paid for by the number of settings and by Holm's correction over all comparisons of a mode.
No number is given without its interval, and nothing is said to lead that has none.
"""

from collections.abc import Sequence

from maskwalk.report.budgets import Leader, Stand
from maskwalk.report.estimates import Estimate, number, plus_minus, with_interval
from maskwalk.report.points import Point, lawful, noise, point_at, points_of
from maskwalk.report.study import REFERENCE, Study
from maskwalk.report.summary import Finding
from maskwalk.report.words import capital, listed
from maskwalk.worlds.metrics import Metric


def standings(study: Study, mode: int, leaders: Sequence[Leader]) -> list[Finding]:
    """All such sentences of one mode of a study with one panel."""
    findings = _standing(study, mode, None, f"{capital(REFERENCE)}:")
    for s in sorted(study.causal):
        cost = study.estimate(mode, 0, s, study.cost)
        at = _cost(study, cost.value) if cost else "cost unknown"
        findings += _standing(study, mode, s, f"{study.label(s)} ({at}):")
    findings += _led(study, leaders) or _unled(study, mode)
    return [*findings, *_against_ar(study, mode), *_nearest(study, mode)]


def _standing(study: Study, mode: int, sampler: int | None, lead: str) -> list[Finding]:
    numbers = [(metric, study.estimate(mode, 0, sampler, metric)) for metric in study.drawn]
    words = [f"{metric.title} {_with_n(metric, one)}" for metric, one in numbers if one]
    return [Finding(lead, ", ".join(words) + ".")] if words else []


def _with_n(metric: Metric, estimate: Estimate) -> str:
    n = "" if estimate.n is None else f" (n = {estimate.n:,})"
    return with_interval(metric, estimate) + n


def _led(study: Study, leaders: Sequence[Leader]) -> list[Finding]:
    """Who is ahead of the next beyond the noise, and where nobody is."""
    won: dict[tuple[Stand, Stand], list[float]] = {}
    unclear = []
    for one in leaders:
        if one.second is not None and one.clear:
            won.setdefault((one.best, one.second), []).append(one.budget)
        elif one.second is not None:
            unclear.append(one.budget)
    cost, parts = study.cost.title, []
    for (first, second), budgets in won.items():
        ahead, behind = stand_words(study, first), stand_words(study, second)
        parts.append(f"within {_budgets(budgets)} {cost} {ahead} is ahead of {behind}")
    if unclear:
        parts.append(f"within {_budgets(unclear)} {cost} the noise leaves open who leads")
    return [Finding(_at_equal(study), f"{'; '.join(parts)}.")] if parts else []


def _at_equal(study: Study) -> str:
    assert study.quality is not None  # leaders are made of its points
    return f"{capital(study.quality.title)} at equal {study.cost.title}:"


def stand_words(study: Study, stand: Stand) -> str:
    """ "bisection (0.932 ± 0.021 at 5 calls)"."""
    return f"{study.label(stand.point.sampler)} ({stand_number(study, stand)})"


def stand_number(study: Study, stand: Stand) -> str:
    """ "0.932 ± 0.021 at 5 calls"."""
    point, metric = stand.point, study.quality
    assert metric is not None
    value = number(metric, point.value) + plus_minus(point.half, metric.digits)
    return f"{value} at {_cost(study, point.cost)}"


def _cost(study: Study, value: float) -> str:
    """ "5 calls", "1 call"."""
    amount, name = number(study.cost, value), study.cost.title
    return f"{amount} {name.removesuffix('s') if amount == '1' else name}"


def _budgets(budgets: Sequence[float]) -> str:
    return listed([f"{budget:g}" for budget in budgets])


def _unled(study: Study, mode: int) -> list[Finding]:
    """Samplers could lead, had their numbers intervals."""
    if study.quality is None:
        return []
    numbers = [study.estimate(mode, 0, s, study.quality) for s in study.tried]
    estimates = [estimate for estimate in numbers if estimate]
    if len(estimates) < 2 or any(estimate.se is not None for estimate in estimates):
        return []
    text = "the records give no interval, so nothing is said to lead."
    return [Finding(_at_equal(study), text)]


def _against_ar(study: Study, mode: int) -> list[Finding]:
    """How far the best sampler is from AR in quality."""
    metric, points = study.quality, lawful(points_of(study, mode))
    if metric is None or not points:
        return []
    out = []
    for s in sorted(study.causal):
        ar = study.estimate(mode, 0, s, metric)
        if ar is None or ar.se is None or ar.bound:
            continue
        best = max(points, key=lambda p: (p.score, -p.cost))
        gap, half = best.value - ar.value, noise(best, ar)
        text = f"the best sampler is {_point_words(study, mode, metric, best)}, "
        text += f"{gap:+.{metric.digits}f}{plus_minus(half, metric.digits)} from it."
        lead = f"To {study.label(s)}’s {metric.title} ({with_interval(metric, ar)}):"
        out.append(Finding(lead, text))
    return out


def _point_words(study: Study, mode: int, metric: Metric, point: Point) -> str:
    estimate = study.estimate(mode, 0, point.sampler, metric)
    n = "" if estimate is None or estimate.n is None else f", n = {estimate.n:,}"
    value = number(metric, point.value) + plus_minus(point.half, metric.digits) + n
    at = _cost(study, point.cost)
    return f"{study.label(point.sampler)} at {at} ({value})"


def _nearest(study: Study, mode: int) -> list[Finding]:
    """Where a metric has no direction and the reference is the mark: who is nearest to it."""
    parts = []
    for metric in (m for m in study.drawn if not m.better):
        mark = study.estimate(mode, 0, None, metric)
        points = lawful([p for s in study.tried if (p := point_at(study, mode, 0, s, metric))])
        if mark and mark.se is not None and points:
            value = mark.value
            best = min(points, key=lambda p: (abs(p.value - value), p.cost))
            words = _point_words(study, mode, metric, best)
            parts.append(f"in {metric.title} ({with_interval(metric, mark)}) {words}")
    return [Finding(f"Nearest to {REFERENCE}:", "; ".join(parts) + ".")] if parts else []
