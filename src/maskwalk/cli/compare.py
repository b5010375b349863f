"""`maskwalk compare`: records beside the numbers the paper prints."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from maskwalk.cli import complete
from maskwalk.cli.common import AsJson, out, say_notes
from maskwalk.specs import parse

SHOWN = 20  # cells listed
TABLE = {
    "unconditional": "unconditional",
    "endpoint_conditional": "endpoints",
    "bottleneck_conditional": "bottleneck",
}


def compare(
    directory: Annotated[
        Path,
        typer.Argument(
            help="Where `maskwalk reproduce` or `bench` wrote, or the name of shipped records.",
            autocompletion=complete.results,
        ),
    ] = Path("results/paper"),
    mode: Annotated[
        str, typer.Option(help="as_published, exact or oracle: whose columns to show.")
    ] = "as_published",
    claims: Annotated[
        bool, typer.Option("--claims", help="The paper's claims with verdicts, as Markdown.")
    ] = False,
    column: Annotated[
        str | None,
        typer.Option(help="A column of the tables, such as two_b8, among several graphs of it."),
    ] = None,
    beside: Annotated[
        list[Path] | None, typer.Option("--with", help="More records; repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Set records beside the paper's tables: root mean squares, ranks, and what disagrees.

    RMSE is over all cells and over those the paper prints above .05; rank is Spearman's over the
    latter, beside the value that two measurements of the paper's size have on average.

    Without a directory: the records of the full run on an H200, which come with the package.

    Example: maskwalk compare runs/paper --json

    Example: maskwalk compare results/suspects --with results/paper --column two_b1
    """
    from maskwalk.bench.versions import load_newest
    from maskwalk.errors import unknown
    from maskwalk.paper.compare import compare as compared
    from maskwalk.paper.ledger import markdown, verdicts
    from maskwalk.paper.spread import spread
    from maskwalk.resources import at_hand

    records = []
    for place in (directory, *(beside or ())):
        counting, aside = load_newest(at_hand(place, "results"), lean=True)
        records += counting
        say_notes(aside.lines())
    if column is not None:
        rows = spread(records, column, mode)
        print(json.dumps(rows)) if as_json else _among(rows, column, mode)
        return
    if claims:
        judged = verdicts(records)
        print(json.dumps(judged) if as_json else markdown(judged))
        return
    comparison = compared(records)
    if as_json:
        print(json.dumps(comparison))
        return
    if mode not in comparison["modes"]:
        if mode != "as_published":
            raise unknown("mode of these records", mode, comparison["modes"])
        mode = comparison["mode"]
    show(comparison, mode)


def _among(rows: list[dict[str, Any]], column: str, mode: str) -> None:
    """The printed column among the graphs."""
    out.print(f"The paper's column {column} among graphs of its family, {mode}:")
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    names = ("table", "graphs", "inside", "RMSE", "others", "nearest", "runs")
    for name in names:
        table.add_column(name, no_wrap=True)
    for row in rows:
        others = " ".join(map(_short, row["others"]))
        numbers = (f"{row['inside']} of {row['cells']}", _short(row["rmse"]), others)
        more = (_short(row["nearest"]), " ".join(map(_short, row["runs"])) or "–")
        name = f"{TABLE[row['table']]} {parse(row['task']).kwargs.get('ends') or ''}"
        table.add_row(name, str(row["graphs"]), *numbers, *more)
    out.print(table)
    out.print(
        "Cells printed above .05. inside: within the 95 % interval for one more graph.\n"
        "RMSE: of the printed column to the mean of the graphs; others: of each graph\n"
        "to the mean of the others; nearest: of the printed column to the nearest\n"
        "graph; runs: of two models of one graph.",
        style="dim",
    )
    for row in rows:
        for cell in row["outside"]:
            mean, half = _short(cell["mean"]), _short(cell["half"])
            where = f"{TABLE[row['table']]}, {cell['sampler']}"
            out.print(f"outside: {where}: {_short(cell['printed'])}, graphs {mean} ± {half}")


def show(found: dict[str, Any], mode: str) -> None:
    """The comparison for a person, in 80 columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("table", "graph"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for name in ("cells", "RMSE", ">.05", "RMSE", "bias", "rank", "expected"):
        table.add_column(name, justify="right", no_wrap=True)
    task = ""
    for column in found["modes"][mode]["columns"]:
        ends = parse(column["task"]).kwargs.get("ends")
        name = f"{TABLE[column['table']]} {ends or ''}" if column["task"] != task else ""
        task = column["task"]
        table.add_row(name, column["graph"], *_numbers(column))
    for other, fitted in found["modes"].items():
        table.add_row(other, "all", *_numbers(fitted))
    out.print(f"Coherence against the paper's tables, {mode}:")
    out.print(table)
    out.print(
        "RMSE over all cells, then over those printed above .05; there also bias and\n"
        "Spearman's rank correlation. expected: the mean of the latter between two\n"
        "measurements of the paper's own size; single ones lie on both sides of it.",
        style="dim",
    )
    far = found["far"] if mode == found["mode"] else []
    if far:
        out.print(f"\n{len(far)} cells differ by more than 3 combined standard errors:")
    listed = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("graph", "task", "sampler"):
        listed.add_column(name, no_wrap=True, overflow="ellipsis", max_width=26)
    for name in ("ours", "paper", "errors"):
        listed.add_column(name, justify="right", no_wrap=True)
    for cell in far[:SHOWN]:
        numbers = _short(cell["ours"]), _short(cell["published"]), f"{cell['sigmas']:+.1f}"
        listed.add_row(cell["graph"], TABLE[cell["table"]], cell["sampler"], *numbers)
    if far:
        out.print(listed)
    if len(far) > SHOWN:
        out.print(f"… and {len(far) - SHOWN} more: --json has them all.")
    if far:
        out.print(
            "Why they differ these records do not say: run another graph, prompt or start\n"
            "law (experiments/suspects.toml) and compare that.",
            style="dim",
        )


def _numbers(fitted: dict[str, Any]) -> list[str]:
    keys = ("rmse", "rmse_above", "bias_above", "rank_above", "expected_above")
    numbers = ["–" if fitted.get(k) is None else _short(fitted[k]) for k in keys]
    return [str(fitted["cells"]), numbers[0], str(fitted["cells_above"]), *numbers[1:]]


def _short(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".", 1)
