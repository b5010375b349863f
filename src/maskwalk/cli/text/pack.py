"""`maskwalk text pack`: a trained model for a zoo."""

from pathlib import Path
from typing import Annotated

import typer

from maskwalk.cli.common import say_written


def pack(
    model: Annotated[Path, typer.Argument(help="What `maskwalk text train` wrote.")],
    name: Annotated[str, typer.Option(help="The name: zoo:NAME.")],
    zoo: Annotated[Path, typer.Option(help="The zoo's directory; MASKWALK_ZOO names it later.")],
    corpus: Annotated[str, typer.Option(help="Models of one corpus share a tokenizer.")] = "books",
) -> None:
    """Pack a trained model for a zoo: bfloat16 under xz, with tokenizer and held-out passages.

    Example: maskwalk text pack runs/books_small/mdm --name books_mdm --zoo zoo
    """
    from maskwalk.training.pack import pack as make

    say_written(make(model, name, corpus, zoo))
