"""`maskwalk report`: records into a page, tables and figures."""

from pathlib import Path
from typing import Annotated

import typer

from maskwalk.commands.common import say_written


def report(
    directory: Annotated[Path, typer.Argument(help="Where `maskwalk bench` wrote.")],
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="html, csv, md, tex, svg or pdf; repeatable."),
    ] = None,
) -> None:
    """Tables and one self-contained page from the records of a run; never recomputes.

    Example: maskwalk report runs/mine --format html --format svg
    """
    from maskwalk.records import read_records
    from maskwalk.report import write_report

    chosen = tuple(formats or ["html", "csv", "md"])
    for path in write_report(read_records(directory), directory, chosen):
        say_written(path)
