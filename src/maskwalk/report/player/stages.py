"""What a world looks like to the player: a map, a grid, a sum, a text, or its own picture.

    graph   nodes and edges of the part of a graph that the walks use (maps.py)
    grid    rows and columns of cells, with boxes where a sudoku has them
    sum     two operands and their sum, by the positions of their digits
    text    the pieces of text that tokens stand for
    words   the signs of the tokens, in a line

Every stage holds `signs`, what a reader sees of a token; without, the token's number stands.
"""

from collections.abc import Sequence
from typing import Any

from maskwalk.errors import MaskwalkError
from maskwalk.report.player.maps import walk_map
from maskwalk.worlds.addition import Addition
from maskwalk.worlds.dyck import BRACKETS, Dyck
from maskwalk.worlds.exact.solutions import Solutions
from maskwalk.worlds.pcfg import Pcfg
from maskwalk.worlds.potts import Potts
from maskwalk.worlds.regular import Regular
from maskwalk.worlds.text.world import Text
from maskwalk.worlds.walks.graphs import Graph
from maskwalk.worlds.walks.laws import WalkLaw
from maskwalk.worlds.world import World, build_world

Stage = dict[str, Any]


def stage_of(world: World, sequences: Sequence[Sequence[int]]) -> Stage:
    """The stage of these sequences."""
    if isinstance(world, WalkLaw) and world.graph is not None:
        return _walks(world.graph, sequences)
    if isinstance(world, Text):
        return _text(world, sequences)
    if isinstance(world, Addition):
        lines = [world.a, world.b, world.c]
        return {"kind": "sum", "lines": lines, "base": world.base}
    if isinstance(world, Potts):
        cells = world.cells
        return _grid(world.height, world.width, cells.ravel().tolist()) | {"colours": world.states}
    if isinstance(world, Solutions) and hasattr(world, "shape"):
        rows, columns = world.shape
        signs = [str(value + 1) for value in range(world.vocab_size)]
        grid = _grid(rows, columns, list(range(rows * columns)))
        return grid | {"box": getattr(world, "box", 0), "signs": signs}
    return {"kind": "words", "signs": _signs(world)}


def spec_stage(spec: str, sequences: Sequence[Sequence[int]]) -> Stage | None:
    """The stage of a world that a record names; None where it cannot be built here."""
    try:
        return stage_of(build_world(spec), sequences)
    except (MaskwalkError, ImportError):
        return None


def _walks(graph: Graph, walks: Sequence[Sequence[int]]) -> Stage:
    stage: Stage = walk_map(graph, walks) or {"kind": "words"}
    if graph.names:
        used = {token for walk in walks for token in walk} | set(stage.get("nodes", ()))
        stage["names"] = {str(node): graph.name(node) for node in sorted(used)}
    return stage


def _text(world: Text, sequences: Sequence[Sequence[int]]) -> Stage:
    from maskwalk.denoisers.language.tokenizer import pieces

    used = sorted({token for sequence in sequences for token in sequence})
    return {"kind": "text", "names": dict(zip(map(str, used), pieces(world.tokenizer, used)))}


def _grid(rows: int, columns: int, positions: list[int]) -> Stage:
    """`positions`: the position of every cell, row after row."""
    return {"kind": "grid", "rows": int(rows), "columns": int(columns), "cells": positions}


def _signs(world: World) -> list[str] | None:
    if isinstance(world, Dyck):
        return list(BRACKETS[: world.vocab_size])
    if isinstance(world, Regular):
        return list(world.alphabet)
    if isinstance(world, Pcfg):
        return list(world.grammar.words)
    return None
