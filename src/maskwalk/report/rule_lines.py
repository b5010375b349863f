"""Lines against a parameter of the graph, one for a rule, where samplers are too many to draw.

With a hundred settings a line for each is a thicket. Rules at matched calls can be read: for every
budget a figure, in it for every rule the coherence of its best setting within the budget (rules.py)
on each graph of the axis. Which setting that is may differ from graph to graph; the mark tells.
"""

from dataclasses import replace

from maskwalk.report.rules import BUDGETS, crowded, stands
from maskwalk.report.series import Line, Point, Series, place_on_axis, series, swept
from maskwalk.report.study import Study
from maskwalk.report.summary import points_of


def drawn_series(study: Study) -> list[Series]:
    """Every line figure of the study; a crowd's by rule and budget, where the axis is a graph's."""
    plain = series(study)
    if not crowded(study) or swept(study):
        return plain
    graphs = {name for r in study.cells.values() if (name := place_on_axis(r)[0])}
    out = []
    for one in plain:
        if one.axis not in graphs:
            out.append(one)
        elif one.metric == "coherence":
            out += [s for budget in BUDGETS if (s := _within(study, one, budget)).lines]
    return out


def _within(study: Study, one: Series, budget: float) -> Series:
    """The figure of one budget, on the graphs of `one`."""
    known = {(line.mode, p.sampler, p.x) for line in one.lines for p in line.points}
    label = {family.name: family.label for family in study.families}
    lines = []
    for mode in range(len(study.modes)):
        found, made = points_of(study, mode), dict[str, list[Point]]()
        for panel in study.of_task(one.task):
            mine = [p for p in found if p.panel == panel]
            for stand in stands(study, mine, budget):
                s = stand.point.sampler
                x = place_on_axis(study.cells[mode, panel, s])[1]
                held = study.estimate(mode, panel, s, "coherence")
                if held and x is not None and (mode, s, x) in known:
                    made.setdefault(stand.rule, []).append(Point(x, held.value, held.se, held.n, s))
        if len({p.x for points in made.values() for p in points}) < 2:
            continue  # one graph is no line
        for rule, points in made.items():
            points.sort(key=lambda p: p.x or 0.0)
            lines.append(Line(mode, label[rule], rule, points))
    return replace(one, title=f"{one.title}, at most {budget:g} calls", lines=lines)
