"""Bringing in samplers, graphs, laws or metrics from a user's own file (`--include my_file.py`)."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from maskwalk.errors import MaskwalkError


def include(path: str) -> ModuleType:
    """Runs a Python file, whose `register` decorators add to the tables; the module it makes."""
    file = Path(path)
    if file.suffix != ".py" or not file.is_file():
        raise MaskwalkError(f"A Python file is needed here; {path!r} is not one.")
    name = f"maskwalk_include_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as problem:
        raise MaskwalkError(f"{path} failed: {type(problem).__name__}: {problem}.") from problem
    return module
