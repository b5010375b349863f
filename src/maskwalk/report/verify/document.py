"""A document against its sources: every number that a comment ties, recomputed and compared."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from maskwalk.errors import MaskwalkError
from maskwalk.report.verify.grammar import Comment, Entry, body_of, read_comment
from maskwalk.report.verify.printed import Printed, Truth, agrees, numbers
from maskwalk.report.verify.sources import Sources, read_text
from maskwalk.report.verify.tables import Block, Row, block_at, plain

COMMENT = re.compile(r"<!--\s*verify(?P<kind> with)?:")
CODE = r"^```.*?^```|^ {4}.*?$|`[^`\n]+`"
HIDDEN = re.compile(rf"<!--.*?-->|{CODE}|\]\([^)]*\)", re.S | re.M)


@dataclass(frozen=True)
class Tie:
    """One number and its source: what is printed, what the source says."""

    line: int
    printed: str
    source: str
    says: str
    agrees: bool


@dataclass
class Verified:
    """What was found in one document."""

    path: Path
    ties: list[Tie] = field(default_factory=list)
    untied: list[tuple[int, str]] = field(default_factory=list)

    @property
    def differing(self) -> list[Tie]:
        """The numbers that are not those of their source."""
        return [tie for tie in self.ties if not tie.agrees]


def verify_document(path: Path, sources: Sources) -> Verified:
    """Every tied number of a document, compared; a comment that names nothing is an error."""
    return _Reader(path, read_text(path), sources).read()


class _Reader:
    """One pass over a document."""

    def __init__(self, path: Path, text: str, sources: Sources) -> None:
        self.path, self.text, self.sources = path, text, sources
        self.bare = HIDDEN.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
        self.without = re.sub(
            r"<!--.*?-->", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S
        )
        self.tied: set[int] = set()
        self.result = Verified(path)
        self.base = Entry()

    def read(self) -> Verified:
        """All comments in order, then what no comment ties."""
        shown = [m.span() for m in HIDDEN.finditer(self.text) if not m[0].startswith("<!--")]
        for match in COMMENT.finditer(self.text):
            if any(a <= match.start() < b for a, b in shown):
                continue  # an example
            try:
                self._comment(match)
            except MaskwalkError as problem:
                where = f"{self.path}:{self._line(match.start())}"
                raise MaskwalkError(f"{where}: {problem}") from None
        loose = [n for n in numbers(self.bare) if n.measured and n.start not in self.tied]
        self.result.untied = [(self._line(n.start), str(n)) for n in loose]
        return self.result

    def _line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def _comment(self, match: re.Match[str]) -> None:
        body = body_of(self.text, match.end())
        comment, below = read_comment(body), match.end() + len(body) + len("-->")
        if match["kind"]:
            self.base = comment.head
            return
        head = self.base.also(comment.head)
        if not head.source:
            raise MaskwalkError("This comment names no source, and no `verify with:` before it.")
        alone = not self.text[self.text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        block = block_at(self.without, below) if alone else None
        if block is None:
            self._prose(match.start(), head, comment)
        else:
            self._block(block, head, comment)

    # ---- numbers in a paragraph, or in one row of a table

    def _prose(self, end: int, head: Entry, comment: Comment) -> None:
        if comment.rows or comment.columns:
            raise MaskwalkError(
                "`row:` and `columns:` need a table or fenced block on the next line."
            )
        joined = re.sub(r"<!--.*?-->", lambda m: " " * len(m[0]), self.text[:end], flags=re.S)
        end = len(joined.rstrip())  # a comment on its own follows a block of lines
        start = max((m.end() for m in re.finditer(r"\n[ \t]*\n", joined[:end])), default=0)
        line = self.text.rfind("\n", 0, end) + 1
        start = line if self.text.startswith("|", line) else start
        if head.quotes:
            self._quotes(start, end, head)
            return
        entries = [head.also(e) for e in comment.own]
        wanted = sum(1 if e.skip else len(e.each()) for e in entries)
        inside = self._numbers(self.bare, start, end, head)
        if len(inside) < wanted:
            raise MaskwalkError(
                f"This comment ties {wanted} numbers, and {len(inside)} stand before it."
            )
        self._tie(inside[len(inside) - wanted :], entries)

    def _numbers(self, text: str, start: int, end: int, entry: Entry) -> list[Printed]:
        """Those with a decimal point; all of them where the comment says `whole`."""
        return [n for n in numbers(text, start, end) if "whole" in entry.flags or not n.whole]

    def _quotes(self, start: int, end: int, entry: Entry) -> None:
        """Words that must stand here and in the source."""
        source = plain(self.sources.text(entry.source, entry.words, self.path))
        for quote in entry.quotes:
            pattern = r"\s+".join(rf"[*`]*{re.escape(word)}[*`]*" for word in quote.split())
            here = list(re.finditer(pattern, self.without[start:end]))
            stands = bool(here) and plain(quote) in source
            at = start + here[-1].start() if here else end
            inside = numbers(self.without, at, at + len(here[-1][0])) if here else []
            for number in inside:
                self._mark(number)
            says = "does not stand there" if here else "does not stand in this document"
            for _ in range(max(1, len(inside))):
                self._add(
                    at, f'"{quote}"', _told(entry, {}), "the same" if stands else says, stands
                )

    # ---- a table or fenced block

    def _block(self, block: Block, head: Entry, comment: Comment) -> None:
        if not comment.rows and not comment.columns:
            self._whole(block, head)
            return
        rows = comment.rows * len(block.rows) if len(comment.rows) == 1 else comment.rows
        rows = rows or ((),) * len(block.rows)
        if len(rows) != len(block.rows):
            raise MaskwalkError(
                f"This comment has {len(rows)} rows, and {len(block.rows)} stand below it."
            )
        for row, entries in zip(block.rows, rows):
            self._row(block, row, entries, head, comment.columns)

    def _row(
        self,
        block: Block,
        row: Row,
        entries: tuple[Entry, ...],
        head: Entry,
        columns: tuple[Entry, ...],
    ) -> None:
        if len(entries) == 1 and entries[0].skip:
            return
        shared = bool(entries) and not entries[0].skip
        first, rest = (head.also(entries[0]), entries[1:]) if shared else (head, entries)
        texts = {str(i + 1): plain(self.text[a:b]) for i, (a, b) in enumerate(row.cells)}
        if not columns:
            every = [first.also(e).filled(texts) for e in rest] or [first.filled(texts)]
            self._exactly(row.start, row.end, every)
            return
        if len(columns) != len(row.cells):
            raise MaskwalkError(
                f"{len(columns)} columns are named, and the table has {len(row.cells)}."
            )
        for i, (column, (start, end)) in enumerate(zip(columns, row.cells)):
            if not column.skip:
                named = {**texts, "head": block.head[i] if i < len(block.head) else ""}
                self._exactly(start, end, [first.also(column).filled(named)], empty=True)

    def _exactly(self, start: int, end: int, entries: list[Entry], empty: bool = False) -> None:
        inside = self._numbers(self.without, start, end, entries[0])
        wanted = sum(1 if e.skip else len(e.each()) for e in entries)
        if empty and not inside:
            return
        if len(inside) != wanted:
            words = plain(self.text[start:end])[:40]
            raise MaskwalkError(f"{wanted} numbers are tied in {words!r}, which has {len(inside)}.")
        self._tie(inside, entries)

    def _whole(self, block: Block, head: Entry) -> None:
        """Every line of a table as its source prints it."""
        if head.source.endswith(".md") or not self.sources.prints(head.source):
            raise MaskwalkError("A table tied as a whole needs a command or FILE.py:NAME.")
        printed = self.sources.text(head.source, head.words, self.path)
        lines = [_squeezed(line) for line in printed.splitlines() if line.startswith("|")]
        if not lines:
            raise MaskwalkError(f"{head.source} prints no table.")
        for row in block.rows:
            here = _squeezed(self.text[row.start : row.end])
            near = [here] if here in lines else get_close_matches(here, lines, n=1, cutoff=0)
            inside = numbers(self.without, row.start, row.end)
            for number in inside:
                self._mark(number)
            for _ in range(max(1, len(inside))):
                self._add(row.start, here, _told(head, {}), near[0], here in lines)
        missing = len(lines) - 2 - len(block.rows)
        if missing > 0 and "part" not in head.flags:
            said = f"{missing} more rows"
            self._add(block.rows[-1].start, "the end of the table", _told(head, {}), said, False)

    # ---- one number

    def _tie(self, printed: list[Printed], entries: list[Entry]) -> None:
        left = iter(printed)
        for entry in entries:
            for asked in [{}] if entry.skip else entry.each():
                number = next(left)
                if not entry.skip:
                    self._compare(number, entry, asked)

    def _compare(self, number: Printed, entry: Entry, asked: dict[str, str]) -> None:
        truth = self.sources.truth(entry.source, entry.words, asked, self.path)
        if asked.get("bound") == "said":  # by the words around it
            truth = Truth(truth.value, truth.half, number.bound)
        self._mark(number)
        same = agrees(number, truth)
        self._add(number.start, str(number), _told(entry, asked), truth.at(number), same)

    def _mark(self, number: Printed) -> None:
        if number.start in self.tied:
            raise MaskwalkError(f"{number} is tied by an earlier comment already.")
        self.tied.add(number.start)

    def _add(self, at: int, printed: str, source: str, says: str, same: bool) -> None:
        self.result.ties.append(Tie(self._line(at), printed, source, says, same))


def _squeezed(line: str) -> str:
    return re.sub(r"\s*\|\s*", "|", line.strip()).strip()


def _told(entry: Entry, asked: dict[str, str]) -> str:
    words = [entry.source, *entry.words, *(f"{k}={v}" for k, v in asked.items())]
    return " ".join(words)


def lines_of(result: Verified) -> Iterator[str]:
    """What differs, a line each: file:line, what is printed, what its source says."""
    for tie in result.differing:
        yield f"{result.path}:{tie.line}: {tie.printed} is printed; {tie.source}: {tie.says}"
