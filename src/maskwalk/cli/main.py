"""The command line: the table of commands, and how a user's mistake becomes a sentence."""

import io
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from maskwalk import __version__
from maskwalk.cli.audit import audit
from maskwalk.cli.bench import bench
from maskwalk.cli.catalogue import list_
from maskwalk.cli.common import add_command, err, out
from maskwalk.cli.compare import compare
from maskwalk.cli.convert import convert
from maskwalk.cli.diagnose import diagnose
from maskwalk.cli.docs import docs
from maskwalk.cli.evaluate import evaluate
from maskwalk.cli.generate import generate
from maskwalk.cli.leaderboard import leaderboard
from maskwalk.cli.new import new
from maskwalk.cli.play import play
from maskwalk.cli.report import report
from maskwalk.cli.reproduce import reproduce
from maskwalk.cli.sample import sample
from maskwalk.cli.text import text
from maskwalk.cli.theory import theory
from maskwalk.cli.train import train
from maskwalk.cli.tune import tune
from maskwalk.cli.verify import verify
from maskwalk.cli.zoo import zoo
from maskwalk.errors import MaskwalkError, memory_ran_out, shown, told_of, user_code

NO_MEMORY = (
    "Out of memory. What was written before is intact; take a smaller world, count or batch, fewer "
    "--workers, or a machine with more memory, and run the same command again."
)
app = typer.Typer(
    name="maskwalk",
    help="Parallel samplers of masked diffusion models, measured where the truth is known.\n\n"
    "Start with [bold]maskwalk play[/bold], a picture; then [bold]maskwalk sample[/bold], numbers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
add_command(app, list_, "list")
for command in (
    sample,
    play,
    generate,
    convert,
    bench,
    report,
    reproduce,
    compare,
    diagnose,
    evaluate,
    tune,
    leaderboard,
    audit,
    theory,
    zoo,
    train,
    verify,
    docs,
):
    add_command(app, command)
app.add_typer(text)
app.add_typer(new)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print version, commit, torch and stop.")
    ] = False,
) -> None:
    """Shared options."""
    if version:
        out.print(versions(), soft_wrap=True)
        raise typer.Exit


def versions() -> str:
    """The version, and what results depend on: commit, torch, Python."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    from maskwalk.resources import commit

    try:
        torch = installed("torch")
    except PackageNotFoundError:
        torch = "not installed"
    revision = commit()
    code = f"commit {revision[:12]}, " if revision else ""
    python = ".".join(map(str, sys.version_info[:3]))
    return f"{__version__} ({code}torch {torch}, Python {python})"


def main() -> None:
    """Entry point: a user's mistake is a sentence and exit code 2."""
    _settle_streams()
    _settle_threads()
    try:
        with user_code():
            code = _run()
        sys.stdout.flush()
    except MaskwalkError as problem:
        code = _refused(str(problem))
    except (MemoryError, RuntimeError) as problem:
        if not memory_ran_out(problem):
            raise
        code = _refused(NO_MEMORY)
    except BrokenPipeError:
        code = 141
    except UnicodeEncodeError as problem:
        code = _refused(f"{shown(problem.object)} cannot be written as text: {problem.reason}.")
    except OSError as problem:  # an output that cannot be written, a full disk
        where = f" ({problem.filename})" if problem.filename else ""
        code = _refused(f"{problem.strerror}{where}.")
    except ValueError:
        if not (sys.stdout.closed or sys.stderr.closed):
            raise
        code = _refused("A file of yours closed standard output or standard error; leave it open.")
    _end_streams()
    sys.exit(code)


def _run() -> int:
    """The exit code of the command that was typed."""
    try:
        app()
    except SystemExit as stop:
        if _from_user(stop):
            raise
        if isinstance(stop.__context__, BrokenPipeError):  # which the parser takes for a mistake
            raise BrokenPipeError from None
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def _from_user(stop: SystemExit) -> bool:
    """Whether a user's own file asked to end."""
    return told_of(stop) is not None


def _refused(sentence: str) -> int:
    _open_again()
    first, _, rest = sentence.partition("\n")
    try:
        err.print(Text.assemble(("error: ", "bold red"), first), soft_wrap=True)
        if rest:
            err.print(Text(rest), soft_wrap=True)
    except OSError:  # stderr is closed or full as well
        return 2
    return 2


def _settle_threads() -> None:
    """Threads of torch that wait go to sleep soon: spinning, they slow down a busy machine."""
    if "OMP_WAIT_POLICY" not in os.environ:  # read when torch is loaded, which is later
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def _settle_streams() -> None:
    """Names that are no UTF-8 are printed with backslashes; a closed output is nowhere."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _open_again() -> None:
    """What was closed by name in a user's file; what it stood for is still there."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name).closed:
            again = open(number, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
            setattr(sys, name, again)


def _end_streams() -> None:
    """What a closed or full output did not take is dropped, not tried again at exit."""
    _open_again()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
