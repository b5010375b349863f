"""Worlds and denoisers that were given as objects, under names that a record can hold.

A record names things by specs. An object whose spec nobody knows is named by its class and by a
hash of what it answers to a few questions: object(kind='Coins', answers='5f2c…'). The name stands
for it as long as it is there, in this Python process; elsewhere it is a sentence.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakValueDictionary

from torch import Tensor

from maskwalk.errors import MaskwalkError
from maskwalk.specs import Spec, parse
from maskwalk.specs.sources import code_of

OBJECT = "object"
DIGITS = 12  # of a hash, in a name
_weak: WeakValueDictionary[tuple[str, str], Any] = WeakValueDictionary()
_strong: dict[tuple[str, str], Any] = {}  # what cannot be referred to weakly


def digest(answers: Iterable[Any]) -> str:
    """A hash of answers: the content of tensors, the text of everything else."""
    total = hashlib.sha256()
    for answer in answers:
        total.update(str(getattr(answer, "dtype", "")).encode())
        plain = answer.detach().cpu().contiguous() if isinstance(answer, Tensor) else None
        total.update(repr(answer).encode() if plain is None else plain.numpy().tobytes())
    return total.hexdigest()[:DIGITS]


def name_object(thing: Any, answers: str) -> str:
    """The name of an object from now on; `answers` is the hash of what it answers."""
    kind = getattr(maker_of(thing), "__name__", "thing")
    try:
        _weak[kind, answers] = thing
    except TypeError:
        _strong[kind, answers] = thing
    return str(Spec(OBJECT, (), {"kind": kind, "answers": answers}))


def maker_of(thing: Any) -> Callable[..., Any]:
    """The function that a thing stands for, or its class."""
    maker: Callable[..., Any] = getattr(thing, "function", type(thing))
    return maker


def is_object(name: str) -> bool:
    """Whether a name is that of an object."""
    return name.startswith(f"{OBJECT}(")


def object_named(kind: str, answers: str) -> Any:
    """The object of that name, or a sentence if it is not here any more."""
    found = _weak.get((kind, answers), _strong.get((kind, answers)))
    if found is None:
        raise MaskwalkError(
            f"The {kind} with answers {answers!r} was an object in another Python process, or is "
            "gone: give the object again, or register what makes it (docs/extend.md) and give its "
            "name."
        )
    return found


def object_code(*names: str) -> dict[str, str]:
    """The user's files that the objects among these names come from: name -> hash."""
    files: dict[str, str] = {}
    for name in filter(is_object, names):
        files |= code_of(maker_of(object_named(**parse(name).kwargs)))
    return files


def object_notes(**names: str) -> list[str]:
    """What a record says of objects: world=…, denoiser=…."""
    return [
        f"the {what} was given as an object ({parse(name).kwargs['kind']}), so this record names "
        "its class and a hash of its answers; no command can make it again"
        for what, name in names.items()
        if is_object(name)
    ]
