"""`maskwalk theory`: the paper's lemmas, checked."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from maskwalk.cli.common import AsJson, err, out


def theory(
    drawings: Annotated[Path | None, typer.Option(help="Also draw both DAGs there.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check the paper's lemmas exactly: claim, predicted, computed. Takes seconds.

    Everything is computed by enumeration or dynamic programming, not by simulation.
    """
    from maskwalk.paper.theory import check_all, draw_dags

    checks = list(check_all())
    if as_json:
        print(json.dumps([check.as_dict() for check in checks]))
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
            err.print(f"Drew {path}", soft_wrap=True)
    if not all(check.holds for check in checks):
        raise typer.Exit(1)
