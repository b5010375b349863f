"""`maskwalk list`: everything a spec can name."""

import inspect
from typing import Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from maskwalk.cli.common import Include, bring_in, out
from maskwalk.errors import unknown

PAPER = (
    "The paper: Bansal, Cholyeon, Kumar, Sanghavi, Sarkar, Understanding Parallel Samplers in "
    "Masked Diffusion via Random Walks on Graphs."
)


def list_(
    kind: Annotated[str, typer.Argument(help="Only this kind, for example samplers.")] = "",
    include: Include = None,
) -> None:
    """Everything a spec can name: graphs, walks, tasks, samplers, denoisers, metrics.

    Example: maskwalk list samplers
    """
    from maskwalk.cli.tables import TABLES
    from maskwalk.samplers.table import source

    bring_in(include)
    if kind and kind not in TABLES:
        raise unknown("kind", kind, TABLES)
    for title, table in TABLES.items():
        if kind not in ("", title):
            continue
        out.print(f"[bold underline]{title}[/bold underline]")
        for name in table:
            shown = ", ".join(_shown(p) for p in table.parameters(name))
            out.print(
                Padding(Text.assemble((name, "bold"), f"({shown})"), (0, 0, 0, 2), expand=False)
            )
            out.print(Padding(Text(table.summary(name)), (0, 0, 0, 6), expand=False))
            if title == "samplers":
                said = source(name) or "not said in its file's docstring (Source: …)"
                out.print(Padding(Text(f"Source: {said}", style="dim"), (0, 0, 0, 6), expand=False))
        if title == "samplers":
            out.print(Padding(Text(PAPER, style="dim"), (1, 0, 0, 2), expand=False))
        out.print()


def _shown(parameter: inspect.Parameter) -> str:
    """A parameter as one would write it."""
    if parameter.default is parameter.empty:
        return parameter.name
    return f"{parameter.name}={parameter.default!r}"
