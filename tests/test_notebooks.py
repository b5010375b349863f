"""The notebooks run from the first cell to the last, and every cell's value can be shown."""

import ast
import contextlib
import io
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import maskwalk
from maskwalk.specs.registry import TABLES

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The cache is empty, and what a notebook registers is forgotten."""
    monkeypatch.setenv("MASKWALK_CACHE", str(tmp_path))
    before = [(table, dict(table._members)) for table in TABLES]
    yield
    for table, members in before:
        table._members.clear()
        table._members.update(members)


def cells(name: str) -> list[dict[str, Any]]:
    return list(json.loads((FOLDER / name).read_text("utf-8"))["cells"])


def execute(name: str) -> tuple[dict[str, Any], list[Any], str]:
    """The names of a notebook, the values that its code cells end in, and what it prints."""
    module = types.ModuleType(f"notebook_{Path(name).stem}")
    sys.modules[module.__name__] = module  # where classes of the notebook say they come from
    values, printed = [], io.StringIO()
    for number, cell in enumerate(cells(name)):
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, f"{name}[{number}]", "exec"), vars(module))
            if last is not None:
                value = ast.Expression(last.value)
                values.append(eval(compile(value, f"{name}[{number}]", "eval"), vars(module)))
    del sys.modules[module.__name__]
    return vars(module), values, printed.getvalue()


def shown(value: Any) -> str | bytes:
    """What a notebook shows of a value: the richest form it has."""
    for form in ("_repr_html_", "_repr_png_"):
        text = getattr(value, form, lambda: None)()
        if text is not None:
            return text
    return repr(value)


def test_which_sampler() -> None:
    names, values, _ = execute("which_sampler.ipynb")
    assert len(values) == 10
    assert all(len(shown(value)) > 40 for value in values)
    assert names["on_tree"][0].coherence == names["on_dense"][0].coherence == 1.0
    assert names["on_dense"]["entropy(block=2)"].coherence < 0.95
    # As its text says: from both ends inwards, broken in the middle; on grids not exact.
    one = names["one"]
    rounds = one.trace.reveal_rounds().double().mean(0)
    assert bool((rounds[:7].diff() > 0).all()) and bool((rounds[9:].diff() < 0).all())
    assert int((~one.world.valid(one.tokens)).sum(0).argmax()) == 8
    assert names["grids"][0].coherence < 0.8 < names["grids"][1].coherence == 1.0


def test_your_sampler() -> None:
    names, values, printed = execute("your_sampler.ipynb")
    assert all(len(shown(value)) > 40 for value in values if value is not None)
    assert isinstance(names["verdict"], maskwalk.Evaluation) and names["verdict"].comparisons
    assert "Contract: kept" in printed and "tree · endpoints · oracle" in printed
    assert names["runs"][0].sampler == "by_halves(bound=0.1)"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_outputs_are_stripped_and_names_are_public(name: str) -> None:
    for cell in cells(name):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
            for node in ast.walk(ast.parse("".join(cell["source"]))):
                if isinstance(node, ast.ImportFrom) and str(node.module).startswith("maskwalk"):
                    assert {alias.name for alias in node.names} <= set(maskwalk.__all__)


def test_there_are_two() -> None:
    assert NOTEBOOKS == ["which_sampler.ipynb", "your_sampler.ipynb"]
