"""The paper's lemmas, checked exactly: what `maskwalk theory` prints."""

from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

from maskwalk.paper.theory.check import Check
from maskwalk.paper.theory.drawings import draw_dags
from maskwalk.paper.theory.exactness import bisection, sequential
from maskwalk.paper.theory.separation import bottleneck_checks
from maskwalk.paper.theory.tree_line import tree_line_checks
from maskwalk.resources import one_thread


def check_all() -> Iterator[Check]:
    """Every check, as it is done, with the seconds it took."""
    for topic in (sequential, bisection, tree_line_checks, bottleneck_checks):
        checks = topic()
        while True:
            start = perf_counter()
            with one_thread():
                check = next(checks, None)
            if check is None:
                break
            yield replace(check, seconds=perf_counter() - start)


__all__ = ["Check", "check_all", "draw_dags"]
