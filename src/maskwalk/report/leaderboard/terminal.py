"""The board for a person at a terminal: the first rules of every track, and one's own."""

from collections.abc import Iterator, Sequence

from maskwalk.decoding.kinds import MARK, SHAPED
from maskwalk.report.estimates import NONE
from maskwalk.report.leaderboard.board import BUDGETS, Entry, Number, Track
from maskwalk.report.words import capital, plural

FIRST = 5  # rules shown besides one's own
NAME, WIDE = 24, 9  # columns of a rule, and of a number


def board_lines(found: Sequence[Track]) -> Iterator[str]:
    """At most 80 columns: places, the quality within each budget, and the area."""
    for track in found:
        scenes = plural(len(track.scenes), "scene")
        yield f"{capital(track.name.replace('_', ' '))}, {track.mode}: {scenes}, {track.quality}"
        heads = [*(f"{budget} calls" for budget in BUDGETS), *(["KL/token"] * _has_kl(track))]
        yield f"{'':4}{'rule':<{NAME}}{'area':>7}{''.join(f'{head:>{WIDE}}' for head in heads)}"
        yield from _ranked(track)
        yield ""


def _has_kl(track: Track) -> bool:
    return any(entry.kl is not None for entry in track.entries)


def _ranked(track: Track) -> Iterator[str]:
    """The first few and one's own, with a line for the others between them."""
    entries, kl = track.entries, _has_kl(track)
    shown = [i for i, entry in enumerate(entries) if i < FIRST or entry.own]
    for place, after in zip(shown, [*shown[1:], len(entries)]):
        yield _line(place + 1, entries[place], kl)
        if skipped := after - place - 1:
            yield f"{'':4}… {plural(skipped, 'other rule')}"


def _line(place: int, entry: Entry, kl: bool) -> str:
    mark = MARK * (entry.kind == SHAPED) + " (own)" * entry.own
    name = entry.label[: NAME - len(mark) - 1].rstrip() + mark
    numbers = [*entry.within.values(), *([entry.kl] if kl else [])]
    columns = "".join(f"{_number(number):>{WIDE}}" for number in numbers)
    return f"{place:>3} {name:<{NAME}}{_number(entry.area):>7}{columns}"


def _number(number: Number | None) -> str:
    return NONE if number is None else f"{number.value:.3f}"
