"""What the atlas's document is made of, as Markdown: fronts, the best rule for a budget, turns.

    fronts     for every panel the samplers that no other beats in calls and coherence
    budgets    for every panel and budget the best rule, the next rule, and whether that is noise
    turns      pairs of rules that change places between two graphs at the same budget

See rules.py for what a rule is and how choices and many comparisons are paid for.
"""

from collections.abc import Iterator, Sequence

from maskwalk.report.rules import BUDGETS, Leader, Turn, front, leaders, turns
from maskwalk.report.study import Study
from maskwalk.report.summary import NOISE, Point, plural, points_of
from maskwalk.report.tables import as_markdown

SHOWN = 30  # turns of a mode


def fronts_markdown(study: Study, budgets: Sequence[float] = BUDGETS) -> str:
    """All three for every mode."""
    parts = [part for mode in range(len(study.modes)) for part in _mode(study, mode, budgets)]
    return "\n".join(parts) or "The records hold no coherence with its calls.\n"


def _mode(study: Study, mode: int, budgets: Sequence[float]) -> Iterator[str]:
    points, name = points_of(study, mode), study.modes[mode]
    if not points:
        return
    yield f"## Pareto fronts ({name})\n"
    yield f"Steps that gain no more than {NOISE:g} standard errors are left out.\n"
    rows = [["panel", "calls", "coherence", "sampler"]]
    for panel in sorted({p.panel for p in points}):
        for point in front([p for p in points if p.panel == panel], NOISE):
            label = study.samplers[point.sampler].label
            rows.append([_panel(study, panel), f"{point.calls:.1f}", _number(point), label])
    yield as_markdown(rows)
    yield f"## The best rule within a budget ({name})\n"
    found = leaders(study, mode, budgets)
    clear = sum(one.clear for one in found)
    yield (
        f"{clear} of {plural(len(found), 'winner')} clear (Holm, 5 %). As good: rules within "
        f"{NOISE:g} standard errors of the best.\n"
    )
    head = ["panel", "calls ≤", "best", "coherence", "next rule", "coherence", "p", "as good"]
    yield as_markdown([head, *(_leader(study, one) for one in found)])
    yield f"## Rules that change places ({name})\n"
    made = turns(study, mode, budgets)
    said = "pair of rules changes" if len(made.found) == 1 else "pairs of rules change"
    rest = f" The widest {SHOWN}:" if len(made.found) > SHOWN else ""
    yield f"{len(made.found)} {said} places; {made.comparisons:,} comparisons (Holm, 5 %).{rest}\n"
    head = ["task", "calls ≤", "wins here", "on", "wins : loses"]
    head += ["wins there", "on", "wins : loses", "p", "turns"]
    if made.found:
        yield as_markdown([head, *(_turn(study, one) for one in made.found[:SHOWN])])


def _panel(study: Study, panel: int) -> str:
    shown = study.panels[panel]
    return f"{shown.title}, {shown.task}"


def _number(point: Point) -> str:
    return f"{point.value:.3f} ± {point.spread:.3f}"


def _chance(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _setting(study: Study, point: Point) -> str:
    return f"{study.samplers[point.sampler].label} ({point.calls:.1f})"


def _leader(study: Study, one: Leader) -> list[str]:
    row = [_panel(study, one.panel), f"{one.budget:g}", _setting(study, one.best.point)]
    row.append(_number(one.best.point))
    row += (
        [_setting(study, one.second.point), _number(one.second.point)] if one.second else ["–"] * 2
    )
    return [*row, _chance(one.p), str(len(one.level))]


def _turn(study: Study, one: Turn) -> list[str]:
    a, b, c, d = one.points
    row = [one.task, f"{one.budget:g}"]
    row += [_setting(study, a), study.panels[one.here].title, f"{a.value:.3f} : {b.value:.3f}"]
    row += [_setting(study, d), study.panels[one.there].title, f"{d.value:.3f} : {c.value:.3f}"]
    return [*row, _chance(one.p), str(one.places)]
