"""The public names: one list, and everything that speaks of them agrees with it."""

import ast
import re
from pathlib import Path

import pytest

import maskwalk

ROOT = Path(__file__).parent.parent
NAMES = [name for names in maskwalk.PUBLIC.values() for name in names]


def test_every_name_is_there_and_listed() -> None:
    assert len(NAMES) == len(set(NAMES))
    for name in NAMES:
        assert getattr(maskwalk, name) is not None
    assert set(NAMES) <= set(dir(maskwalk)) and set(NAMES) <= set(maskwalk.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        maskwalk.nothing  # noqa: B018


def test_type_checkers_see_the_same_names_from_the_same_modules() -> None:
    tree = ast.parse(Path(maskwalk.__file__).read_text())
    block = next(
        n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"
    )
    seen = {
        (node.module, alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    told = {
        (f"maskwalk.{module}", name) for module, names in maskwalk.PUBLIC.items() for name in names
    }
    assert seen == told


@pytest.mark.parametrize(
    "page", ["README.md", *sorted(p.name for p in (ROOT / "docs").glob("*.md"))]
)
def test_documents_import_public_names_only(page: str) -> None:
    path = ROOT / page if page == "README.md" else ROOT / "docs" / page
    for module, names in re.findall(r"^from (maskwalk[\w.]*) import (.*)$", path.read_text(), re.M):
        assert module == "maskwalk", f"{page} imports from {module}"
        assert {n.strip().split(" as ")[0] for n in names.split(",")} <= set(NAMES), page


def test_the_list_has_a_short_repr() -> None:
    assert repr(maskwalk.PUBLIC) == (
        f"<{len(NAMES)} public names from {len(maskwalk.PUBLIC)} modules; dir(maskwalk) lists them>"
    )


def test_both_forms_of_run_name_every_setting() -> None:
    """Editors and the API page show the overloads, not the function."""
    source = Path(maskwalk.__file__).parent / "report/notebook/runs.py"
    every = [
        [arg.arg for arg in node.args.kwonlyargs]
        for node in ast.parse(source.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == "run"
    ]
    assert len(every) == 3 and every[0] == every[1] == every[2]
    assert {"world", "task", "count", "seed"} <= set(every[0])
