"""The unmasking of a run's first sequences, round by round, as its world writes tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil

import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.decoding.trace import Trace
from maskwalk.errors import whole
from maskwalk.report.notebook.shown import LEFT, TABLE, Shown, columns
from maskwalk.worlds.world import World

NEW = "font-weight:bold;background:#ffe08a;color:#1f2328"
GIVEN = "font-style:italic"
CELL = "padding:.15em .4em;text-align:right"
MASK = "·"
TITLE = 9  # columns

Line = tuple[str, list[str], list[bool]]  # a round: its title, the words, which of them are new


@dataclass(repr=False)
class RunTrace(Trace):
    """A `Trace` that knows its world, so that it can be looked at."""

    world: World

    @classmethod
    def of(cls, trace: Trace, world: World) -> "RunTrace":
        """The trace of a run in this world."""
        return cls(trace.ids, trace.length, trace.mask_id, trace.events, world)

    def canvases(self, sequence: int = 0) -> Int[Tensor, "rounds length"]:
        """One sequence before the first round and after each of its own."""
        whole("sequence", sequence, 0, len(self.ids) - 1)
        own = self.events["sequence"] == self.ids[sequence]
        events = {name: column[own] for name, column in self.events.items()}
        alone = Trace(self.ids[sequence : sequence + 1], self.length, self.mask_id, events)
        return torch.cat(list(alone.replay()))

    def show(self, sequence: int = 0) -> Shown:
        """The sequence after every round; what is new stands out, · is masked."""
        canvases = self.canvases(sequence)
        if getattr(self.world, "pictured", False):
            return self._pictures(canvases)
        before = torch.full_like(canvases[0], self.mask_id)
        lines, rows = list[Line](), []
        width = len(str(self.world.vocab_size - 1))
        for number, canvas in enumerate(canvases):
            words = [MASK if t == self.mask_id else str(t) for t in canvas.tolist()]
            new = (canvas != before).tolist()
            title = f"round {number}" if number else "given"
            if number or any(new):
                lines.append((title, words, new))
                style = NEW if number else GIVEN
                head = f'<th style="{LEFT};white-space:nowrap">{title}</th>'
                rows.append(f"<tr>{head}{_cells(words, new, style)}</tr>")
            before = canvas
        return Shown(_folded(lines, width), TABLE.format(f"<tbody>{''.join(rows)}</tbody>"))

    def _pictures(self, canvases: Tensor) -> Shown:
        """The same in the pictures that the world draws of partly masked sequences."""
        tokens = torch.where(canvases == self.mask_id, self.world.vocab_size, canvases)
        titles = [f"round {i}" if i else "before" for i in range(len(tokens))]
        pictures = [self.world.show(canvas) for canvas in tokens]
        text = "\n\n".join(f"{title}\n{picture}" for title, picture in zip(titles, pictures))
        boxes = (
            f'<div style="display:inline-block;vertical-align:bottom;margin-right:1.5em">'
            f"<small>{title}</small><pre>{escape(picture)}</pre></div>"
            for title, picture in zip(titles, pictures)
        )
        return Shown(text, f"<div>{''.join(boxes)}</div>")


def _folded(lines: Sequence[Line], width: int) -> str:
    """Every round a line; in a terminal that is too narrow, one part of the positions after the
    other, as even as can be."""
    length = len(lines[0][1])
    fit = max(1, (columns() - TITLE) // (width + 2))
    size = ceil(length / ceil(length / fit))
    parts = [range(at, min(at + size, length)) for at in range(0, length, size)]
    return "\n\n".join(_part(lines, part, width, len(parts) > 1) for part in parts)


def _part(lines: Sequence[Line], part: range, width: int, titled: bool) -> str:
    head = [f"positions {part[0]} to {part[-1]}"] if titled else []
    here = slice(part.start, part.stop)
    rounds = (f"{t:<{TITLE}}{_marked(words[here], new[here], width)}" for t, words, new in lines)
    return "\n".join([*head, *(line.rstrip() for line in rounds)])


def _marked(words: list[str], new: list[bool], width: int) -> str:
    """Words in columns; what is new stands in brackets."""
    cells = (f"[{w:>{width}}]" if n else f" {w:>{width}} " for w, n in zip(words, new))
    return "".join(cells).rstrip()


def _cells(words: list[str], new: list[bool], style: str) -> str:
    styles = (f"{CELL};{style}" if n else CELL for n in new)
    return "".join(f'<td style="{s}">{escape(word)}</td>' for word, s in zip(words, styles))
