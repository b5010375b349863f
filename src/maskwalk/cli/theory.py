"""`maskwalk theory`: the paper's lemmas, checked; and which of them hold in other worlds."""

import json
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from maskwalk.cli.common import AsJson, err, out, watched
from maskwalk.errors import unknown

if TYPE_CHECKING:
    from maskwalk.paper.theory import Check, Row

PARTS = ("paper", "worlds")
TOTAL = {"lemmas": 69, "laws": 78, "claims": 74}  # how many there are, for the time left


def theory(
    only: Annotated[
        str | None,
        typer.Option(help="One part alone: paper, or worlds."),
    ] = None,
    drawings: Annotated[Path | None, typer.Option(help="Also draw both DAGs there.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check the paper's lemmas exactly, on walks and in other worlds (30 s).

    Computed by enumeration or dynamic programming, not by simulation.

    --only paper: each claim on walks, what is predicted and what is computed.

    --only worlds: the law of random, certainty-first and bisection elsewhere;
    which claims carry over; a smallest instance of each that does not.

    Exits with 1 if anything computed is not as predicted.

    Example: maskwalk theory --only worlds
    """
    from maskwalk.paper.theory import check_all, check_worlds, draw_dags, world_laws

    if only not in (None, *PARTS):
        raise unknown("part", str(only), PARTS)
    checks: list[Check] = []
    rows: list[Row] = []
    if only != "worlds":
        checks = list(watched(check_all(), "the paper's lemmas", TOTAL["lemmas"]))
        if not as_json:
            out.print(_table(checks))
    if only != "paper":
        rows = list(watched(world_laws(), "laws in other worlds", TOTAL["laws"]))
        claims = watched(check_worlds(rows), "claims in other worlds", TOTAL["claims"])
        carried = list(claims)
        checks += carried
        if not as_json:
            _print_worlds(rows, carried)
    if as_json:
        entries = [check.as_dict() for check in checks] + [row.as_dict() for row in rows]
        print(json.dumps(entries))
    if drawings is not None:
        for path in draw_dags(drawings):
            err.print(f"Drew {path}", soft_wrap=True)
    if not all(check.holds for check in checks):
        raise typer.Exit(1)


def _mark(check: "Check") -> Text:
    return Text("holds", style="green") if check.holds else Text("fails", style="red")


def _table(checks: "Iterable[Check]") -> Table:
    table = Table(show_edge=False, pad_edge=False)
    for name in ("claim", "predicted", "computed", ""):
        table.add_column(name, overflow="fold")
    for check in checks:
        table.add_row(check.claim, check.predicted, check.computed, _mark(check))
    return table


def _print_worlds(rows: "list[Row]", checks: "list[Check]") -> None:
    """The laws, the claims, and the smallest instances where bisection is not exact."""
    _heading("Other worlds: the law of each sampler at equal calls")
    out.print(
        "TV and KL(truth ‖ sampler), in nats, are 0 if it is exact. Coherence is – where\n"
        "every sequence is possible: rank by KL there. 2+2+3: positions per round.",
        style="dim",
    )
    for (world, sequences), some in groupby(rows, key=lambda row: (row.world, row.sequences)):
        out.print(Text.assemble("\n", (world, "bold"), f": {sequences} sequences"), soft_wrap=True)
        out.print(_laws(some))
    _heading("Which claims carry over")
    out.print(_table(check for check in checks if not check.why))
    _heading("Which does not: the TV of bisection(order=1) in the smallest instances")
    for check in checks:
        if check.why:
            failed = "" if check.holds else f" fails: predicted {check.predicted}"
            words = (f"{check.computed}  ", (check.claim, "bold"), (failed, "red"))
            out.print(Text.assemble(*words), soft_wrap=True)
            out.print(f"{'':8}{check.why}", soft_wrap=True)


def _heading(text: str) -> None:
    out.print(Text.assemble("\n", (text, "bold underline"), "\n"))


def _laws(rows: "Iterable[Row]") -> Table:
    from maskwalk.paper.theory.worlds import COLUMNS

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(COLUMNS[0], min_width=28)
    for name in COLUMNS[1:]:
        table.add_column(name, justify="right", min_width=7)
    for row in rows:
        table.add_row(*row.cells())
    return table
