"""`maskwalk text`: models of text of our own, from a folder of books to a judged experiment."""

import typer

from maskwalk.cli.common import add_command
from maskwalk.cli.text.compare import compare
from maskwalk.cli.text.consistency import consistency
from maskwalk.cli.text.judge import judge
from maskwalk.cli.text.pack import pack
from maskwalk.cli.text.prepare import prepare
from maskwalk.cli.text.replay import replay
from maskwalk.cli.text.score import score, sums
from maskwalk.cli.text.train import train

text = typer.Typer(
    name="text",
    help="Train models of text on books, and let a judge read what they write.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (prepare, train, judge, compare, replay, consistency, score, sums, pack):
    add_command(text, command)


@text.callback()
def root() -> None:
    """Train models of text on books, and let a judge read what they write (docs/language.md)."""
