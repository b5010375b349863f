"""What a result depends on beside the package: the user's own files, each by its content.

A spec may name a member that a user's file or plug-in registered, or a file to read, such as the
graph of `file(path=…)`. Where that content changes, the result does: it belongs into its key. A
member counts wherever its name stands in a spec, also as a word inside quotes; that is never too
little, and at worst runs something again.
"""

import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from maskwalk.errors import MaskwalkError
from maskwalk.specs.grammar import Spec, parse
from maskwalk.specs.plugins import DIGEST
from maskwalk.specs.registry import TABLES

PACKAGE = "maskwalk"
WORD = re.compile(r"[^\W\d]\w*")
ELSEWHERE = ("site-packages", "dist-packages")


def sources(*specs: str) -> dict[str, str]:
    """The user's files that these specs depend on: name -> hash; none for what is shipped."""
    words = {word for spec in specs for word in WORD.findall(spec)}
    pairs: list[tuple[str, str]] = []
    for table in TABLES:
        for name, maker in table.own().items():
            pairs += _code(maker) if name in words else ()
    if any(words & table.readers for table in TABLES):
        pairs += [_file(path) for spec in specs for path in _paths(spec)]
    return _by_name(pairs)


def versions(*specs: str) -> tuple[str, ...]:
    """The hashes alone, as a part of a key."""
    return tuple(sorted(sources(*specs).values()))


def code_of(maker: Callable[..., Any]) -> dict[str, str]:
    """The user's files that define a class or function; none for what is shipped."""
    return _by_name(_code(maker)) if not _shipped(str(maker.__module__)) else {}


def named_files(text: str) -> list[str]:
    """The paths that a spec names for its members to read; none where it is no spec."""
    return list(_paths(text))


def files_beside(file: Path) -> list[Path]:
    """A user's file that was run (plugins.py), and the modules from its folder that are loaded."""
    near = [m for m in list(sys.modules.values()) if _within(m, file.parent)]
    paths = (Path(str(module.__file__)).resolve() for module in near)
    return sorted({file, *(path for path in paths if path.is_file())})


def _by_name(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """A hash for every file name; files of one name in two places are one entry."""
    hashes: dict[str, set[str]] = {}
    for name, digest in pairs:
        hashes.setdefault(name, set()).add(digest)
    return {
        name: next(iter(every)) if len(every) == 1 else _sha("".join(sorted(every)).encode())
        for name, every in sorted(hashes.items())
    }


def _paths(text: str) -> Iterator[str]:
    """The files named anywhere in a spec."""
    try:
        specs = [parse(text)]
    except MaskwalkError:  # a directory, or a denoiser's name
        return
    while specs:
        spec = specs.pop()
        values = (*spec.args, *spec.kwargs.values())
        parts = [
            part for value in values for part in (value if isinstance(value, list) else [value])
        ]
        specs += [part for part in parts if isinstance(part, Spec)]
        for table in TABLES:
            yield from table.paths(spec)


def _file(path: str) -> tuple[str, str]:
    file = Path(path)
    if not file.is_file():  # building it will say so
        return file.name, ""
    about = file.stat()
    return file.name, _digest(file, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=64)
def _digest(file: Path, changed: int, size: int) -> str:
    return _sha(file.read_bytes())


def _code(maker: Callable[..., Any]) -> list[tuple[str, str]]:
    """The file of a maker's module and those beside it that it imports."""
    module = sys.modules.get(maker.__module__)
    if module is None or getattr(module, "__file__", None) is None:
        return [(getattr(maker, "__qualname__", "code"), _typed(maker))]
    return [(Path(str(m.__file__)).name, _loaded(m)) for m in _beside(module)]


def _typed(maker: Callable[..., Any]) -> str:
    """Of code in a notebook: its text, where Python knows it."""
    try:
        return _sha(inspect.getsource(maker).encode())
    except (OSError, TypeError):
        return ""


def _beside(module: ModuleType) -> list[ModuleType]:
    """The module and all that it uses from its own folder or package."""
    top = sys.modules.get(module.__name__.split(".")[0], module)
    start = top if getattr(top, "__file__", None) and hasattr(top, "__path__") else module
    root = Path(str(start.__file__)).resolve().parent
    every, todo = {module.__name__: module}, [module]
    while todo:
        for other in _used(todo.pop()):
            if other.__name__ not in every and _within(other, root):
                every[other.__name__] = other
                todo.append(other)
    return list(every.values())


def _used(module: ModuleType) -> Iterator[ModuleType]:
    """The modules that a module's names come from."""
    for value in list(vars(module).values()):
        name = getattr(value, "__module__", None)
        other = value if isinstance(value, ModuleType) else sys.modules.get(str(name))
        if isinstance(other, ModuleType):
            yield other


def _within(module: object, root: Path) -> bool:
    """Whether a module (or what else stands in sys.modules) comes from below `root`."""
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or _shipped(str(getattr(module, "__name__", ""))):
        return False
    path = Path(file).resolve()
    if not path.is_relative_to(root):
        return False
    return not any(part in ELSEWHERE for part in path.relative_to(root).parts)


def _shipped(module: str) -> bool:
    return module == PACKAGE or module.startswith(f"{PACKAGE}.")


def _loaded(module: ModuleType) -> str:
    """The hash of a module's file, as it was when first asked for (or loaded, plugins.py)."""
    known: str | None = module.__dict__.get(DIGEST)
    if known is None:
        file = Path(str(module.__file__))
        known = module.__dict__[DIGEST] = _sha(file.read_bytes()) if file.is_file() else ""
    return known


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
