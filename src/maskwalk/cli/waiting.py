"""What somebody sees while sequences are being decoded: a bar, or a line now and then."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from maskwalk.cli.common import err, progress

SLOW = 10.0  # seconds from which on a line is written where no bar can be drawn


@contextmanager
def positions_shown(shown: bool = True) -> Iterator[None]:
    """How many positions are filled meanwhile, on stderr."""
    from maskwalk.decoding.shared import filling_told

    if not shown:
        yield
        return
    began, due = time.monotonic(), SLOW
    bars = progress(transient=True)
    bars.disable = not err.is_terminal
    with bars:
        bar = bars.add_task("positions", total=None)

        def told(done: int, total: int) -> None:
            nonlocal due
            bars.update(bar, completed=done, total=total)
            passed = time.monotonic() - began
            if passed > due and not err.is_terminal:
                err.print(f"{done:,} of {total:,} positions, {passed:.0f} s", soft_wrap=True)
                due = 2 * passed

        with filling_told(told):
            yield
