"""The paper's lemmas, checked exactly: what `maskwalk theory` prints."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter

import torch

from maskwalk.theory.check import Check
from maskwalk.theory.drawings import draw_dags
from maskwalk.theory.exactness import bisection, sequential
from maskwalk.theory.separation import bottleneck_checks
from maskwalk.theory.tree_line import tree_line_checks


def check_all() -> Iterator[Check]:
    """Every check, as it is done, with the seconds it took."""
    for topic in (sequential, bisection, tree_line_checks, bottleneck_checks):
        checks = topic()
        while True:
            start = perf_counter()
            with _one_thread():
                check = next(checks, None)
            if check is None:
                break
            yield replace(check, seconds=perf_counter() - start)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Thousands of small tensors: threads would wait for each other longer than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


__all__ = ["Check", "check_all", "draw_dags"]
