"""What the commands share: where they print, and options that mean the same everywhere."""

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from maskwalk.errors import MaskwalkError
from maskwalk.specs import load_plugin

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

Graph = Annotated[
    str | None, typer.Option(help="The graph, as a spec \\[st_er(nodes=500, p=0.01)].")
]
Walk = Annotated[str | None, typer.Option(help="The law of walks on it \\[lazy(stay=0.125)].")]
Length = Annotated[int | None, typer.Option(help="Tokens in a walk [24].")]
GraphSeed = Annotated[int | None, typer.Option(help="Seed of the graph [0].")]
Denoiser = Annotated[
    str, typer.Option(help="oracle, zoo:NAME (brings its graph and walk), or a trained directory.")
]
Task = Annotated[str, typer.Option(help="unconditional, endpoints or bottleneck.")]
Preset = Annotated[str, typer.Option(help="exact, or as_published (bfloat16 draws, index ties).")]
Count = Annotated[int, typer.Option(help="Sequences, or prompts if conditional.")]
PerPrompt = Annotated[int, typer.Option(help="Samples for each prompt.")]
Seed = Annotated[int, typer.Option(help="Seed of prompts and draws.")]
Device = Annotated[str, typer.Option(help="cpu, or cuda.")]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable, on stdout.")]
Include = Annotated[
    list[str] | None,
    typer.Option("--include", help="A Python file that registers your own samplers, graphs, …"),
]


def bring_in(paths: list[str] | None) -> list[str]:
    """Runs the user's own files; returns their paths."""
    for path in paths or []:
        load_plugin(path)
    return list(paths or [])


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


def progress() -> Progress:
    """A bar on stderr: what is done, how many of how many, and the time left."""
    text = TextColumn("{task.description}")
    return Progress(text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=err)


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
