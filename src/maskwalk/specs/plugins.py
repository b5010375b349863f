"""A user's own members: from a Python file, or from an installed package."""

import hashlib
import importlib.util
import sys
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from maskwalk.errors import STOPS, MaskwalkError, own_file, shown, told_of

PLUGINS = "maskwalk.plugins"  # the entry point group of installed packages
DIGEST = "__maskwalk_digest__"  # of a user's module: the hash of its file when it was loaded


def load_plugin(path: str) -> ModuleType:
    """Runs a user's own Python file, whose `register` decorators add to the tables."""
    file = Path(path)
    if file.suffix != ".py" or not file.exists():
        what = "does not end in .py" if file.suffix != ".py" else "does not exist"
        raise MaskwalkError(f"A Python file is needed here; {path!r} {what}.")
    if not file.is_file():
        raise MaskwalkError(f"A Python file is needed here; {path!r} is a directory.")
    where = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:8]
    name = f"maskwalk_include_{file.stem}_{where}"  # two files of one name are two modules
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__[DIGEST] = hashlib.sha256(file.read_bytes()).hexdigest()
    sys.modules[name] = module
    own_file(file, path)
    try:
        spec.loader.exec_module(module)
    except (MaskwalkError, *STOPS):
        raise
    except SyntaxError as problem:
        line = f" at line {problem.lineno}" if problem.lineno else ""
        raise MaskwalkError(f"{path} is not Python{line}: {problem.msg}.") from None
    except BaseException as problem:
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
        except STOPS:
            raise
        except BaseException as problem:
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
