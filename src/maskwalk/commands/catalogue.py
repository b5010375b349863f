"""`maskwalk list`: everything a spec can name."""

import inspect
from typing import Annotated

import typer
from rich.table import Table

from maskwalk.commands.common import Include, bring_in, out
from maskwalk.errors import unknown


def list_(
    kind: Annotated[str, typer.Argument(help="Only this kind, for example samplers.")] = "",
    include: Include = None,
) -> None:
    """Everything a spec can name: graphs, walks, tasks, samplers, denoisers, metrics.

    Example: maskwalk list samplers
    """
    from maskwalk.catalogue import TABLES

    bring_in(include)
    if kind and kind not in TABLES:
        raise unknown("kind", kind, TABLES)
    for title, table in TABLES.items():
        if kind not in ("", title):
            continue
        rows = Table.grid(padding=(0, 2))
        for name in table:
            shown = ", ".join(_shown(p) for p in table.parameters(name))
            rows.add_row(f"  [bold]{name}[/bold]({shown})", table.summary(name))
        out.print(f"[bold underline]{title}[/bold underline]")
        out.print(rows)
        out.print()


def _shown(parameter: inspect.Parameter) -> str:
    """A parameter as one would write it."""
    if parameter.default is parameter.empty:
        return parameter.name
    return f"{parameter.name}={parameter.default!r}"
