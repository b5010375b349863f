"""What somebody sees while sequences are being decoded: a bar, or a line now and then."""

from collections.abc import Iterator
from contextlib import contextmanager

from maskwalk.cli.common import progress


@contextmanager
def positions_shown(shown: bool = True) -> Iterator[None]:
    """How many positions are filled meanwhile, on stderr."""
    from maskwalk.decoding.shared import filling_told

    if not shown:
        yield
        return
    with progress(transient=True) as bars:
        bar = bars.add_task("positions", total=None)
        with filling_told(lambda done, total: bars.update(bar, completed=done, total=total)):
            yield


@contextmanager
def at_work(what: str) -> Iterator[None]:
    """That something goes on whose end nobody knows, and for how long already."""
    with progress(transient=True) as bars:
        bars.add_task(what, total=None)
        yield
