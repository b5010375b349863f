"""The table of one kind of thing, and how a spec of it is checked, written out and built."""

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from maskwalk.errors import (
    MaskwalkError,
    check_made,
    check_numbers,
    misbehaved,
    own_source,
    shown,
    unknown,
    user_code,
)
from maskwalk.specs.grammar import Spec, parse, show

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
SHOWN = 4  # names in a repr


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
        self._files: dict[str, tuple[str, ...]] = {}
        self._canonicals: dict[str, str] = {}
        self._hidden: set[str] = set()
        TABLES.append(self)

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
        files: tuple[str, ...] = (),
        hidden: bool = False,
    ) -> Callable[[F], F]:
        """Decorator: adds a class or function under `name`, which nobody else may have taken.

        `parts` names parameters that are specs of other tables; the maker gets them as text.
        `several` names parameters that are lists of specs of this table; the maker gets the things.
        `files` names parameters that are paths: results depend on what these files hold.
        `hidden` leaves it out of lists: records name it, and nobody writes it.
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
            if files:
                self._files[name] = files
            for table in (self, *TABLES):  # a spec may name members of other tables
                table._canonicals.clear()
            if hidden:
                self._hidden.add(name)
            return maker

        return add

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._makers if name not in self._hidden)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __repr__(self) -> str:
        count, names = len(self), list(self)
        some = ", ".join([*names[:SHOWN], *["…"] * (count > SHOWN)])
        return f"<Registry of {count} {self.kind}{'s' * (count != 1)}: {some}>"

    def own(self) -> dict[str, Callable[..., T]]:
        """The members that do not come with the package."""
        every = self._members.items()
        return {n: m for n, m in every if not str(m.__module__).startswith("maskwalk.")}

    @property
    def readers(self) -> set[str]:
        """The members that read files."""
        return set(self._files)

    def paths(self, spec: Spec) -> list[str]:
        """The files that a canonical spec names for its member to read."""
        named = [spec.kwargs.get(key) for key in self._files.get(spec.name, ())]
        return [path for path in named if isinstance(path, str)]

    def __getitem__(self, name: str) -> Callable[..., T]:
        if name not in self._makers:
            raise unknown(self.kind, name, self)
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
            if own:
                _check_type(f"{key} of {self.kind} {spec.name!r}", value, known[key])
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
                    f"as [{next(iter(self))}(…), {next(iter(self))}(…)], not {show(value)}."
                )
        elif any(isinstance(member, Spec) for member in members):
            raise MaskwalkError(
                f"{key} of {self.kind} {name!r} takes no list of specs; {show(value)} is one."
            )

    def canonical(self, text: str) -> str:
        """The same spec with every parameter written out, in order: what records hold."""
        known = self._canonicals.get(text) if isinstance(text, str) else None
        if known is None:
            known = str(self._canonical(parse(text)))
            self._canonicals[text] = known
        return known

    def short(self, text: str) -> str:
        """The same spec with the defaults left out, for people: `endpoints`, `given(share=0.2)`."""
        spec, plain = parse(text), {p.name: p.default for p in self.parameters(parse(text).name)}
        kwargs = {k: v for k, v in spec.kwargs.items() if k not in plain or v != plain[k]}
        return str(Spec(spec.name, spec.args, kwargs)).removesuffix("()")

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


TABLES: list[Registry[Any]] = []  # every table there is


def _check_type(name: str, value: Any, parameter: inspect.Parameter) -> None:
    """Refuses what only counts as true, and what is no text where a text is wanted."""
    wanted = parameter.annotation
    if (wanted is bool or type(parameter.default) is bool) and type(value) is not bool:
        raise MaskwalkError(f"{name} must be True or False, not {show(value)}.")
    optional = wanted == str | None and value is None
    if wanted in (str, str | None) and not optional and not isinstance(value, str):
        raise MaskwalkError(f"{name} must be a text in quotes, not {show(value)}.")


@cache
def _signature(maker: Callable[..., Any]) -> inspect.Signature:
    """What a maker takes (kept: an experiment asks a hundred thousand times)."""
    return inspect.signature(maker)


def _identity(maker: Callable[..., Any]) -> tuple[str, str]:
    """Where a maker was defined: a file that is loaded again replaces its own members."""
    file = getattr(sys.modules.get(maker.__module__), "__file__", None)
    where = maker.__module__ if file is None else str(Path(file).resolve())
    return where, getattr(maker, "__qualname__", repr(maker))
