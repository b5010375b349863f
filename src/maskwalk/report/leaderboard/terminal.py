"""The board for a person at a terminal: the first rules of every track, and one's own."""

from collections.abc import Iterator, Sequence

from maskwalk.decoding.kinds import MARK, SHAPED
from maskwalk.report.estimates import NONE
from maskwalk.report.leaderboard.board import BUDGETS, Entry, Number, Track
from maskwalk.report.words import capital, plural

FIRST = 5  # rules shown besides one's own
NAME = 28  # columns of a rule


def board_lines(found: Sequence[Track]) -> Iterator[str]:
    """At most 80 columns: places, the quality within each budget, and the area."""
    for track in found:
        scenes = plural(len(track.scenes), "scene")
        yield f"{capital(track.name.replace('_', ' '))}, {track.mode}: {scenes}, {track.quality}"
        heads = "".join(f"{f'{budget} calls':>10}" for budget in BUDGETS)
        yield f"{'':4}{'rule':<{NAME}}{'area':>7}{heads}"
        yield from _ranked(track.entries)
        yield ""


def _ranked(entries: Sequence[Entry]) -> Iterator[str]:
    """The first few and one's own, with a line for the others between them."""
    shown = [i for i, entry in enumerate(entries) if i < FIRST or entry.own]
    for place, after in zip(shown, [*shown[1:], len(entries)]):
        yield _line(place + 1, entries[place])
        if skipped := after - place - 1:
            yield f"{'':4}… {plural(skipped, 'other rule')}"


def _line(place: int, entry: Entry) -> str:
    mark = MARK * (entry.kind == SHAPED) + " (own)" * entry.own
    name = entry.label[: NAME - len(mark) - 1].rstrip() + mark
    numbers = "".join(f"{_number(entry.within[budget]):>10}" for budget in BUDGETS)
    return f"{place:>3} {name:<{NAME}}{_number(entry.area):>7}{numbers}"


def _number(number: Number | None) -> str:
    return NONE if number is None else f"{number.value:.3f}"
