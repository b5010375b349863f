"""What somebody sees while sequences are being decoded: a bar, or a line now and then."""

from collections.abc import Iterator
from contextlib import contextmanager

from maskwalk.bench.bars import filling_shown
from maskwalk.cli.common import err, progress


@contextmanager
def positions_shown(shown: bool = True) -> Iterator[None]:
    """How many positions are filled meanwhile, on stderr."""
    with filling_shown(err, shown):
        yield


@contextmanager
def at_work(what: str) -> Iterator[None]:
    """That something goes on whose end nobody knows, and for how long already."""
    with progress(transient=True) as bars:
        bars.add_task(what, total=None)
        yield
