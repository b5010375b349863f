"""Sentences of a single panel: the reference and AR, who leads within a budget, who is near.

Rules are compared within a budget as in budgets.py: each at its best setting, the best against the
next, paid for by the number of settings and by Holm's correction over all comparisons of a mode.
No number is given without its interval, and nothing is said to lead that has none.
"""

from collections.abc import Sequence
from dataclasses import replace

from maskwalk.report.budgets import Leader, Stand
from maskwalk.report.estimates import NONE, Estimate, number, plus_minus, with_interval
from maskwalk.report.finding import Finding, Sheet, cost_words
from maskwalk.report.points import Point, lawful, noise, point_at, points_of
from maskwalk.report.study import REFERENCE, Study
from maskwalk.report.words import capital, listed
from maskwalk.worlds.metrics import Metric

LED = 2  # leads in a sentence; the table of budgets has all


def standings(study: Study, mode: int, leaders: Sequence[Leader]) -> list[Finding]:
    """All such sentences of one mode of a study with one panel; the first one has the table."""
    found = [*_against_ar(study, mode), *(_led(study, leaders) or _unled(study, mode))]
    sheet = _marks(study, mode)
    if sheet and not found:
        return [Finding(f"{sheet.title}.", "The table says how far everybody is.", sheet)]
    return [replace(found[0], sheet=sheet), *found[1:]] if sheet else found


def _marks(study: Study, mode: int) -> Sheet | None:
    """What samplers are measured by, metric by metric: held-out text, AR, and who is near."""
    mark = study.record(mode, 0, None)
    causal = [s for s in sorted(study.causal) if study.record(mode, 0, s)]
    if not mark and not causal:
        return None
    ahead: list[int | None] = [None, *causal] if mark else [*causal]
    rows = []
    for metric in study.drawn:
        near = _nearest(study, mode, metric) if mark else None
        numbers = [_with_n(metric, study.estimate(mode, 0, s, metric)) for s in ahead]
        if any(number != NONE for number in numbers):
            rows.append((metric.title, *numbers, *((near or NONE,) if mark else ())))
    names = [*([REFERENCE] if mark else []), *(_named(study, mode, s) for s in causal)]
    heads = ("", *names, *((f"nearest to {REFERENCE}",) if mark else ()))
    return Sheet(capital(listed([study.label(s) for s in ahead])) + " beside it", heads, rows)


def _named(study: Study, mode: int, sampler: int) -> str:
    cost = study.estimate(mode, 0, sampler, study.cost)
    return f"{study.label(sampler)} ({_cost(study, cost.value) if cost else 'cost unknown'})"


def _with_n(metric: Metric, estimate: Estimate | None) -> str:
    if estimate is None:
        return NONE
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
    cost, told = study.cost.title, []
    for (first, second), budgets in list(won.items())[:LED]:
        ahead, behind = stand_words(study, first), stand_words(study, second)
        told.append(f"Within {_budgets(budgets)} {cost}, {ahead} is ahead of {behind}.")
    if unclear:
        told.append(f"Within {_budgets(unclear)} {cost} the noise leaves open who leads.")
    return [Finding(_at_equal(study), " ".join(told))] if told else []


def _at_equal(study: Study) -> str:
    assert study.quality is not None  # leaders are made of its points
    return f"{capital(study.quality.title)} at equal {study.cost.title}."


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
    return cost_words(study, number(study.cost, value))


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
    text = "The records give no interval, so nothing is said to lead."
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
        text = f"{capital(_point_words(study, mode, metric, best))} is the best sampler by "
        text += f"{metric.title}: {gap:+.{metric.digits}f}{plus_minus(half, metric.digits)} "
        text += f"from the {with_interval(metric, ar)} of {study.label(s)}."
        out.append(Finding(f"Against {study.label(s)}.", text))
    return out


def _point_words(study: Study, mode: int, metric: Metric, point: Point) -> str:
    estimate = study.estimate(mode, 0, point.sampler, metric)
    n = "" if estimate is None or estimate.n is None else f", n = {estimate.n:,}"
    value = number(metric, point.value) + plus_minus(point.half, metric.digits) + n
    at = _cost(study, point.cost)
    return f"{study.label(point.sampler)} at {at} ({value})"


def _nearest(study: Study, mode: int, metric: Metric) -> str | None:
    """Where a metric has no direction and the reference is the mark: who is nearest to it."""
    mark = study.estimate(mode, 0, None, metric)
    points = lawful([p for s in study.tried if (p := point_at(study, mode, 0, s, metric))])
    if metric.better or mark is None or mark.se is None or not points:
        return None
    value = mark.value
    best = min(points, key=lambda p: (abs(p.value - value), p.cost))
    return _point_words(study, mode, metric, best)
