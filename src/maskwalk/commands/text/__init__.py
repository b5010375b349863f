"""`maskwalk text`: models of text of our own, from a folder of books to a judged experiment."""

import typer

from maskwalk.commands.text.compare import compare
from maskwalk.commands.text.judge import judge
from maskwalk.commands.text.pack import pack
from maskwalk.commands.text.prepare import prepare
from maskwalk.commands.text.replay import replay
from maskwalk.commands.text.train import train

text = typer.Typer(
    name="text",
    help="Train models of text on books, and let a judge read what they write.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (prepare, train, judge, compare, replay, pack):
    text.command()(command)


@text.callback()
def root() -> None:
    """Train models of text on books, and let a judge read what they write (docs/language.md)."""
