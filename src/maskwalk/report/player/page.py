"""The page of `maskwalk play`: samplers side by side on the same prompt, in one file."""

from collections.abc import Sequence
from typing import Any

from maskwalk import __version__
from maskwalk.bench.cell import Cell
from maskwalk.bench.labels import families, read, spoken, task_label
from maskwalk.bench.reels import Reel
from maskwalk.report.page import data_block, pasted, render
from maskwalk.report.player.reels import reel_data
from maskwalk.report.player.stages import Stage, stage_of
from maskwalk.report.words import listed, plural
from maskwalk.worlds.text.world import Text
from maskwalk.worlds.walks.laws import WalkLaw
from maskwalk.worlds.world import World

TITLES = {  # what a person would call a world
    "addition": "A sum",
    "dyck": "Balanced brackets",
    "hierarchy": "Leaves of a tree",
    "hmm": "A hidden chain",
    "latin": "A Latin square",
    "pcfg": "A sentence of a grammar",
    "potts": "A grid of spins",
    "regular": "A word of a regular language",
    "sudoku": "A sudoku",
    "text": "A text",
}
SCRIPTS = ("inflate", "base", "tips", "save", "frames", "stages", "player", "play")


def play_page(cell: Cell, world: World, reels: Sequence[Reel], command: str) -> str:
    """The page as text; `cell` says what the reels have in common."""
    stage = stage_of(world, _seen(reels, expected=isinstance(world, Text)))
    told = reel_data(reels)
    return render(
        "play.html",
        families=families([read(reel.sampler).name for reel in reels]),
        style=pasted("style.css", "player.css"),
        script=pasted(*(f"{name}.js" for name in SCRIPTS)),
        data=data_block({"stage": stage, "reels": told}),
        about=_about(cell, world, reels, stage, [one["label"] for one in told], command),
    )


def _seen(reels: Sequence[Reel], expected: bool = False) -> list[list[int]]:
    """The tokens that each reel ever shows; those it only expects have no place on a map."""
    return [
        [
            *(token for token in reel.given if token is not None),
            *(c.token for changes in reel.rounds for c in changes if c.token is not None),
            *(t for some in reel.guesses for g in some for t, _ in g.likeliest if expected),
        ]
        for reel in reels
    ]


def _about(
    cell: Cell,
    world: World,
    reels: Sequence[Reel],
    stage: Stage,
    labels: Sequence[str],
    command: str,
) -> dict[str, Any]:
    masked = sum(token is None for token in reels[0].given)
    same = "the same prompt and random streams" if len(reels) > 1 else "one prompt"
    rounds = listed(
        [f"{label} in {plural(len(r.rounds), 'round')}" for label, r in zip(labels, reels)]
    )
    return {
        "title": _title(cell.world, world),
        "intro": f"{plural(masked, 'masked position')}, filled from {same}: {rounds}.",
        "facts": [
            ("task", task_label(cell.task)),
            ("denoiser", cell.denoiser),
            ("draws", cell.mode),
            ("seed", cell.seed),
        ],
        "given": any(token is not None for token in reels[0].given),
        "walks": stage["kind"] == "graph",
        "filled": stage["kind"] in ("grid", "sum") and "colours" not in stage,
        "carries": stage["kind"] == "sum",
        "painted": "colours" in stage,
        "checked": any(reel.valid is not None for reel in reels),
        "versions": [__version__],
        "world": cell.world,
        "command": command,
    }


def _title(spec: str, world: World) -> str:
    """A random walk on 500 nodes, unmasked."""
    if isinstance(world, WalkLaw):
        return f"A walk on {world.vocab_size:,} nodes, unmasked"
    name = read(spec).name
    return f"{TITLES.get(name, spoken(name).capitalize())}, unmasked"
