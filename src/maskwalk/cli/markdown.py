"""A document in the terminal: a table whose words would be cut is told row by row."""

from collections.abc import Iterable
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

GAP = 2  # between columns
Parts = Iterable[RenderableType | Segment]
INDENT = (0, 0, 0, 4)


class _FittingTable(TableElement):
    """A table if the longest words below its heads fit beside each other, else told by row."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Parts:
        rows = self._cells()
        longest = (
            max((len(word) for cell in column for word in cell.plain.split()), default=0)
            for column in zip(*rows[1:])
        )
        if sum(width + GAP for width in longest) > options.max_width:
            yield from _told(rows)
            return
        for table in super().__rich_console__(console, options):
            for column in table.columns if isinstance(table, Table) else []:
                column.overflow = "fold"  # heads, letter by letter where they must
            yield table

    def _cells(self) -> list[list[Text]]:
        head = [self.header.row] if self.header and self.header.row else []
        body = self.body.rows if self.body else []
        return [[cell.content for cell in row.cells] for row in (*head, *body)]


def _told(rows: list[list[Text]]) -> Parts:
    (_, *heads), *body = rows
    for first, *others in body:
        yield Text()
        yield first
        for head, cell in zip(heads, others):
            if cell.plain.strip():
                name = (f"{head.plain}: ", "dim") if head.plain.strip() else ""
                yield Padding(Text.assemble(name, cell), INDENT)
    yield Text()


class Document(Markdown):
    """Markdown whose tables fit."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "table_open": _FittingTable,
    }
