"""The command line: the table of commands, and how a user's mistake becomes a sentence."""

import sys
from typing import Annotated

import typer
from rich.markup import escape

from maskwalk import __version__
from maskwalk.cli.bench import bench
from maskwalk.cli.catalogue import list_
from maskwalk.cli.common import err, out
from maskwalk.cli.compare import compare
from maskwalk.cli.diagnose import diagnose
from maskwalk.cli.evaluate import evaluate
from maskwalk.cli.generate import generate
from maskwalk.cli.new import new
from maskwalk.cli.report import report
from maskwalk.cli.reproduce import reproduce
from maskwalk.cli.sample import sample
from maskwalk.cli.text import text
from maskwalk.cli.theory import theory
from maskwalk.cli.train import train
from maskwalk.cli.verify import verify
from maskwalk.cli.zoo import zoo
from maskwalk.errors import MaskwalkError, memory_ran_out

NO_MEMORY = (
    "Out of memory. What was written before is intact; take a smaller world, count or batch, fewer "
    "--workers, or a machine with more memory, and run the same command again."
)
app = typer.Typer(
    name="maskwalk",
    help="Parallel samplers of masked diffusion models, measured where the truth is known.\n\n"
    "Start with [bold]maskwalk list[/bold], then [bold]maskwalk sample[/bold].",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("list")(list_)
for command in (
    sample,
    generate,
    bench,
    report,
    reproduce,
    compare,
    diagnose,
    evaluate,
    theory,
    zoo,
    train,
    verify,
):
    app.command()(command)
app.add_typer(text)
app.add_typer(new)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Shared options."""
    if version:
        out.print(__version__)
        raise typer.Exit


def main() -> None:
    """Entry point: a user's mistake is a sentence and exit code 2."""
    try:
        app()
    except MaskwalkError as problem:
        err.print(f"[bold red]error:[/bold red] {escape(str(problem))}", soft_wrap=True)
        sys.exit(2)
    except (MemoryError, RuntimeError) as problem:
        if not memory_ran_out(problem):
            raise
        err.print(f"[bold red]error:[/bold red] {NO_MEMORY}", soft_wrap=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(141)
    except OSError as problem:  # an output that cannot be written, a full disk
        where = f" ({problem.filename})" if problem.filename else ""
        err.print(f"[bold red]error:[/bold red] {escape(f'{problem.strerror}{where}.')}")
        sys.exit(2)
