"""Lines against a parameter of the world, one for a rule, where samplers are too many to draw.

With a hundred settings a line for each is a thicket. Rules at matched cost can be read: for every
budget a figure, in it for every rule its best setting within the budget (budgets.py) in each world
of the axis. Which setting that is may differ from world to world; the mark tells.
"""

from dataclasses import replace

from maskwalk.report.budgets import budgets_of, crowded, stands
from maskwalk.report.points import lawful, points_of
from maskwalk.report.series import Line, Point, Series, place_on_axis, series, swept
from maskwalk.report.study import Study


def drawn_series(study: Study) -> list[Series]:
    """Every line figure of the study; a crowd's by rule and budget, where the axis is a world's."""
    plain = series(study)
    if not crowded(study) or swept(study):
        return plain
    points = [p for mode in range(len(study.modes)) for p in points_of(study, mode)]
    budgets = budgets_of(points)
    axes = {name for r in study.cells.values() if (name := place_on_axis(r)[0])}
    out = []
    for one in plain:
        if one.axis not in axes:
            out.append(one)
        elif one.metric == study.quality:
            out += [s for budget in budgets if (s := _within(study, one, budget)).lines]
    return out


def _within(study: Study, one: Series, budget: float) -> Series:
    """The figure of one budget, in the worlds of `one`."""
    places = {(line.mode, p.sampler, p.x) for line in one.lines for p in line.points}
    label = {family.name: family.label for family in study.families}
    lines = []
    for mode in range(len(study.modes)):
        points, by_rule = lawful(points_of(study, mode, one.metric)), dict[str, list[Point]]()
        for panel in study.of_task(one.task):
            mine = [p for p in points if p.panel == panel]
            for stand in stands(study, mine, budget):
                s = stand.point.sampler
                x = place_on_axis(study.cells[mode, panel, s])[1]
                estimate = study.estimate(mode, panel, s, one.metric)
                if estimate and x is not None and (mode, s, x) in places:
                    by_rule.setdefault(stand.rule, []).append(Point(x, estimate, s))
        if len({p.x for marks in by_rule.values() for p in marks}) < 2:
            continue  # one world is no line
        for rule, marks in by_rule.items():
            marks.sort(key=lambda p: p.x or 0.0)
            lines.append(Line(mode, label[rule], rule, marks))
    title = f"{one.title}, at most {budget:g} {study.cost.title}"
    return replace(one, title=title, lines=lines)
