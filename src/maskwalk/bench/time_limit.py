"""A time limit on work in this process: on somebody's policy that may never come back.

An alarm of the operating system interrupts Python code, a loop without an end included; work in a
process of its own (workers.py) is ended from outside instead. Where there are no alarms, off the
main thread and on Windows, nothing is limited.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from maskwalk.errors import Interruption, MaskwalkError, real


class TimeUp(Interruption):
    """Not an Exception: a policy that catches those does not catch this."""


@contextmanager
def time_limit(seconds: float | None, what: str) -> Iterator[None]:
    """Whatever takes longer ends in a sentence that names `what`."""
    here = threading.current_thread() is threading.main_thread()
    if seconds is None or not here or not hasattr(signal, "setitimer"):
        yield
        return
    limit = real("timeout", seconds, 1e-3)

    def ring(*_: Any) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    except TimeUp:
        raise MaskwalkError(f"{what} took longer than {limit:g} s (--timeout).") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
