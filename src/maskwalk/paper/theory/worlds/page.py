"""The table of laws as docs/theory.md has it: a line for each world and number of calls."""

from collections.abc import Iterable
from itertools import groupby

from maskwalk.paper.theory.worlds.table import ALONG, Row, number

HEAD = "| world | calls | random | entropy | bisection in the line | along the world | shortest |"


def markdown(rows: Iterable[Row]) -> str:
    """TV / KL of every sampler; 0 where both are; the calls of the shortest exact plan."""
    lines = [HEAD, "|---|---|---|---|---|---|---|"]
    for world, group in groupby(rows, key=lambda row: row.world):
        *others, plan = group
        for calls, same in groupby(others, key=lambda row: row.calls):
            lines.append(_line(world, calls, list(same), plan.calls))
    return "\n".join(lines)


def _line(world: str, calls: int, rows: list[Row], plan: int) -> str:
    random, entropy = (_pair(row) for row in rows[:2])
    orders = [
        f"{row.sampler.removeprefix('bisection(').removesuffix(')')}: {_pair(row)}"
        for row in rows[2:]
        if row.sampler != ALONG
    ]
    along = next((_pair(row) for row in rows if row.sampler == ALONG), "")
    cells = (f"`{world}`", str(calls), random, entropy, "; ".join(orders), along, str(plan))
    return f"| {' | '.join(cells)} |"


def _pair(row: Row) -> str:
    tv, kl = number(row.tv), number(row.kl)
    return "0" if tv == kl == "0" else f"{tv} / {kl}"
