"""Random walks on a hidden graph as a world: a graph, a law of walks on it, a length, a seed."""

from pathlib import Path

from maskwalk.errors import MaskwalkError, whole
from maskwalk.specs import Spec, parse
from maskwalk.worlds.walks.graphs import GRAPHS
from maskwalk.worlds.walks.laws import WALKS, WalkLaw
from maskwalk.worlds.world import WORLDS

GRAPH, LAW, LENGTH = "st_er(nodes=500, p=0.01)", "lazy(stay=0.125)", 24


@WORLDS.register("walk", parts={"graph": GRAPHS, "law": WALKS})
def walk(graph: str = GRAPH, law: str = LAW, length: int = LENGTH, seed: int = 0) -> WalkLaw:
    """Random walks on a hidden graph; `seed` draws the graph."""
    check_numbers(length, seed)
    return WALKS.build(law, graph=GRAPHS.build(graph, seed=seed), length=length)


def check_numbers(length: int, seed: int) -> None:
    """A sentence for a length or a graph's seed that cannot be."""
    whole("length", length, 2, 65_535)
    whole("graph_seed", seed, 0, 2**63 - 1)


def walk_world(
    graph: str | None = None,
    walk: str | None = None,
    length: int | None = None,
    graph_seed: int | None = None,
) -> str:
    """The canonical spec of a world of walks, from the parts that commands and files name."""
    given = {"graph": graph, "law": walk, "length": length, "seed": graph_seed}
    parts = {
        key: _part(key, value) if isinstance(value, str) else value
        for key, value in given.items()
        if value is not None
    }
    spec = WORLDS.canonical(str(Spec("walk", (), parts)))
    values = parse(spec).kwargs
    check_numbers(values["length"], values["seed"])
    return spec


def _part(key: str, text: str) -> Spec:
    """The spec of a part; a sentence for the path of a file where a graph is wanted."""
    try:
        return parse(text)
    except MaskwalkError:
        path = Path(text)
        if key != "graph" or "(" in text or not (path.suffix or len(path.parts) > 1):
            raise
        there = f"{text} is a file" if path.is_file() else f"There is no file {text!r}"
        raise MaskwalkError(
            f"{there}; a graph from a file is written file(path={text!r})."
        ) from None


def walk_parts(world: str) -> dict[str, object] | None:
    """Graph, walk, length and graph seed of a world of walks; None for any other world."""
    spec = parse(world)
    if spec.name != "walk":
        return None
    values = spec.kwargs
    return {
        "graph": str(values["graph"]),
        "walk": str(values["law"]),
        "length": values["length"],
        "graph_seed": values["seed"],
    }
