"""Spec strings, `name(key=value, …)`, and the tables of things they can name.

A spec is read with Python's own grammar but never evaluated: literals, nested specs and
lists of them are the only values there are, so a spec string cannot run code. Every extensible kind
of thing in the project (world, graph, walk, task, sampler, draw, score, denoiser, metric) is one
`Registry`: one line adds a member, and `maskwalk list`, the contract test, the benchmark and the
report know it.

A user's members come from a file (`--include my_file.py`) or from an installed package that names
a module under the entry point group `maskwalk.plugins`.
"""

import ast
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from maskwalk.errors import (
    MaskwalkError,
    check_made,
    check_numbers,
    misbehaved,
    own_file,
    own_source,
    shown,
    told_of,
    unknown,
    user_code,
)

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
PLUGINS = "maskwalk.plugins"  # the entry point group of installed packages
HINT = "Write a spec as name(key=value, ...), for example st_er(nodes=500, p=0.01)."


@dataclass(frozen=True)
class Spec:
    """A parsed spec string: a name, positional values and keyword values."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        shown = [_show(v) for v in self.args] + [f"{k}={_show(v)}" for k, v in self.kwargs.items()]
        return f"{self.name}({', '.join(shown)})"


def _show(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_show(v) for v in value)}]"
    return str(value) if isinstance(value, Spec) else repr(value)


def parse(text: str) -> Spec:
    """Reads a spec string; anything but names, literals and nested specs is refused."""
    if not isinstance(text, str):
        raise MaskwalkError(f"A spec is a string, not {shown(text)}. {HINT}")
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


class Registry(Generic[T]):
    """The table of one kind of thing. Parameters named in `context` come from the caller.

    `home` is the module whose import fills the table, so that it is never found empty. `makes` is
    the class (or protocol) of what its members make: a user's that makes something else is named.
    """

    def __init__(
        self, kind: str, context: tuple[str, ...] = (), home: str | None = None, makes: Any = None
    ) -> None:
        self.kind, self.context, self._home, self._makes = kind, context, home, makes
        self._members: dict[str, Callable[..., T]] = {}
        self._parts: dict[str, dict[str, Registry[Any]]] = {}
        self._several: dict[str, tuple[str, ...]] = {}

    @property
    def _makers(self) -> dict[str, Callable[..., T]]:
        if self._home is not None and self._home not in sys.modules:
            import_module(self._home)
        return self._members

    def register(
        self,
        name: str,
        *,
        parts: "dict[str, Registry[Any]] | None" = None,
        several: tuple[str, ...] = (),
    ) -> Callable[[F], F]:
        """Decorator: adds a class or function under `name`, which nobody else may have taken.

        `parts` names parameters that are specs of other tables; the maker gets them as text.
        `several` names parameters that are lists of specs of this table; the maker gets the things.
        """

        def add(maker: F) -> F:
            owner = self._members.get(name)
            if owner is not None and _identity(owner) != _identity(maker):
                raise MaskwalkError(
                    f"There is a {self.kind} {name!r} already, from {owner.__module__}; "
                    "choose another name."
                )
            self._members[name] = maker
            self._parts[name] = parts or {}
            self._several[name] = several
            return maker

        return add

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __getitem__(self, name: str) -> Callable[..., T]:
        if name not in self._makers:
            raise unknown(self.kind, name, self._makers)
        return self._makers[name]

    def parameters(self, name: str) -> list[inspect.Parameter]:
        """The parameters a spec may set, in order."""
        signature = _signature(self[name])
        return [p for p in signature.parameters.values() if p.name not in self.context]

    def summary(self, name: str) -> str:
        """The first line of the member's docstring."""
        return (inspect.getdoc(self[name]) or "").split("\n")[0]

    def _bind(self, spec: Spec) -> dict[str, Any]:
        known = {p.name: p for p in self.parameters(spec.name)}
        if len(spec.args) > len(known):
            raise MaskwalkError(
                f"{self.kind} {spec.name!r} takes at most {len(known)} values "
                f"({', '.join(known) or 'none'}), not {len(spec.args)}."
            )
        values = dict(zip(known, spec.args))
        for key, value in spec.kwargs.items():
            if key not in known:
                raise unknown(f"parameter of {self.kind} {spec.name!r}:", key, known)
            if key in values:
                raise MaskwalkError(f"{key} is given twice in {spec}.")
            values[key] = value
        for key, parameter in known.items():
            if key not in values:
                if parameter.default is inspect.Parameter.empty:
                    raise MaskwalkError(f"{self.kind} {spec.name!r} needs {key}=….")
                values[key] = parameter.default
        for key, value in values.items():
            check_numbers(f"{key} of {self.kind} {spec.name!r}", value)
            default, own = known[key].default, key not in self._parts[spec.name]
            if own and isinstance(value, Spec) and type(default) in (int, float):
                raise MaskwalkError(
                    f"{key} of {self.kind} {spec.name!r} must be a number, not {value.name}."
                )
        for key, value in values.items():
            self._check_list(spec.name, key, value)
        for key, table in self._parts[spec.name].items():
            if not isinstance(values[key], str | Spec):
                example = next(iter(table), "name")
                raise MaskwalkError(
                    f"{key} of {self.kind} {spec.name!r} must be a {table.kind} as a spec, such as "
                    f"{example}(…), not {shown(values[key])}."
                )
        return {key: values[key] for key in known}

    def _check_list(self, name: str, key: str, value: Any) -> None:
        """Specs in a list where they are wanted, and nowhere else."""
        members = value if isinstance(value, list) else []
        if key in self._several[name]:
            if not members or not all(isinstance(member, Spec) for member in members):
                raise MaskwalkError(
                    f"{key} of {self.kind} {name!r} must be a list of {self.kind}s as specs, such "
                    f"as [{next(iter(self))}(…), {next(iter(self))}(…)], not {_show(value)}."
                )
        elif any(isinstance(member, Spec) for member in members):
            raise MaskwalkError(
                f"{key} of {self.kind} {name!r} takes no list of specs; {_show(value)} is one."
            )

    def canonical(self, text: str) -> str:
        """The same spec with every parameter written out, in order: what records hold."""
        return str(self._canonical(parse(text)))

    def _canonical(self, spec: Spec) -> Spec:
        values, parts = self._bind(spec), self._parts[spec.name]
        for name, default in self._later(spec.name):
            if values[name] == default:
                del values[name]
        for key, value in values.items():
            if key in parts:
                part = parse(value) if isinstance(value, str) else value
                values[key] = parts[key]._canonical(part)
            elif isinstance(value, Spec):
                values[key] = self._canonical(value)
            elif key in self._several[spec.name]:
                values[key] = [self._canonical(member) for member in value]
        return Spec(spec.name, (), values)

    def _later(self, name: str) -> list[tuple[str, Any]]:
        """Parameters (with their defaults) that a maker names in `added_later`.

        At its default such a one is left out of a canonical spec, so that old records keep theirs.
        """
        names = getattr(self[name], "added_later", ())
        return [(p.name, p.default) for p in self.parameters(name) if p.name in names]

    def build(self, spec: str | Spec, **context: Any) -> T:
        """The object a spec names; nested specs are built by the same table first."""
        spec = spec if isinstance(spec, Spec) else parse(spec)
        values, parts = self._bind(spec), self._parts[spec.name]
        for key, value in values.items():
            if isinstance(value, Spec):
                values[key] = str(value) if key in parts else self.build(value, **context)
            elif key in self._several[spec.name]:
                values[key] = [self.build(member, **context) for member in value]
        maker = self[spec.name]
        told = {k: v for k, v in context.items() if k in _signature(maker).parameters}
        if own_source(maker) is None:
            return maker(**told, **values)
        try:
            with user_code():
                made = maker(**told, **values)
        except TypeError as problem:  # not in their lines: an abstract class, a value that lacks
            raise misbehaved(maker, f"cannot be made: {problem}.") from None
        check_made(self.kind, self._makes, maker, made)
        return made


@cache
def _signature(maker: Callable[..., Any]) -> inspect.Signature:
    """What a maker takes (kept: an experiment asks a hundred thousand times)."""
    return inspect.signature(maker)


def _identity(maker: Callable[..., Any]) -> tuple[str, str]:
    """Where a maker was defined: a file that is loaded again replaces its own members."""
    file = getattr(sys.modules.get(maker.__module__), "__file__", None)
    where = maker.__module__ if file is None else str(Path(file).resolve())
    return where, getattr(maker, "__qualname__", repr(maker))


def load_plugin(path: str) -> ModuleType:
    """Runs a user's own Python file, whose `register` decorators add to the tables."""
    file = Path(path)
    if file.suffix != ".py" or not file.is_file():
        raise MaskwalkError(f"A Python file is needed here; {path!r} is not one.")
    where = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:8]
    name = f"maskwalk_include_{file.stem}_{where}"  # two files of one name are two modules
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    own_file(file, path)
    try:
        spec.loader.exec_module(module)
    except MaskwalkError:
        raise
    except SyntaxError as problem:
        line = f" at line {problem.lineno}" if problem.lineno else ""
        raise MaskwalkError(f"{path} is not Python{line}: {problem.msg}.") from None
    except (Exception, SystemExit) as problem:
        told = told_of(problem, "when it was read")
        raise told or MaskwalkError(f"{path} failed: {shown(problem)}.") from problem
    return module


@cache
def load_installed_plugins() -> tuple[str, ...]:
    """Imports what installed packages name under `maskwalk.plugins`; returns their names."""
    found = sorted(entry_points(group=PLUGINS), key=lambda point: point.name)
    for point in found:
        try:
            _own_package(point.module)
            point.load()
        except (Exception, SystemExit) as problem:
            told = told_of(problem)
            lines = "" if told is None else "\n" + "\n".join(str(told).split("\n")[1:])
            raise MaskwalkError(
                f"The plug-in {point.name} ({point.value}) failed: {type(problem).__name__}: "
                f"{problem}. Uninstall it, or mend it.{lines}"
            ) from problem
    return tuple(point.name for point in found)


def _own_package(module: str) -> None:
    """Frames of a plug-in's package, or of its single file, are a user's own."""
    package = importlib.util.find_spec(module.partition(".")[0])
    for folder in (package.submodule_search_locations or ()) if package is not None else ():
        own_file(folder)
    if package is not None and package.origin is not None and package.has_location:
        own_file(package.origin)
