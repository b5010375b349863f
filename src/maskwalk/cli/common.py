"""What the commands share: where they print, and options that mean the same everywhere."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from maskwalk.bench.bars import Bars, bars_on
from maskwalk.cli import complete
from maskwalk.errors import MaskwalkError
from maskwalk.specs import load_installed_plugins, load_plugin

if TYPE_CHECKING:
    from maskwalk.bench.run import Run


T = TypeVar("T")


class Plain(Console):
    """A console without markup, so that a name in brackets is a name; tells of a closed pipe."""

    def __init__(self, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def on_broken_pipe(self) -> None:
        """Nobody reads any more: the command line ends as other tools do."""
        raise BrokenPipeError


out, err = Plain(), Plain(stderr=True)
# Where options stand in a command's help, below its own.
WORLD, DECODING, TEXT, MACHINES = "World", "Decoding", "Models of text", "Machines"


def path(text: str | Path) -> Path:
    """What `--out` names; nothing would be the current folder, which nobody meant."""
    if not str(text).strip():
        raise typer.BadParameter("It is empty; name a place, or . for the current folder.")
    return Path(text)


World = Annotated[
    str | None,
    typer.Option(
        help="The world, as a spec, such as 'walk(length=16)'; `maskwalk list worlds`.",
        autocompletion=complete.worlds,
        rich_help_panel=WORLD,
    ),
]
Graph = Annotated[
    str | None,
    typer.Option(
        help="Of a world of walks: the graph \\[st_er(nodes=500, p=0.01)].",
        autocompletion=complete.graphs,
        rich_help_panel=WORLD,
    ),
]
Walk = Annotated[
    str | None,
    typer.Option(
        help="… the law of walks on it \\[lazy(stay=0.125)].",
        autocompletion=complete.walks,
        rich_help_panel=WORLD,
    ),
]
Length = Annotated[
    int | None,
    typer.Option(
        help="… tokens in a walk [24], or of a model of text [256].", rich_help_panel=WORLD
    ),
]
GraphSeed = Annotated[
    int | None, typer.Option(help="… seed of the graph [0].", rich_help_panel=WORLD)
]
Denoiser = Annotated[
    str,
    typer.Option(
        help="oracle, zoo:NAME (brings its world), or a trained directory.",
        autocompletion=complete.denoisers,
    ),
]
Task = Annotated[
    str,
    typer.Option(
        help="What is given: unconditional, endpoints, bottleneck, prefix(share=0.5), …; "
        "`maskwalk list tasks`.",
        autocompletion=complete.tasks,
    ),
]
Preset = Annotated[
    str,
    typer.Option(
        help="A decoding by name: exact, as_published; with a sampler of its own llada, dream, "
        "fast_dllm, dinfer, mdlm, remdm. See maskwalk list presets.",
        autocompletion=complete.presets,
        rich_help_panel=DECODING,
    ),
]
DrawSpec = Annotated[
    str | None,
    typer.Option(
        "--draw",
        help="How a token is drawn, as a spec: 'draw(top_p=0.9, floor=0.2)'.",
        rich_help_panel=DECODING,
    ),
]
Ties = Annotated[
    str | None,
    typer.Option(
        help="Equal scores: uniform, or index (the lowest position).", rich_help_panel=DECODING
    ),
]
Count = Annotated[int, typer.Option(help="Sequences, or prompts if conditional.")]
PerPrompt = Annotated[int, typer.Option(help="Samples for each prompt.")]
Seed = Annotated[int, typer.Option(help="Seed of prompts and draws.")]
Device = Annotated[str, typer.Option(help="cpu, or cuda.", rich_help_panel=MACHINES)]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable, on stdout.")]
Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include", help="A Python file to run that registers your own worlds, samplers, …"
    ),
]


Timeout = Annotated[
    float | None,
    typer.Option(
        help="Seconds a cell may take; one that takes longer is skipped, with a note.",
        rich_help_panel=MACHINES,
    ),
]


def bring_in(paths: list[str] | None) -> list[str]:
    """Loads installed plug-ins and runs the user's own files; returns their paths."""
    load_installed_plugins()
    for path in paths or []:
        load_plugin(path)
    return list(paths or [])


def specs_in(text: str) -> list[str]:
    """The specs between ';'; none where nothing was typed."""
    specs = [spec.strip() for spec in text.split(";") if spec.strip()]
    if text and not specs:
        raise MaskwalkError(
            f"--samplers {text!r} names none; give specs such as 'bisection;entropy(block=2)', or "
            "leave it out."
        )
    return specs


def check_device(device: str) -> str:
    """The device if this machine has it, or a sentence."""
    import torch

    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise MaskwalkError(f"--device is cpu, cuda or cuda:N, not {device}.")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise MaskwalkError(f"There is no CUDA device here for --device {device}; use cpu.")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise MaskwalkError(f"--device {device} is not usable here; use cpu or cuda.") from None
    return device


def add_command(app: typer.Typer, command: Callable[..., Any], name: str | None = None) -> None:
    """Makes a function a command whose help is its docstring, a line per paragraph."""
    app.command(name, help=unwrapped(command.__doc__ or ""))(command)


def unwrapped(docstring: str) -> str:
    """A docstring whose paragraphs are single lines, so that the window alone breaks them."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(docstring))
    return "\n\n".join(" ".join(part.split()) for part in paragraphs)


def progress(transient: bool = False, wide: int | None = None) -> Bars:
    """A bar on stderr: what is done, of how many, and the time left; lines where no bar can be."""
    return bars_on(err, transient, wide)


def watched(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """The items as they come, with a bar that goes away when they are done."""
    with progress(transient=True) as bars:
        yield from bars.track(items, total=total, description=what)


def run_jobs(run: "Run", name: str = "") -> None:
    """Does the work of a run, with a bar; what the run has to say stands above it."""
    with stoppable(f"what is finished is in {run.path}"), progress(wide=32) as bars:
        bar = bars.add_task(name or "starting", total=run.total)
        try:
            for record in run:
                words = run.where or name or str(record["sampler"])
                bars.update(bar, completed=run.done, description=words)
                say_notes(run.notes)
        finally:
            say_notes(run.notes)
        bars.update(bar, completed=run.done, description=name or "done")


def say_notes(notes: list[str]) -> None:
    """Each of them once, as a line on stderr."""
    while notes:
        err.print(notes.pop(0), style="yellow", markup=False, soft_wrap=True)


@contextmanager
def stoppable(left: str) -> Iterator[None]:
    """Ctrl-C is one line that says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        line = f"Stopped; {left}, and the same command goes on from there."
        err.print(line, markup=False, soft_wrap=True)
        raise typer.Exit(130) from None


def plain_table(first: str, *others: str) -> Table:
    """A table without edges: words on the left, numbers on the right."""
    table = Table(show_edge=False, pad_edge=False)
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right", overflow="fold")
    return table


def say_written(path: Path) -> None:
    """One line, never folded, so that it can be copied."""
    out.print(f"Wrote {path}", soft_wrap=True)


def say_files(folder: Path, paths: Sequence[Path]) -> None:
    """One line: every file of the folder itself, and how many there are in each folder of it."""
    from maskwalk.report.words import plural

    here = [str(path) for path in paths if path.parent == folder]
    counts = Counter(path.parent for path in paths if path.parent != folder)
    inside = [
        f"{plural(count, where.name.removesuffix('s'))} in {where}/"
        for where, count in counts.items()
    ]
    out.print(f"Wrote {', '.join([*here, *inside])}", soft_wrap=True)
