"""The paper's lemmas, checked exactly, there and in other worlds: what `maskwalk theory` prints."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import perf_counter

from maskwalk.paper.theory.check import Check
from maskwalk.paper.theory.depth import depth
from maskwalk.paper.theory.drawings import draw_dags
from maskwalk.paper.theory.exactness import bisection, sequential
from maskwalk.paper.theory.independence import independence
from maskwalk.paper.theory.separation import bottleneck_checks
from maskwalk.paper.theory.tree_line import tree_line_checks
from maskwalk.paper.theory.worlds import Row, instances, laws, world_checks
from maskwalk.resources import one_thread


def check_all() -> Iterator[Check]:
    """Every check of the paper's lemmas, as it is done, with the seconds it took."""
    topics = (sequential, independence, bisection, depth, tree_line_checks, bottleneck_checks)
    for topic in topics:
        yield from _timed(topic())


def world_laws() -> Iterator[Row]:
    """The law of each sampler in a small instance of every world."""
    for at in instances():
        with one_thread():
            rows = list(laws(at))
        yield from rows


def check_worlds(rows: Sequence[Row]) -> Iterator[Check]:
    """Which claims carry over to those worlds, as each is checked, with the seconds it took."""
    yield from _timed(world_checks(rows))


def _timed(checks: Iterator[Check]) -> Iterator[Check]:
    while True:
        start = perf_counter()
        with one_thread():
            check = next(checks, None)
        if check is None:
            break
        yield replace(check, seconds=perf_counter() - start)


__all__ = ["Check", "Row", "check_all", "check_worlds", "draw_dags", "world_laws"]
