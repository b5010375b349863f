"""Fronts, the best rule for a budget, and rules that change places, as Markdown.

    fronts     for every panel the samplers that no other beats in cost and quality
    budgets    for every panel and budget the best rule, the next rule, and whether that is noise
    swaps      pairs of rules that change places between two worlds at the same budget

See budgets.py for what a rule is and how choices and many comparisons are paid for.
"""

from collections.abc import Iterator, Sequence

from maskwalk.decoding.kinds import MARK
from maskwalk.report.budgets import BUDGETS, Leader, leaders
from maskwalk.report.estimates import INTERVAL, number, plus_minus
from maskwalk.report.formats import as_markdown
from maskwalk.report.points import Point, ahead_by_shaping, front, lawful, points_of
from maskwalk.report.study import Study
from maskwalk.report.swaps import Swap, rule_swaps
from maskwalk.report.words import SHAPED_MEANS, capital, chance, plural
from maskwalk.worlds.metrics import Metric

SHOWN = 30  # swaps of a mode


def budgets_markdown(study: Study, budgets: Sequence[float] = BUDGETS) -> str:
    """All three for every mode."""
    parts = [part for mode in range(len(study.modes)) for part in _mode(study, mode, budgets)]
    return "\n".join(parts) or "The records hold no quality with its cost.\n"


def _mode(study: Study, mode: int, budgets: Sequence[float]) -> Iterator[str]:
    every, name, metric = points_of(study, mode), study.modes[mode], study.quality
    if not every or metric is None:
        return
    points = lawful(every)
    yield f"## Pareto fronts ({name})\n"
    yield (
        f"{capital(metric.title)} {INTERVAL}. Steps that gain no more than the 95 % interval of "
        "the difference are left out.\n"
    )
    rows = [["panel", study.cost.title, metric.title, "sampler"]]
    for panel in sorted({p.panel for p in points}):
        for point in front([p for p in points if p.panel == panel]):
            label = study.marked(point.sampler, mode, panel)
            rows.append([_panel(study, panel), f"{point.cost:.1f}", _number(metric, point), label])
    yield as_markdown(rows)
    yield from _shaped(study, mode, metric, ahead_by_shaping(every))
    yield from _leaders(study, metric, name, leaders(study, mode, budgets))
    yield from _swaps(study, mode, metric, budgets)


def _shaped(study: Study, mode: int, metric: Metric, ahead: Sequence[Point]) -> Iterator[str]:
    """What is beyond the front by another law."""
    if not ahead:
        return
    yield f"## Beyond a front by shaping ({study.modes[mode]})\n"
    yield f"{MARK} {SHAPED_MEANS} They take no part in the fronts and in what follows.\n"
    rows = [["panel", study.cost.title, metric.title, "sampler", "law"]]
    for p in ahead:
        row = [_panel(study, p.panel), f"{p.cost:.1f}", _number(metric, p)]
        law = study.law_words(mode, p.panel, p.sampler)
        rows.append([*row, study.marked(p.sampler, mode, p.panel), law])
    yield as_markdown(rows)


def _leaders(study: Study, metric: Metric, name: str, winners: Sequence[Leader]) -> Iterator[str]:
    cost = study.cost.title
    yield f"## The best rule within a budget ({name})\n"
    clear = sum(one.clear for one in winners)
    yield (
        f"{clear} of {plural(len(winners), 'winner')} clear (Holm, 5 %). As good: rules within the "
        "95 % interval of the difference to the best.\n"
    )
    head = ["panel", f"{cost} ≤", "best", metric.title, "next rule", metric.title, "p", "as good"]
    yield as_markdown([head, *(_leader(study, metric, one) for one in winners)])


def _swaps(study: Study, mode: int, metric: Metric, budgets: Sequence[float]) -> Iterator[str]:
    yield f"## Rules that change places ({study.modes[mode]})\n"
    swaps = rule_swaps(study, mode, budgets)
    change = "pair of rules changes" if len(swaps.pairs) == 1 else "pairs of rules change"
    rest = f" The widest {SHOWN}:" if len(swaps.pairs) > SHOWN else ""
    comparisons = f"{swaps.comparisons:,} comparisons (Holm, 5 %)"
    yield f"{len(swaps.pairs)} {change} places; {comparisons}.{rest}\n"
    head = ["task", f"{study.cost.title} ≤", "wins here", "on", "wins : loses"]
    head += ["wins there", "on", "wins : loses", "p", "swaps"]
    if swaps.pairs:
        yield as_markdown([head, *(_swap(study, metric, one) for one in swaps.pairs[:SHOWN])])


def _panel(study: Study, panel: int) -> str:
    place = study.panels[panel]
    return f"{place.title}, {place.task}"


def _number(metric: Metric, point: Point) -> str:
    return number(metric, point.value) + plus_minus(point.half, metric.digits)


def _setting(study: Study, point: Point) -> str:
    return f"{study.label(point.sampler)} ({point.cost:.1f})"


def _leader(study: Study, metric: Metric, one: Leader) -> list[str]:
    row = [_panel(study, one.panel), f"{one.budget:g}", _setting(study, one.best.point)]
    row.append(_number(metric, one.best.point))
    second = one.second.point if one.second else None
    row += [_setting(study, second), _number(metric, second)] if second else ["–"] * 2
    return [*row, chance(one.p), str(len(one.level))]


def _swap(study: Study, metric: Metric, one: Swap) -> list[str]:
    values = [number(metric, point.value) for point in one.points]
    row = [one.task, f"{one.budget:g}", _setting(study, one.points[0])]
    row += [study.panels[one.here].title, f"{values[0]} : {values[1]}"]
    row += [_setting(study, one.points[3])]
    row += [study.panels[one.there].title, f"{values[3]} : {values[2]}"]
    return [*row, chance(one.p), str(one.places)]
