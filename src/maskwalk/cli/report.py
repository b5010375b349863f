"""`maskwalk report`: records into a page, tables and figures."""

from pathlib import Path
from typing import Annotated

import typer

from maskwalk.cli.common import Include, bring_in, path, say_files, say_notes, say_written
from maskwalk.cli.waiting import at_work
from maskwalk.errors import MaskwalkError


def report(
    directory: Annotated[
        Path, typer.Argument(help="Where `maskwalk bench` or `maskwalk diagnose --out` wrote.")
    ],
    to: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=path,
            help="Where page and tables go \\[DIRECTORY; of shipped records NAME-report].",
            show_default=False,
        ),
    ] = None,
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
    settings: Annotated[
        int | None,
        typer.Option(help="At most this many settings of every rule: a lighter page."),
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(help="Only these metrics, separated by ';'.")
    ] = None,
    player: Annotated[
        bool,
        typer.Option(
            help="Play sequences again, for the page's player, where records hold no traces; takes "
            "seconds."
        ),
    ] = True,
    include: Include = None,
) -> None:
    """Tables and one self-contained page from the records of a run; measures nothing again.

    Of a cell that was run again the newest record counts, and of a full and a quick run the full.

    Rows of `maskwalk diagnose --out` in the same directory become a section of the page; for
    evaluations of `maskwalk evaluate --out` there is a page of its own, verdict.html, beside them.
    The report of shipped records (results/atlas) goes to a folder of its own here, atlas-report.

    Examples: maskwalk report runs/mine --format html --format svg

    maskwalk report results/atlas --fronts --calls 8

    maskwalk report results/worlds --settings 2 --metrics 'coherence;calls;replay_kl'
    """
    from maskwalk.bench.diagnosis import load_rows
    from maskwalk.bench.stored import nothing_collected
    from maskwalk.bench.verdict.read import read_evaluations
    from maskwalk.bench.versions import Aside, load_newest
    from maskwalk.paper.tables import attach
    from maskwalk.report import BUDGETS, front_tables, write_report
    from maskwalk.report.player.replays import SECONDS
    from maskwalk.report.thin import some_metrics, some_settings
    from maskwalk.report.verdict import write_verdicts
    from maskwalk.resources import at_hand

    bring_in(include)
    if calls and not fronts:
        raise MaskwalkError("--calls is a budget for --fronts; add --fronts or leave it out.")
    chosen = tuple(formats or ["html", "csv", "md"])
    named, directory = directory, at_hand(directory, "results")
    if to is None:  # shipped records are read only
        to = directory if directory == named else Path(f"{directory.name}-report")
    losses = [] if fronts else load_rows(directory)
    kept = any(directory.glob("records.jsonl*"))
    shown = "html" in chosen and not fronts
    verdicts = write_verdicts(directory, player=kept) if shown else None
    if verdicts is not None:
        say_written(verdicts)
        if not losses and not kept:
            return  # the contract is broken: there are no records
    records, aside = ([], Aside()) if losses and not kept else load_newest(directory, lean=True)
    say_notes(aside.lines())
    if settings is not None:
        records = some_settings(records, settings)
    if metrics is not None:
        records = some_metrics(records, [name.strip() for name in metrics.split(";")])
    if fronts:
        typer.echo(front_tables(records, sorted(set(calls or BUDGETS))), nl=False)
        return
    policies = [one.policy for one in read_evaluations(directory)] if verdicts else []
    with at_work("report"), nothing_collected():
        paths = write_report(
            attach(records),
            to,
            chosen,
            losses=losses,
            aside=aside.total,
            policies=policies,
            replayed=SECONDS if player else 0.0,
        )
    say_files(to, paths)
