"""`maskwalk report`: records into a page, tables and figures."""

from pathlib import Path
from typing import Annotated

import typer

from maskwalk.commands.common import say_written
from maskwalk.errors import MaskwalkError


def report(
    directory: Annotated[
        Path, typer.Argument(help="Where `maskwalk bench` or `maskwalk diagnose --out` wrote.")
    ],
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="html, csv, md, tex, svg or pdf; repeatable."),
    ] = None,
    fronts: Annotated[
        bool,
        typer.Option(
            "--fronts",
            help="Write no file; print, as Markdown, Pareto fronts, the best rule for a budget of "
            "calls, and the rules that change places between graphs.",
        ),
    ] = False,
    calls: Annotated[
        list[float] | None,
        typer.Option(
            "--calls", help="A budget for --fronts; repeatable (5, 8, 12 and 24 if none is given)."
        ),
    ] = None,
) -> None:
    """Tables and one self-contained page from the records of a run; never recomputes.

    A ledger of `maskwalk diagnose --out` in the same directory becomes a section of the page.

    Examples: maskwalk report runs/mine --format html --format svg

    maskwalk report results/atlas --fronts --calls 8
    """
    from maskwalk.published import attach
    from maskwalk.records import read_records
    from maskwalk.report import BUDGETS, front_tables, read_ledger, write_report

    if fronts:
        budgets = sorted(set(calls or BUDGETS))
        typer.echo(front_tables(read_records(directory), budgets), nl=False)
        return
    if calls:
        raise MaskwalkError("--calls is a budget for --fronts; add --fronts or leave it out.")
    chosen = tuple(formats or ["html", "csv", "md"])
    ledger = read_ledger(directory)
    alone = ledger and not any(directory.glob("records.jsonl*"))
    records = [] if alone else attach(read_records(directory))
    for path in write_report(records, directory, chosen, ledger=ledger):
        say_written(path)
