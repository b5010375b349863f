"""Graphs from the user's disk: edge lists and GraphML, through networkx.

An edge list has two columns, or three with the weight last, separated by blanks or commas; '#'
starts a comment. GraphML files (extension .graphml) say themselves whether they are directed. A
walk must be able to go on from everywhere, so every node needs a way out, and a weight is a finite
number above zero.
"""

import math
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from jaxtyping import Int64

from maskwalk.errors import MaskwalkError, shown
from maskwalk.resources import cache_directory, write_file
from maskwalk.specs import Spec
from maskwalk.worlds.sizes import gigabytes
from maskwalk.worlds.walks.graphs.graph import GRAPHS, Graph, assemble

LONGEST = 2_000_000  # edges read from a file: about half a minute and 2 GB


@GRAPHS.register("file", files=("path",))
def file(path: str, directed: bool = False) -> Graph:
    """A graph from an edge list or, if the name ends in .graphml, a GraphML file."""
    if not isinstance(path, str) or not Path(path).is_file():
        raise MaskwalkError(f"There is no file {path!r}; give the path of an edge list or GraphML.")
    if not isinstance(directed, bool):
        raise MaskwalkError(f"directed must be True or False, not {directed!r}.")
    place = Path(path)
    _check_size(place)
    try:
        if place.suffix.lower() == ".graphml":
            graph = nx.read_graphml(place)
        else:
            graph = _edge_list(place.read_text(encoding="utf-8"), directed, path)
    except MaskwalkError:
        raise
    except Exception as error:  # networkx raises whatever its parsers do
        raise MaskwalkError(
            f"Cannot read {path!r} as a graph ({type(error).__name__}: {error}). Give an edge list "
            "of two or three columns, or a GraphML file whose name ends in .graphml."
        ) from None
    return from_networkx(graph, repr(path))


def _check_size(place: Path) -> None:
    """A sentence for a file of more edges than are read here."""
    most = LONGEST if place.suffix.lower() != ".graphml" else LONGEST // 4
    size = place.stat().st_size
    if size < 4 * most:  # an edge takes at least four bytes
        return
    lines = 0
    with place.open("rb") as file:
        while part := file.read(1 << 24):
            lines += part.count(b"\n")
    if lines > most or size > 200 * most:
        raise MaskwalkError(
            f"{str(place)!r} has {lines:,} lines ({gigabytes(size)}); at most {most:,} edges are "
            "read from a file. Give a smaller graph."
        )


def _edge_list(text: str, directed: bool, path: str) -> Any:
    graph = nx.MultiDiGraph() if directed else nx.MultiGraph()
    for number, line in enumerate(text.splitlines(), start=1):
        columns = line.split("#")[0].replace(",", " ").split()
        if not columns:
            continue
        if len(columns) not in (2, 3):
            raise MaskwalkError(
                f"Line {number} of {path!r} has {len(columns)} columns; an edge has two, or three "
                "with its weight."
            )
        graph.add_edge(columns[0], columns[1], weight=columns[2] if len(columns) == 3 else 1.0)
    return graph


def kept_graph(given: Any) -> str | None:
    """The spec of a graph: as it is, or of a `Graph` or a networkx graph, kept in a file.

    The file is in the user's cache under the graph's digest, so that a record can name it.
    """
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, nx.Graph):
        given = from_networkx(given)
    if not isinstance(given, Graph):
        raise MaskwalkError(
            f"graph is a spec in quotes, a Graph or a networkx graph, not {shown(given)}."
        )
    path = cache_directory() / "graphs" / f"{given.digest[:16]}.graphml"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = "\n".join(nx.generate_graphml(given.to_networkx(), named_key_ids=True))
        write_file(path, lines.encode())
    return str(Spec("file", (), {"path": str(path)}))


def from_networkx(graph: Any, called: str = "the graph") -> Graph:
    """A networkx graph as a `Graph`; edges without a weight count 1, repeats count once."""
    if not isinstance(graph, nx.Graph):
        raise MaskwalkError(f"This is no networkx graph: {shown(graph)}.")
    if graph.number_of_edges() == 0:
        raise MaskwalkError(f"{called} has no edges, so there is nothing to walk on.")
    names = sorted(map(str, graph.nodes), key=_label_key)
    number = {name: i for i, name in enumerate(names)}
    if len(names) < 2:
        raise MaskwalkError(f"{called} has one node; a walk needs at least two.")
    edges: dict[tuple[int, int], float] = {}
    for a, b, data in graph.edges(data=True):
        edge = (number[str(a)], number[str(b)])
        key = edge if graph.is_directed() else (min(edge), max(edge))
        weight = _weight(data.get("weight", 1.0), f"the edge {a} - {b} of {called}")
        if edges.setdefault(key, weight) != weight:
            raise MaskwalkError(
                f"{called} gives the edge {a} - {b} twice, with weights {edges[key]:g} and "
                f"{weight:g}; keep one of them."
            )
    pairs = np.array(list(edges), dtype=np.int64)
    result = assemble(
        len(names),
        pairs,
        np.array(list(edges.values()), dtype=np.float64),
        directed=bool(graph.is_directed()),
        community=_whole_numbers(graph, "community", number),
        levels=_whole_numbers(graph, "level", number),
        names=tuple(names),
    )
    _check_ways_out(result, called)
    return result


def _whole_numbers(
    graph: Any, key: str, number: dict[str, int]
) -> Int64[np.ndarray, " nodes"] | None:
    """An attribute of the nodes, where every one has it as a whole number."""
    values = {number[str(node)]: value for node, value in graph.nodes(data=key)}
    if not all(type(value) is int and 0 <= value < len(number) for value in values.values()):
        return None
    return np.array([values[i] for i in range(len(number))], dtype=np.int64)


def _label_key(name: str) -> tuple[int, int, str]:
    """Whole numbers first, in their own order; then the other labels, alphabetically."""
    return (0, int(name), name) if name.isascii() and name.isdigit() else (1, 0, name)


def _weight(value: object, where: str) -> float:
    try:
        weight = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        weight = math.nan
    if not (math.isfinite(weight) and weight > 0):
        raise MaskwalkError(
            f"The weight of {where} is {value!s}; a weight is a finite number above zero."
        )
    return weight


def _check_ways_out(graph: Graph, called: str) -> None:
    onward = graph.sources != graph.targets
    leaves = np.bincount(graph.sources[onward], minlength=graph.nodes)
    enters = np.bincount(graph.targets[onward], minlength=graph.nodes)
    for stuck, what, remedy in (
        ((leaves == 0) & (enters == 0), "isolated: no edge joins them to another node", "edge"),
        (leaves == 0, "sinks: arcs lead in, none leads on", "arc that leaves"),
    ):
        if stuck.any():
            some = ", ".join(graph.name(int(i)) for i in np.flatnonzero(stuck)[:5])
            raise MaskwalkError(
                f"{int(stuck.sum())} nodes of {called} are {what} ({some}). A walk could not go on "
                f"from there: remove them, or give each an {remedy}."
            )
