"""`maskwalk report`: records into a page, tables and figures."""

from pathlib import Path
from typing import Annotated

import typer

from maskwalk.cli.common import say_written
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

    A ledger of `maskwalk diagnose --out` in the same directory becomes a section of the page;
    records of texts get a page of their own kind.

    Examples: maskwalk report runs/mine --format html --format svg

    maskwalk report results/atlas --fronts --calls 8
    """
    from maskwalk.bench.records import read_records
    from maskwalk.paper.tables import attach
    from maskwalk.report import (
        BUDGETS,
        front_tables,
        is_text,
        read_ledger,
        write_report,
        write_text_report,
    )

    if calls and not fronts:
        raise MaskwalkError("--calls is a budget for --fronts; add --fronts or leave it out.")
    chosen = tuple(formats or ["html", "csv", "md"])
    ledger = [] if fronts else read_ledger(directory)
    alone = ledger and not any(directory.glob("records.jsonl*"))
    records = [] if alone else read_records(directory)
    texts = sum(map(is_text, records))
    if texts and (texts < len(records) or ledger):
        raise MaskwalkError(
            f"{directory} holds {texts} records of texts beside others, and a page shows one kind; "
            "put them into directories of their own."
        )
    if fronts and texts:
        raise MaskwalkError("--fronts is for records of walks; these are of texts.")
    if fronts:
        typer.echo(front_tables(records, sorted(set(calls or BUDGETS))), nl=False)
    elif texts:
        for path in write_text_report(records, directory, chosen):
            say_written(path)
    else:
        for path in write_report(attach(records), directory, chosen, ledger=ledger):
            say_written(path)
