"""Who to use: the cheapest sampler that is as good as the best, and who is ahead by another law.

A sampler is *as good as the best* when it is within the 95 % interval of the difference; the
cheapest such sampler is the one worth using.
"""

from collections import Counter
from collections.abc import Sequence

from maskwalk.decoding.kinds import MARK
from maskwalk.report.estimates import NONE, number
from maskwalk.report.finding import (
    Finding,
    Sheet,
    all_panels,
    costs,
    noun,
    place_heads,
    place_words,
    value_at,
    where,
)
from maskwalk.report.points import Point, ahead_by_shaping, by_panel, level
from maskwalk.report.study import Study
from maskwalk.report.words import capital, listed, plural, span
from maskwalk.worlds.metrics import Metric

EQUAL = 0.05  # costs that differ by less are the same
NAMED = 3  # samplers in a sentence; the table names all


def choice(study: Study, metric: Metric, points: list[Point]) -> Finding:
    """The cheapest samplers as good as the best, and what is left at a lower cost."""
    here = by_panel(points)
    won = {panel: _champions(mine) for panel, mine in here.items()}
    below = {panel: _below(mine, won[panel][0]) for panel, mine in here.items()}
    sheet = _sheet(study, metric, won, below) if len(here) > 1 else None
    less = [point for point in below.values() if point]
    text = _best(study, metric, won) + (_cheaper(study, metric, less) if less else "")
    return Finding("What to use.", text, sheet)


def _champions(points: list[Point]) -> list[Point]:
    """The cheapest among those as good as the best; several where cost and noise leave a tie."""
    best = max(points, key=lambda p: (p.score, -p.cost))
    good = [p for p in points if level(best, p)]
    least = min(p.cost for p in good)
    return [p for p in good if p.cost < least + EQUAL]


def _below(points: list[Point], champion: Point) -> Point | None:
    """The best at a lower cost than the champion's."""
    less = [p for p in points if p.cost < champion.cost - EQUAL]
    return max(less, key=lambda p: (p.score, -p.cost)) if less else None


def _best(study: Study, metric: Metric, won: dict[int, list[Point]]) -> str:
    """Who it is, and in how many panels: every panel counts once, whatever its task."""
    phrase = f"as good as the best with the fewest {study.cost.title}"
    if len(won) == 1:
        ((panel, first),) = won.items()
        who = capital(listed([study.label(p.sampler) for p in first]))
        values = f"{span([p.value for p in first], metric.digits)} at {costs(study, first)}"
        return f"{who} {_is(first)} {phrase} on {where(study, panel)}: {values}."
    counts = Counter(p.sampler for mine in won.values() for p in mine)
    most = counts.most_common(1)[0][1]
    if most == len(won):
        return _everywhere(study, metric, won, [s for s, k in counts.items() if k == most], phrase)
    if most == 1:
        return f"Which {noun(study)} is {phrase} differs from panel to panel."
    (first_one, _), *rest = counts.most_common(NAMED)
    text = f"{capital(study.label(first_one))} is {phrase} in {most} of {len(won)} panels"
    return text + "".join(f", {study.label(s)} in {k}" for s, k in rest) + "."


def _everywhere(
    study: Study, metric: Metric, won: dict[int, list[Point]], all_over: list[int], phrase: str
) -> str:
    mine = [p for points in won.values() for p in points if p.sampler in all_over]
    who = capital(listed([study.label(s) for s in sorted(all_over)], NAMED))
    values = f"{span([p.value for p in mine], metric.digits)} at {costs(study, mine)}"
    return f"{who} {_is(all_over)} {phrase} in {all_panels(len(won))}: {values}."


def _is(some: Sequence[object]) -> str:
    return "is" if len(some) == 1 else "are"


def _cheaper(study: Study, metric: Metric, less: list[Point]) -> str:
    text = f" With fewer {study.cost.title} "
    if len(less) == 1:
        who, at = study.label(less[0].sampler), value_at(study, metric, less[0])
        return f"{text}{who} is the best: {at}."
    ends = dict.fromkeys(number(metric, end(p.value for p in less)) for end in (min, max))
    between = f"between {' and '.join(ends)}" if len(ends) > 1 else next(iter(ends))
    return f"{text}the best of a panel reaches {between}."


def _sheet(
    study: Study, metric: Metric, won: dict[int, list[Point]], below: dict[int, Point | None]
) -> Sheet:
    rows = []
    for panel, points in won.items():
        who = listed([study.label(p.sampler) for p in points], 4)
        value, less = span([p.value for p in points], metric.digits), below[panel]
        row = (*place_words(study, panel), who, value, span([p.cost for p in points]))
        under = f"{study.label(less.sampler)}: {value_at(study, metric, less)}" if less else NONE
        rows.append((*row, under))
    heads = (*place_heads(study), f"as good as the best, fewest {study.cost.title}", metric.title)
    heads = (*heads, study.cost.title, f"best with fewer {study.cost.title}")
    return Sheet(f"What to use in {all_panels(len(won))}", heads, rows)


# ---------------------------------------------------------------- by another law


def shaped(study: Study, mode: int, metric: Metric, points: list[Point]) -> Finding | None:
    """Who would lead by another law, and how far that is from the right one."""
    by = _by_sampler(ahead_by_shaping(points))
    if not by:
        return None
    lead, after = f"Ahead of these, but {MARK}.", "may follow another law than the denoiser's"
    (first, wins), *_ = by.items()
    if len(by) == 1:
        on = where(study, wins[0].panel) if len(wins) == 1 else plural(len(wins), "panel")
        cost = f"{span([p.value for p in wins], metric.digits)} at {costs(study, wins)}"
        text = f"{capital(study.label(first))}{MARK} is ahead on {on} ({cost}), but its sequences "
        return Finding(lead, f"{text}{after}: {_law(study, mode, first, wins)}.")
    who = [f"{study.label(s)}{MARK} in {plural(len(mine), 'panel')}" for s, mine in by.items()]
    text = f"{capital(listed(who, NAMED))} are ahead, but their "
    rows = [_shaped_row(study, mode, metric, s, mine) for s, mine in by.items()]
    heads = ("sampler", "panels", metric.title, study.cost.title, "law")
    sheet = Sheet(f"The {len(by)} that are ahead, but {MARK}", heads, rows)
    return Finding(lead, f"{text}sequences {after}.", sheet)


def _shaped_row(
    study: Study, mode: int, metric: Metric, sampler: int, wins: list[Point]
) -> tuple[str, ...]:
    values, at = span([p.value for p in wins], metric.digits), span([p.cost for p in wins])
    on = where(study, wins[0].panel) if len(wins) == 1 else str(len(wins))
    return (study.label(sampler) + MARK, on, values, at, _law(study, mode, sampler, wins))


def _by_sampler(points: list[Point]) -> dict[int, list[Point]]:
    by: dict[int, list[Point]] = {}
    for p in points:
        by.setdefault(p.sampler, []).append(p)
    return dict(sorted(by.items(), key=lambda item: -len(item[1])))


def _law(study: Study, mode: int, sampler: int, wins: list[Point]) -> str:
    """How far its sequences are from the law; of several panels in the worst."""
    words = {study.law_words(mode, p.panel, sampler) for p in wins}
    return words.pop() if len(words) == 1 else _worst(study, mode, wins)


def _worst(study: Study, mode: int, wins: list[Point]) -> str:
    """The widest departure of several."""
    known = [(d.value, p) for p in wins if (d := study.departure(mode, p.panel, p.sampler))]
    most = max(known, key=lambda pair: pair[0])[1]
    words = study.law_words(mode, most.panel, most.sampler)
    every = "all" if len(known) == len(wins) else f"the {len(known)}"
    return f"{words} in the worst of {every} that were measured"
