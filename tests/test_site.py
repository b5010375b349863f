"""The site has every document once, and its docstrings become text that Sphinx reads as meant."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import maskwalk

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def conf() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_conf", DOCS / "conf.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_document_has_a_place(conf: ModuleType) -> None:
    placed = [page for pages in conf.PAGES.values() for page in pages]
    assert sorted([*placed, "index"]) == sorted(path.stem for path in DOCS.glob("*.md"))
    index = (DOCS / "index.md").read_text("utf-8")
    assert [page for page in placed if f"({page}.md)" not in index] == []


def test_the_api_has_every_public_name(conf: ModuleType) -> None:
    source = [""]
    conf.add(None, "api", source)
    for module, names in maskwalk.PUBLIC.items():
        for name in names:
            assert source[0].count(f":: maskwalk.{module}.{name}\n") == 1
    assert "autoclass:: maskwalk.decoding.decode.Decoded" in source[0]
    assert "autofunction:: maskwalk.decoding.decode.decode" in source[0]
    assert "autodata:: maskwalk.decoding.policy.SAMPLERS" in source[0]


def test_files_beside_the_documents_are_downloads(conf: ModuleType) -> None:
    source = ["See [the table](../benchmarks/RESULTS.md) and [worlds](worlds.md)."]
    conf.add(None, "scale", source)
    expected = "See {download}`the table <../benchmarks/RESULTS.md>` and [worlds](worlds.md)."
    assert source == [expected]


def test_docstrings_become_rst(conf: ModuleType) -> None:
    lines = ["The law ν of `x_0`, for n*k rows:", "", "    p = a | b", "    q = c", "", "and more."]
    conf.to_rst(None, "function", "f", None, None, lines)
    assert lines == [
        "The law ν of ``x_0``, for n\\*k rows:",
        "",
        "::",
        "",
        "    p = a | b",
        "    q = c",
        "",
        "and more.",
        "",
    ]
