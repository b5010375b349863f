"""`maskwalk text prepare`: from a folder of books to a tokenizer and tokens."""

from pathlib import Path
from typing import Annotated, Any

import typer

from maskwalk.cli import common
from maskwalk.cli.common import out, progress, say_written


def prepare(
    source: Annotated[Path, typer.Argument(help="Folder with train, valid, test as .txt[.xz].")],
    to: Annotated[
        Path,
        typer.Option("--out", parser=common.path, help="Directory for tokenizer and tokens."),
    ],
    vocab: Annotated[int, typer.Option(help="Tokens of the byte-pair tokenizer.")] = 8192,
) -> None:
    """Train a tokenizer on a corpus of books and write the corpus as tokens.

    One paragraph a line, an empty line between books; whole books in valid and test.

    Example: maskwalk text prepare gutenberg --out data/books
    """
    from maskwalk.worlds.text.corpus import prepare as make

    with progress() as bars_shown:
        bars: dict[str, Any] = {}

        def told(what: str, done: int, total: int) -> None:
            if what not in bars:
                bars[what] = bars_shown.add_task(f"{what:<10}", total=total)
            bars_shown.update(bars[what], completed=done)

        corpus = make(source, to, vocab, told)
    for split, told_of in corpus.splits.items():
        numbers = ", ".join(f"{told_of[key]:,} {key}" for key in ("books", "bytes", "tokens"))
        out.print(f"{split:<6} {numbers}")
    say_written(to)
    out.print(f"Next: maskwalk text train {to} --kind causal --out runs/books/ar", soft_wrap=True)
