"""Spec strings: Python's own grammar, read and never evaluated."""

import ast
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from maskwalk.errors import MaskwalkError, check_numbers, shown

HINT = "Write a spec as name(key=value, ...), for example st_er(nodes=500, p=0.01)."


@dataclass(frozen=True)
class Spec:
    """A parsed spec string: a name, positional values and keyword values."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        shown = [show(v) for v in self.args] + [f"{k}={show(v)}" for k, v in self.kwargs.items()]
        return f"{self.name}({', '.join(shown)})"


def show(value: Any) -> str:
    """A value as a spec writes it."""
    if isinstance(value, list):
        return f"[{', '.join(show(v) for v in value)}]"
    return str(value) if isinstance(value, Spec) else repr(value)


def parse(text: str) -> Spec:
    """Reads a spec string; anything but names, literals and nested specs is refused."""
    if not isinstance(text, str):
        raise MaskwalkError(f"A spec is a string, not {shown(text)}. {HINT}")
    return deepcopy(_parse(text))  # what a caller does to it stays theirs


@lru_cache(maxsize=4096)
def _parse(text: str) -> Spec:
    """Kept: the cells of an experiment name the same few specs again and again."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise MaskwalkError(f"Cannot read the spec {shown(text)}. {HINT}") from None
    value = _value(tree, text)
    if isinstance(value, Spec):
        return value
    raise MaskwalkError(f"The spec {shown(text)} names nothing. {HINT}")


def _value(tree: ast.expr, text: str) -> Any:
    if isinstance(tree, ast.Name):
        return Spec(tree.id)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        kwargs: dict[str, Any] = {}
        for keyword in tree.keywords:
            if keyword.arg is None or keyword.arg in kwargs:
                raise MaskwalkError(f"Cannot read the spec {shown(text)}. {HINT}")
            kwargs[keyword.arg] = _value(keyword.value, text)
        return Spec(tree.func.id, tuple(_value(a, text) for a in tree.args), kwargs)
    if isinstance(tree, ast.List) and any(isinstance(p, ast.Call | ast.Name) for p in tree.elts):
        return [_value(part, text) for part in tree.elts]
    try:
        value = ast.literal_eval(tree)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise MaskwalkError(
            f"The spec {shown(text)} contains code; only literals and nested specs are allowed."
        ) from None
    check_numbers(f"The spec {shown(text)}", value)
    return value
