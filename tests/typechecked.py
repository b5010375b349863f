"""Every function of the package checks its arguments and its answer, shapes of arrays included.

beartype checks the types, jaxtyping the shapes: within a call, one name is one size. jaxtyping's
own import hook does the same, but binds the arguments to the signature and checks them twice, which
makes a call several times as expensive. Off where beartype is not installed, where Triton's
interpreter has to read the source, and with MASKWALK_UNCHECKED=1.
"""

import ast
import dataclasses
import functools
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import FunctionType, ModuleType
from typing import Any

PACKAGE = "maskwalk"
OFF = ("TRITON_INTERPRET", "MASKWALK_UNCHECKED")
DECORATOR = "__checked__"  # the name under which a module finds `checked`


def install() -> None:
    """Has the package checked from its first import on (in a process that has not imported it)."""
    try:
        import beartype  # noqa: F401
    except ImportError:  # the GPU tests also run where nothing can be installed
        return
    if PACKAGE not in sys.modules and not any(os.environ.get(name) for name in OFF):
        sys.meta_path.insert(0, Finder())


def checked(function: Any) -> Any:
    """The function with checks around it; of a dataclass, the one that makes it."""
    from jaxtyping import config, jaxtyped

    if isinstance(function, type):
        if dataclasses.is_dataclass(function) and "__init__" in vars(function):
            function.__init__ = checked(function.__init__)
        return function
    if not function.__annotations__:
        return function
    inside: Any = None

    @functools.wraps(function)
    def wrapped(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        nonlocal inside
        if config.jaxtyping_disable:
            return function(*args, **options)
        if inside is None:  # at the first call, when all that annotations name is there
            inside = _checking(function)
        with jaxtyped("context"):
            return inside(*args, **options)

    return wrapped


def _checking(function: FunctionType) -> Any:
    """The function by beartype; what is imported for type checkers alone may be anything."""
    from beartype import BeartypeConf, beartype

    parts = (function.__code__, function.__globals__, function.__name__)
    copy = FunctionType(*parts, function.__defaults__, function.__closure__)
    copy.__kwdefaults__, copy.__module__ = function.__kwdefaults__, function.__module__
    copy.__qualname__ = function.__qualname__
    copy.__annotations__ = {k: _found(v, function) for k, v in function.__annotations__.items()}
    return beartype(conf=BeartypeConf(is_pep484_tower=True))(copy)  # an int is a float (PEP 484)


def _found(annotation: Any, function: FunctionType) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, function.__globals__)
    except Exception:
        return Any


class Finder(MetaPathFinder):
    """Finds the package's modules, for a loader that decorates their functions."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of the package; of others nothing."""
        if name != PACKAGE and not name.startswith(f"{PACKAGE}."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


class Loader(SourceFileLoader):
    """Reads a module's source and puts `checked` around its functions and dataclasses."""

    def get_code(self, fullname: str) -> Any:
        """Compiled anew: the bytecode on disk is that of the plain source."""
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                node.decorator_list.append(_decorator(node))  # next to the function
            elif isinstance(node, ast.ClassDef):
                node.decorator_list.insert(0, _decorator(node))  # around the others
        return compile(tree, path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        """With the decorator at hand."""
        vars(module)[DECORATOR] = checked
        super().exec_module(module)


def _decorator(node: ast.stmt) -> ast.expr:
    return ast.copy_location(ast.Name(DECORATOR, ast.Load()), node)
