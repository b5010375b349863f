"""Progress on stderr: a bar in a terminal, and in a log file a plain line now and then."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from maskwalk.errors import time_left

FIRST, LAST = 10.0, 300.0  # seconds until the first line, and between two at most
SPAN = 600.0  # seconds whose speed tells the time left: one cell takes many times another's


class Bars(Progress):
    """rich's bars. Where nothing can be drawn: what is done, of how many, after 10 s, 20 s, 40 s …

    A bar that stays (not `transient`) leaves a last line there.
    """

    def __init__(
        self,
        *columns: ProgressColumn,
        console: Console,
        transient: bool = False,
        shown: bool = True,
    ) -> None:
        drawn = console.is_terminal or console.is_jupyter
        quiet = not (shown and drawn)
        super().__init__(
            *columns,
            console=console,
            transient=transient,
            disable=quiet,
            speed_estimate_period=SPAN,
        )
        self._stays, self._over, self._plain = not transient, Event(), shown and not drawn

    def start(self) -> None:
        """Begins to draw, or to count seconds."""
        super().start()
        if self._plain:
            self._over.clear()
            self._file = self.console.file  # whoever redirects stderr meanwhile does not mean this
            Thread(target=self._tell, daemon=True).start()

    def stop(self) -> None:
        """The last line, where there is one."""
        super().stop()
        if self._plain and not self._over.is_set():
            self._over.set()
            for task in self.tasks if self._stays else ():
                self._print(self._line(task))

    def _tell(self) -> None:
        began, due = time.monotonic(), FIRST
        while not self._over.wait(max(0.0, began + due - time.monotonic())):
            for task in self.tasks:
                if not task.finished:
                    self._print(self._line(task))
            due += min(due, LAST)

    @staticmethod
    def _line(task: Task) -> str:
        total = "" if task.total is None else f"/{task.total:,.0f}"
        done = [f"{task.completed:,.0f}{total}"] if total or task.completed else []
        said = [*done, f"{task.elapsed or 0.0:.0f} s"]
        if task.time_remaining and not task.finished:
            said.append(time_left(task.time_remaining))
        return f"{task.description.strip()}: {', '.join(said)}"

    def _print(self, line: str) -> None:
        print(line, file=self._file, flush=True)


class TimeLeft(TimeRemainingColumn):
    """The time left in words; of what is done, the time it took."""

    def render(self, task: Task) -> Text:
        """ "about 3 min left", or "2:05" when finished."""
        if task.finished or task.total is None:
            return super().render(task)
        return Text(time_left(task.time_remaining), style="progress.remaining")


def bars_on(console: Console, transient: bool = False, wide: int | None = None) -> Bars:
    """Bars with what is done, of how many, and the time left."""
    column = Column(width=wide, no_wrap=True, overflow="ellipsis")
    text = TextColumn("{task.description}", markup=False, table_column=column)
    left = TimeLeft(elapsed_when_finished=True)
    columns = (text, BarColumn(), MofNCompleteColumn(), left)
    return Bars(*columns, console=console, transient=transient)


@contextmanager
def filling_shown(console: Console, shown: bool = True) -> Iterator[None]:
    """How many positions are filled meanwhile, by whatever decodes."""
    from maskwalk.decoding.shared import filling_told

    if not shown:
        yield
        return
    with bars_on(console, transient=True) as bars:
        bar = bars.add_task("positions", total=None)
        with filling_told(lambda done, total: bars.update(bar, completed=done, total=total)):
            yield
