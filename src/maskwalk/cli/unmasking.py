"""Unmasking in the terminal, round by round: what is new in green, what was taken back in red."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from maskwalk.decoding.generation import Generated
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.denoisers.language.tokenizer import pieces

BLANK = "░"


def unmasking(model: LanguageModel, made: Generated, colour: bool) -> Table:
    """The first text's rounds, numbered."""
    table = Table.grid(padding=(0, 2))
    for number, line in enumerate(rounds(model, made, colour)):
        table.add_row(Text(f"round {number}" if number else "given", style="dim"), line)
    return table


def rounds(model: LanguageModel, made: Generated, colour: bool, row: int = 0) -> Iterator[Text]:
    """One line per round of one text; without colour, new tokens stand in brackets."""
    assert made.trace is not None
    mask, given = model.mask, made.given[row].tolist()
    before = None
    for number, canvas in enumerate(made.trace.replay()):
        if number > int(made.rounds[row]):
            break  # the other texts take longer
        now = canvas[row].tolist()
        line = Text()
        for place, (piece, token) in enumerate(zip(shown_pieces(model, now), now)):
            old = now[place] if before is None else before[place]
            style, mark = "", ""
            if token == mask:
                style, mark = ("bold red", "-") if old != mask else ("dim", "")
            elif given[place]:
                style = "dim"
            elif old != token:
                style, mark = "bold green", "+"
            gap = " " if piece.startswith(" ") else ""
            marked = f"{gap}[{piece.strip()}]" if mark and not colour else piece
            line.append(marked, style=style)
        yield line
        before = now


def shown_pieces(model: LanguageModel, tokens: list[int]) -> list[str]:
    """What each position shows: its text, or a blank."""
    clean = [token if token != model.mask else 0 for token in tokens]
    words = pieces(model.tokenizer, clean)
    return [
        BLANK if token == model.mask else piece.replace("\n", "⏎")
        for piece, token in zip(words, tokens)
    ]
