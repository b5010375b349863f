"""The command line: parse, call, print. Every command is a thin layer over the library."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from maskwalk import __version__
from maskwalk.errors import MaskwalkError

app = typer.Typer(
    name="maskwalk",
    help="Parallel samplers of masked diffusion models, measured where the truth is known.\n\n"
    "Start with [bold]maskwalk list[/bold], then [bold]maskwalk sample[/bold].",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

Include = Annotated[
    list[str] | None,
    typer.Option("--include", help="A Python file that registers your own samplers, graphs, …"),
]


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Shared options."""
    if version:
        out.print(__version__)
        raise typer.Exit


def _include(paths: list[str] | None) -> list[str]:
    from maskwalk.include import include

    for path in paths or []:
        include(path)
    return list(paths or [])


@app.command("list")
def list_(
    kind: Annotated[str, typer.Argument(help="Only this kind, for example samplers.")] = "",
    include: Include = None,
) -> None:
    """Everything a spec can name: graphs, walks, tasks, samplers, denoisers, metrics."""
    from maskwalk.catalogue import TABLES
    from maskwalk.errors import unknown

    _include(include)
    if kind and kind not in TABLES:
        raise unknown("kind", kind, TABLES)
    for title, table in TABLES.items():
        if kind not in ("", title):
            continue
        rows = Table.grid(padding=(0, 2))
        for name in table:
            shown = ", ".join(str(p).split(":")[0] + _default(p) for p in table.parameters(name))
            rows.add_row(f"  [bold]{name}[/bold]({shown})", table.summary(name))
        out.print(f"[bold underline]{title}[/bold underline]")
        out.print(rows)
        out.print()


def _default(parameter: Any) -> str:
    return "" if parameter.default is parameter.empty else f"={parameter.default!r}"


@app.command()
def sample(
    graph: Annotated[str, typer.Option(help="The graph, as a spec.")] = "st_er(nodes=500, p=0.01)",
    walk: Annotated[str, typer.Option(help="The law of walks on it.")] = "lazy(stay=0.125)",
    length: Annotated[int, typer.Option(help="Tokens in a walk.")] = 24,
    denoiser: Annotated[str, typer.Option(help="Who answers: oracle.")] = "oracle",
    sampler: Annotated[str, typer.Option(help="Who chooses.")] = "bisection(order=1)",
    task: Annotated[
        str, typer.Option(help="unconditional, endpoints or bottleneck.")
    ] = "unconditional",
    preset: Annotated[str, typer.Option(help="exact, or as_published.")] = "exact",
    count: Annotated[int, typer.Option(help="Sequences, or prompts if conditional.")] = 512,
    per_prompt: Annotated[int, typer.Option(help="Samples for each prompt.")] = 1,
    graph_seed: Annotated[int, typer.Option(help="Seed of the graph.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of prompts and draws.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, or cuda.")] = "cpu",
    trace: Annotated[Path | None, typer.Option(help="Save the trace as Parquet.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    include: Include = None,
) -> None:
    """Decode walks with one sampler and say how good they are.

    Example: maskwalk sample --sampler 'entropy(block=2)' --task endpoints --count 256
    """
    from maskwalk.catalogue import summary
    from maskwalk.experiment import Cell, build_law, run_cell
    from maskwalk.report.walk import walk_summary

    _include(include)
    cell = Cell.checked(
        graph=graph,
        graph_seed=graph_seed,
        walk=walk,
        length=length,
        task=task,
        sampler=sampler,
        denoiser=denoiser,
        preset=preset,
        count=count,
        per_prompt=per_prompt,
        seed=seed,
    )
    record, decoded = run_cell(cell, device)
    if trace is not None and decoded.trace is not None:
        decoded.trace.save(trace)
    if as_json:
        print(json.dumps(summary(record)))
    else:
        law = build_law(cell.graph, cell.graph_seed, cell.walk, cell.length)
        some = decoded.tokens[:4]
        out.print(walk_summary(record, some.tolist(), law.valid(some).tolist()))


@app.command()
def bench(
    experiment: Annotated[Path, typer.Argument(help="A TOML file; see experiments/.")],
    to: Annotated[Path, typer.Option("--out", help="Directory for records.jsonl.")],
    workers: Annotated[int, typer.Option(help="Processes; the numbers do not depend on it.")] = 1,
    device: Annotated[str, typer.Option(help="cpu, or cuda.")] = "cpu",
    include: Include = None,
) -> None:
    """Run an experiment: graphs × tasks × samplers × denoisers, resumable at any moment.

    Killed or out of disk? The same command goes on where it stopped.
    """
    from maskwalk.engine import Run
    from maskwalk.experiment import Experiment
    from maskwalk.records import read_records
    from maskwalk.report.terminal import terminal_table

    run = Run(Experiment.load(experiment), to, workers, device, _include(include))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err) as progress:
        bar = progress.add_task("starting", total=run.total)
        for record in run:
            progress.update(bar, completed=run.done, description=f"{record['sampler']:<32.32}")
        progress.update(bar, completed=run.done, description="done")
    keys = {cell.key for cell in run.experiment.cells}
    out.print(terminal_table([r for r in read_records(to) if r["key"] in keys]))
    out.print(f"Records: {to / 'records.jsonl'}\nNext: maskwalk report {to}", soft_wrap=True)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(help="Where `maskwalk bench` wrote.")],
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="html (default), csv, md, tex, svg or pdf; repeatable."),
    ] = None,
) -> None:
    """Tables and one self-contained page from the records of a run; never recomputes."""
    from maskwalk.records import read_records
    from maskwalk.report import write_report

    for path in write_report(
        read_records(directory), directory, tuple(formats or ["html", "csv", "md"])
    ):
        out.print(f"Wrote {path}", soft_wrap=True)


@app.command()
def theory(
    drawings: Annotated[Path | None, typer.Option(help="Also draw both DAGs there.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Check the paper's lemmas exactly: claim, predicted, computed. Takes seconds.

    Everything is computed by enumeration or dynamic programming, not by simulation.
    """
    from maskwalk.theory import check_all, draw_dags

    checks = list(check_all())
    if as_json:
        print(json.dumps([c.as_dict() for c in checks]))
    else:
        table = Table(show_edge=False, pad_edge=False)
        for name in ("claim", "predicted", "computed", ""):
            table.add_column(name, overflow="fold")
        for check in checks:
            mark = "[green]holds[/green]" if check.holds else "[red]fails[/red]"
            table.add_row(check.claim, check.predicted, check.computed, mark)
        out.print(table)
    if drawings is not None:
        for path in draw_dags(drawings):
            out.print(f"Drew {path}", soft_wrap=True)
    if not all(check.holds for check in checks):
        raise typer.Exit(1)


def main() -> None:
    """Entry point: a user's mistake is a sentence and exit code 2."""
    try:
        app()
    except MaskwalkError as problem:
        err.print(f"[bold red]error:[/bold red] {_plain(str(problem))}", soft_wrap=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(141)


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
