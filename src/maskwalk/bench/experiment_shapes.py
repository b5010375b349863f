"""What an experiment file may say, setting by setting (docs/experiments.md, docs/language.md).

Types and sizes are checked here, before specs are read; whether a spec names something is for its
table to say. `check_cells` is the limit on how much work a file asks for.
"""

from typing import Any

from maskwalk.errors import MaskwalkError
from maskwalk.reading import (
    Shape,
    Wrong,
    by_type,
    flag,
    listed,
    number,
    table,
    text,
    whole,
)

ITEMS = 10_000  # of a list
CELLS = 100_000  # of an experiment: a minute to read, weeks to run
SPEC = text(least=1, most=10_000)
TEXTS = listed("texts", SPEC, ITEMS)


def different(value: Any) -> None:
    """Texts, none of them twice: a metric has one place in a record."""
    TEXTS(value)
    if len(set(value)) < len(value):
        raise Wrong("a list of different metrics", value)


NUMBER = by_type("a number", {int: number(), float: number()})
MARK = by_type(
    "a number, or a table with at and label",
    {int: number(), float: number(), dict: table({"at": number(), "label": text()}, ("at",), None)},
)
AXIS = table(
    {"name": SPEC, "value": NUMBER, "parameter": SPEC, "marks": listed("marks", MARK, 1000)},
    needs=("name",),
    others=None,
    what="a table with a name",
)
TASK = by_type(
    "a text, or a table with task, count and per_prompt",
    {
        str: SPEC,
        dict: table({"task": SPEC, "count": whole(1), "per_prompt": whole(1)}, ("task",)),
    },
)
SHARED: dict[str, Shape] = {
    "length": whole(1),
    "count": whole(1),
    "per_prompt": whole(1),
    "seed": whole(0),
    "metrics": different,
    "tasks": listed("texts or tables", TASK, ITEMS),
    "samplers": TEXTS,
    "quick_samplers": TEXTS,
    "denoisers": TEXTS,
    "presets": TEXTS,
    "modes": TEXTS,
    "axis": AXIS,
}
WORLD = SHARED | {
    **dict.fromkeys(("title", "zoo", "world", "graph", "walk", "column"), SPEC),
    "graph_seed": whole(0),
    "quick": flag,
}
EXPERIMENT = SHARED | {
    "name": SPEC,
    "kind": SPEC,
    "traces": flag,
    "graphs": listed("tables, [[graphs]]", table(WORLD, what="a table, [[graphs]]"), ITEMS),
    "worlds": listed("tables, [[worlds]]", table(WORLD, what="a table, [[worlds]]"), ITEMS),
}
TEXT = {
    **dict.fromkeys(("kind", "name", "title", "masked", "causal"), SPEC),
    **dict.fromkeys(("presets", "samplers", "exact_only", "judge"), TEXTS),
    **{
        name: whole(0)
        for name in ("length", "count", "replayed", "paths", "judged", "references", "seed")
    },
}
KINDS = {
    "cells": table(EXPERIMENT),
    "text": table(
        TEXT
        | {name: table(TEXT, what=f"a table, [{name}]") for name in ("quick", "models", "denoiser")}
    ),
}


def check_experiment(given: dict[str, Any], kind: str, path: object) -> None:
    """A sentence for a setting of a wrong type or size; unknown settings are for the caller."""
    try:
        KINDS[kind](given)
    except Wrong as wrong:
        raise MaskwalkError(f"{wrong.told(f' in {path}')}.") from None


def check_cells(cells: int, path: object) -> None:
    """Refuses a product that nobody could run."""
    if cells > CELLS:
        raise MaskwalkError(
            f"{path} describes {cells:,} cells, and an experiment has at most {CELLS:,}; name "
            "fewer worlds, tasks, samplers or modes, or split it into several files."
        )
