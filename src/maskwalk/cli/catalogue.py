"""`maskwalk list`: everything a spec can name."""

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.padding import Padding
from rich.text import Text

from maskwalk.cli import complete
from maskwalk.cli.common import Include, bring_in, out
from maskwalk.errors import unknown

if TYPE_CHECKING:
    from maskwalk.specs import Registry

MODELS = (
    "Also zoo:NAME (a shipped model, which brings its world; `maskwalk zoo`), the directory of a "
    "model that `maskwalk train` wrote, and, for `maskwalk generate`, hf:NAME (docs/your_model.md)."
)
PAPER = (
    "The paper: Bansal, Cholyeon, Kumar, Sanghavi, Sarkar, Understanding Parallel Samplers in "
    "Masked Diffusion via Random Walks on Graphs."
)


def list_(
    kind: Annotated[
        str,
        typer.Argument(help="Only this kind, for example samplers.", autocompletion=complete.kinds),
    ] = "",
    include: Include = None,
) -> None:
    """Everything a spec can name: worlds, tasks, samplers, scores, draws, denoisers, maskings, …

    Example: maskwalk list samplers

    Example: maskwalk list presets
    """
    from maskwalk.samplers.table import source

    bring_in(include)
    tables = all_tables()
    if kind and kind not in (*tables, "presets"):
        raise unknown("kind", kind, (*tables, "presets"))
    for title, table in tables.items():
        if kind not in ("", title):
            continue
        out.print(title, style="bold underline")
        for name in table:
            parameters = ", ".join(_shown(p) for p in table.parameters(name))
            out.print(
                Padding(
                    Text.assemble((name, "bold"), f"({parameters})"), (0, 0, 0, 2), expand=False
                )
            )
            out.print(Padding(Text(table.summary(name)), (0, 0, 0, 6), expand=False))
            if title == "samplers":
                origin = source(name) or "not said in its file's docstring (Source: …)"
                out.print(
                    Padding(Text(f"Source: {origin}", style="dim"), (0, 0, 0, 6), expand=False)
                )
        if title == "denoisers":
            out.print(Padding(Text(MODELS, style="dim"), (1, 0, 0, 2), expand=False))
        if title == "samplers":
            out.print(Padding(Text(PAPER, style="dim"), (1, 0, 0, 2), expand=False))
        out.print()
    if kind in ("", "presets"):
        _presets()


def all_tables() -> "dict[str, Registry[Any]]":
    """Every table of things a spec can name."""
    from maskwalk.decoding.draw import DRAWS
    from maskwalk.decoding.policy import SAMPLERS
    from maskwalk.decoding.scores import SCORES
    from maskwalk.denoisers.network.outputs import OUTPUTS
    from maskwalk.denoisers.resolve import DENOISERS
    from maskwalk.training.maskings import MASKINGS
    from maskwalk.worlds.metrics import METRICS
    from maskwalk.worlds.tasks import TASKS
    from maskwalk.worlds.walks.graphs import GRAPHS
    from maskwalk.worlds.walks.laws import WALKS
    from maskwalk.worlds.world import WORLDS

    return {
        "worlds": WORLDS,
        "graphs": GRAPHS,
        "walks": WALKS,
        "tasks": TASKS,
        "samplers": SAMPLERS,
        "scores": SCORES,
        "draws": DRAWS,
        "denoisers": DENOISERS,
        "maskings": MASKINGS,
        "outputs": OUTPUTS,
        "metrics": METRICS,
    }


def _presets() -> None:
    """The decodings by name: what they stand for, whose they are, what is not as there."""
    from maskwalk.decoding.presets import PRESETS

    out.print("presets", style="bold underline")
    for name, preset in PRESETS.items():
        out.print(Padding(Text(name, style="bold"), (0, 0, 0, 2), expand=False))
        lines = [(preset.line, ""), (f"Source: {preset.source}", "dim")]
        lines += [(f"Differs: {preset.differs}", "dim")] if preset.differs else []
        for text, style in lines:
            out.print(Padding(Text(text, style=style), (0, 0, 0, 6), expand=False))
    out.print()


def _shown(parameter: inspect.Parameter) -> str:
    """A parameter as one would write it."""
    if parameter.default is parameter.empty:
        return parameter.name
    return f"{parameter.name}={parameter.default!r}"
