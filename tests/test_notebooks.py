"""The notebooks run from the first cell to the last, and every cell's value can be shown."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import maskwalk
from maskwalk.specs.registry import TABLES
from tests.run_notebooks import FOLDER, NOTEBOOKS, execute, notebook

PATH = re.compile(r"(?<![\w.<:/])/(?:[\w.+-]+/)+[\w.+-]*|[A-Z]:\\\\|0x[0-9a-f]{6}")
MOST = 400_000  # bytes of both


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The cache is empty, and what a notebook registers is forgotten."""
    monkeypatch.setenv("MASKWALK_CACHE", str(tmp_path))
    before = [(table, dict(table._members)) for table in TABLES]
    yield
    for table, members in before:
        table._members.clear()
        table._members.update(members)


def executed(name: str) -> tuple[dict[str, Any], list[Any], str]:
    """The names of a notebook, the values that its code cells end in, and what it prints."""
    names, results = execute(name)
    return names, [v for _, v in results if v is not None], "".join(text for text, _ in results)


def shown(value: Any) -> str | bytes:
    """What a notebook shows of a value: the richest form it has."""
    for form in ("_repr_html_", "_repr_png_"):
        text = getattr(value, form, lambda: None)()
        if text is not None:
            return text
    return repr(value)


def test_which_sampler() -> None:
    names, values, _ = executed("which_sampler.ipynb")
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
    names, values, printed = executed("your_sampler.ipynb")
    assert all(len(shown(value)) > 40 for value in values)
    assert isinstance(names["verdict"], maskwalk.Evaluation) and names["verdict"].comparisons
    assert "Contract: kept" in printed and "tree · endpoints · oracle" in printed
    assert names["runs"][0].sampler == "by_parts(parts=3, bound=0.1)"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_committed_outputs_are_there_without_errors_and_paths(name: str) -> None:
    """`python -m tests.run_notebooks` writes them anew."""
    code = [cell for cell in notebook(name)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        for output in cell["outputs"]:
            assert output["output_type"] in ("stream", "execute_result"), output  # no error
            texts = dict(output.get("data", {"text": output.get("text")}))
            texts.pop("image/png", None)
            for text in texts.values():
                assert PATH.search("".join(text)) is None, "".join(text)
        shows = isinstance(ast.parse("".join(cell["source"])).body[-1], ast.Expr)
        assert bool(cell["outputs"]) == shows
    pictures = [o for cell in code for o in cell["outputs"] if "image/png" in o.get("data", {})]
    assert pictures


def test_outputs_are_small() -> None:
    assert sum((FOLDER / name).stat().st_size for name in NOTEBOOKS) < MOST


def test_a_path_would_be_found() -> None:
    for text in (
        "file(path='/home/x/graphs/1.graphml')",
        "<Thing object at 0x7f12ab34cd>",
        "/tmp/a",
    ):
        assert PATH.search(text), text
    for text in ("</td><td>", "p < .0001", "1/2", "a/b/c"):
        assert PATH.search(text) is None, text


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_names_are_public(name: str) -> None:
    for cell in notebook(name)["cells"]:
        if cell["cell_type"] == "code":
            for node in ast.walk(ast.parse("".join(cell["source"]))):
                if isinstance(node, ast.ImportFrom) and str(node.module).startswith("maskwalk"):
                    assert {alias.name for alias in node.names} <= set(maskwalk.__all__)


def test_there_are_two() -> None:
    assert NOTEBOOKS == ["which_sampler.ipynb", "your_sampler.ipynb"]
