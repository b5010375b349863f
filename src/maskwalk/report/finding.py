"""What a summary says: sentences, and the small tables that hold the rest."""

from collections.abc import Sequence
from dataclasses import dataclass

from maskwalk.report.budgets import crowded
from maskwalk.report.estimates import number
from maskwalk.report.points import Point
from maskwalk.report.study import Study
from maskwalk.report.words import plural, span
from maskwalk.worlds.metrics import Metric

ONE = "1"


@dataclass(frozen=True)
class Sheet:
    """A small table below the sentences: what it is called, its heads and its rows of words."""

    title: str
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Finding:
    """A headline and its sentences, and the table that holds what they leave out."""

    lead: str
    text: str
    sheet: Sheet | None = None


def settings(study: Study, count: int) -> str:
    """ "30 samplers", or "181 settings" where rules are compared."""
    return plural(count, noun(study))


def noun(study: Study) -> str:
    """What there are many of: samplers, or settings of rules."""
    return "setting" if crowded(study) else "sampler"


def all_panels(count: int) -> str:
    """ "the only panel", "both panels", "all 18 panels"."""
    return {1: "the only panel", 2: "both panels"}.get(count, f"all {count:,} panels")


def where(study: Study, panel: int) -> str:
    """The world, and the task if there are several."""
    place = study.panels[panel]
    return f"{place.title} ({place.task})" if len(study.tasks) > 1 else place.title


def place_words(study: Study, panel: int) -> tuple[str, ...]:
    """The cells of a row that say where: the task, if there are several, and the world."""
    place = study.panels[panel]
    return (place.task, place.title) if len(study.tasks) > 1 else (place.title,)


def place_heads(study: Study) -> tuple[str, ...]:
    """The heads of those cells."""
    return ("task", "world") if len(study.tasks) > 1 else ("world",)


def costs(study: Study, points: Sequence[Point]) -> str:
    """ "5 calls", "1 call", "7.7–14.8 calls": the means."""
    return cost_words(study, span([p.cost for p in points]))


def cost_words(study: Study, amount: str) -> str:
    """ "5 calls", "1 call"."""
    name = study.cost.title
    return f"{amount} {name.removesuffix('s') if amount == ONE else name}"


def value_at(study: Study, metric: Metric, point: Point) -> str:
    """ "0.900 at 24 calls"."""
    return f"{number(metric, point.value)} at {costs(study, [point])}"
