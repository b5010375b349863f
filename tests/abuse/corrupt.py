"""Classes of corruption over real small files: what an editor, a cut download or a liar leaves."""

import copy
import json
from collections.abc import Iterator
from typing import Any

Keys = tuple[str | int, ...]
LONE = "\ud800"  # half of a character


def field(path: Keys) -> str:
    """A field as a sentence names it: metrics.coherence.value, rounds[0]."""
    words = ""
    for part in path:
        words += f"[{part}]" if isinstance(part, int) else f".{part}" if words else part
    return words


def changed(value: Any, path: Keys, new: Any) -> Any:
    """A copy with another value at a path."""
    other = copy.deepcopy(value)
    place = other
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = new
    return other


def without(value: Any, path: Keys) -> Any:
    """A copy without the field at a path."""
    other = copy.deepcopy(value)
    place = other
    for part in path[:-1]:
        place = place[part]
    del place[path[-1]]
    return other


def line(value: Any) -> str:
    """A value as a line of JSON; NaN and the infinities as Python writes them."""
    return json.dumps(value) + "\n"


def leaves(value: Any, path: Keys = ()) -> Iterator[Keys]:
    """Every path in a value, containers too; of a list only its first item."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list) and value:
        yield from leaves(value[0], (*path, 0))


BAD: dict[str, Any] = {
    "text": "many",
    "number": 7.5,
    "negative": -3,
    "flag": True,
    "null": None,
    "list": [1, [2]],
    "table": {"a": {"b": 1}},
    "nan": float("nan"),
    "infinity": float("-inf"),
    "huge": 10**400,
    "large": 1e308,
}
