"""Pictures in the terminal: grids, sums and trees side by side, words of one line one per row.

What is new in a picture is bold and green where the terminal can show that, a break red.
"""

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from maskwalk.report.frames import BREAK, Frame

INDENT, GAP = 2, 3
NEW, BROKEN, QUIET = "bold green", "bold red", "dim"


def in_rows(frames: Sequence[Frame]) -> RenderableType:
    """Frames with their headings, in as many rows as the terminal needs."""
    if any("\n" in part for frame in frames for part in frame.parts):
        return SideBySide(frames)
    table = Table.grid(padding=(0, 2))
    for frame in frames:
        table.add_row(Text(frame.title, QUIET, no_wrap=True), painted(frame))
    return Padding(table, (0, 0, 0, INDENT))


def painted(frame: Frame) -> Text:
    """The picture, with what is new and what is broken in colour."""
    text = Text()
    for i, part in enumerate(frame.parts):
        text.append(part, NEW if i % 2 else "")
    text.highlight_words([BREAK], BROKEN)
    return text


class SideBySide:
    """Pictures of several lines, as many in a row as the width allows; their last lines align."""

    def __init__(self, frames: Sequence[Frame]) -> None:
        self.frames = frames

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """One table a row, an empty line between."""
        lines = [len(line) for frame in self.frames for line in painted(frame).plain.split("\n")]
        wide = max(*lines, *(len(frame.title) for frame in self.frames))
        across = max(1, (options.max_width - INDENT + GAP) // (wide + GAP))
        for start in range(0, len(self.frames), across):
            if start:
                yield Text()
            yield self._row(self.frames[start : start + across], wide)

    def _row(self, frames: Sequence[Frame], wide: int) -> RenderableType:
        pictures = [painted(frame) for frame in frames]
        tall = max(picture.plain.count("\n") for picture in pictures)
        table = Table.grid(padding=(0, GAP, 0, 0))
        for _ in frames:
            table.add_column(min_width=wide, no_wrap=True, overflow="crop")
        if any(frame.title for frame in frames):
            table.add_row(*(Text(frame.title, QUIET) for frame in frames))
        above = [Text("\n" * (tall - picture.plain.count("\n"))) for picture in pictures]
        table.add_row(*(empty + picture for empty, picture in zip(above, pictures)))
        return Padding(table, (0, 0, 0, INDENT))
