"""`maskwalk play`: samplers at work, round by round, on a page."""

import sys
import time
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from maskwalk.cli import common, complete
from maskwalk.cli.common import bring_in, check_device, err, out, say_written
from maskwalk.errors import MaskwalkError

MOST_PANES = 8
SLOW = 10.0  # seconds from which on every sampler that is done gets a line


def play(
    world: common.World = None,
    graph: common.Graph = None,
    walk: common.Walk = None,
    length: common.Length = None,
    graph_seed: common.GraphSeed = None,
    denoiser: common.Denoiser = "oracle",
    sampler: Annotated[
        list[str] | None,
        typer.Option(
            help="A sampler, as a spec or FILE.py:Class (the file is run); repeatable: they stand "
            "side by side \\[bisection and random(block=4)]."
        ),
    ] = None,
    task: Annotated[
        str,
        typer.Option(
            help="What is given: unconditional, endpoints, prefix, clues, operands and others; "
            "`maskwalk list tasks`.",
            autocompletion=complete.tasks,
        ),
    ] = "unconditional",
    preset: common.Preset = "exact",
    draw: common.DrawSpec = None,
    ties: common.Ties = None,
    seed: common.Seed = 0,
    sequence: Annotated[
        int, typer.Option(help="Which sequence of this seed; all samplers get its prompt.")
    ] = 0,
    to: Annotated[
        Path,
        typer.Option("--out", parser=common.path, help="The page to write."),
    ] = Path("play.html"),
    opens: Annotated[
        bool | None,
        typer.Option("--open/--no-open", help="Open it in the browser \\[if this is a terminal]."),
    ] = None,
    device: common.Device = "cpu",
    include: common.Include = None,
) -> None:
    """Watch samplers unmask a sequence: one self-contained page with a player.

    Every round shows the sequence with the probability and entropy of each position, beside a
    picture of the world: the walk on its graph, a grid, a sum, a text.

    Example: maskwalk play --sampler bisection --sampler 'random(block=4)' --task endpoints

    Example: maskwalk play --world 'sudoku(box=2)' --sampler 'entropy(block=2)' --sampler random

    Example: maskwalk play --denoiser zoo:st_er_deg7 --sampler entropy --sampler bisection

    Example: maskwalk play --sampler my_policy.py:MyPolicy --sampler bisection --task endpoints
    """
    from maskwalk.bench.cell import Cell
    from maskwalk.bench.reels import record_reel
    from maskwalk.bench.verdict.policy import as_spec
    from maskwalk.report.player.page import play_page
    from maskwalk.report.words import typed
    from maskwalk.resources import write_file
    from maskwalk.worlds.world import build_world

    bring_in(include)
    named = dict.fromkeys(sampler or ["bisection", "random(block=4)"])
    specs = list(dict.fromkeys(map(as_spec, named)))
    if len(specs) > MOST_PANES:
        raise MaskwalkError(
            f"{len(specs)} samplers do not fit side by side; give at most {MOST_PANES}."
        )
    cells = [
        Cell.checked(
            world=world,
            graph=graph,
            graph_seed=graph_seed,
            walk=walk,
            length=length,
            task=task,
            sampler=spec,
            denoiser=denoiser,
            preset=preset,
            draw=draw,
            ties=ties,
            count=1,
            seed=seed,
        )
        for spec in specs
    ]
    place = check_device(device)
    reels, began = [], time.monotonic()
    with err.status("") as status:
        for number, cell in enumerate(cells, 1):
            status.update(Text(f"{cell.sampler}, {number} of {len(cells)}"))
            reels.append(record_reel(cell, sequence, place))
            passed = time.monotonic() - began
            if passed > SLOW:
                done = f"{cell.sampler}: {number} of {len(cells)}, {passed:.0f} s"
                err.print(done, style="dim", soft_wrap=True)
    page = play_page(cells[0], build_world(cells[0].world), reels, typed(sys.argv[1:]))
    to.parent.mkdir(parents=True, exist_ok=True)
    write_file(to, page.encode())
    say_written(to)
    opened = sys.stdout.isatty() if opens is None else opens
    if not (opened and webbrowser.open(to.resolve().as_uri())):
        out.print("Open it in a browser.")
