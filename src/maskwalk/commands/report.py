"""`maskwalk report`: records into a page, tables and figures."""

from pathlib import Path
from typing import Annotated

import typer

from maskwalk.commands.common import say_written


def report(
    directory: Annotated[
        Path, typer.Argument(help="Where `maskwalk bench` or `maskwalk diagnose --out` wrote.")
    ],
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="html, csv, md, tex, svg or pdf; repeatable."),
    ] = None,
) -> None:
    """Tables and one self-contained page from the records of a run; never recomputes.

    A ledger of `maskwalk diagnose --out` in the same directory becomes a section of the page.

    Example: maskwalk report runs/mine --format html --format svg
    """
    from maskwalk.published import attach
    from maskwalk.records import read_records
    from maskwalk.report import read_ledger, write_report

    chosen = tuple(formats or ["html", "csv", "md"])
    ledger = read_ledger(directory)
    alone = ledger and not (directory / "records.jsonl").exists()
    records = [] if alone else attach(read_records(directory))
    for path in write_report(records, directory, chosen, ledger=ledger):
        say_written(path)
