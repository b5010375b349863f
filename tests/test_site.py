"""The site has every document once, and its docstrings become text that Sphinx reads as meant."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

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


def test_the_api_has_every_public_name_once(conf: ModuleType) -> None:
    listed = [name for names in conf.API.values() for name in names]
    assert sorted(listed) == sorted(name for names in maskwalk.PUBLIC.values() for name in names)
    source = [""]
    conf.add(None, "api", source)
    assert all(source[0].count(f":: maskwalk.{name}\n") == 1 for name in listed)
    assert "autoclass:: maskwalk.Decoded" in source[0]
    assert "autofunction:: maskwalk.decode" in source[0]
    assert "autodata:: maskwalk.SAMPLERS" in source[0]


def test_markdown_beside_the_documents_is_a_download_and_a_page_opens(conf: ModuleType) -> None:
    pairs = {
        "[A table](../benchmarks/RESULTS.md)": "{download}`A table <../benchmarks/RESULTS.md>`",
        "[a part](../notes/MORE.md#part-2)": "{download}`a part <../notes/MORE.md>`",
        "[worlds](worlds.md#the-run)": "[worlds](worlds.md#the-run)",
        "[a walk](../results/play/walk.html#round=2)": '<a class="reference external" '
        'href="results/play/walk.html#round=2">a walk</a>',
    }
    source = [", ".join(pairs)]
    conf.add(None, "scale", source)
    assert source == [", ".join(pairs.values())]


def test_a_picture_of_the_player_is_light_or_dark_and_leads_to_its_page(conf: ModuleType) -> None:
    source = [(DOCS / "index.md").read_text("utf-8")]
    conf.add(None, "index", source)
    for ending, theme in (("", "light"), ("_dark", "dark")):
        assert f"```{{image}} figures/player{ending}.png\n:class: only-{theme}" in source[0]
        for stem in ("player", "player_phone"):
            assert (DOCS / "figures" / f"{stem}{ending}.png").stat().st_size < 100_000
    assert source[0].count(":target: results/play/walk.html") == 2


def test_a_notebook_is_its_cells_and_their_outputs(conf: ModuleType) -> None:
    outputs = [
        {"output_type": "stream", "text": ["one\n", "two\n"]},
        {"output_type": "execute_result", "data": {"text/plain": ["3"]}},
        {"output_type": "display_data", "data": {"image/png": "AB\nCD\n", "text/plain": ["<F>"]}},
        {
            "output_type": "execute_result",
            "data": {"text/html": ["<b>\n\n4</b>"], "text/plain": "4"},
        },
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "Words.\n"]},
        {"cell_type": "code", "source": ["f(\n", "    2)"], "outputs": outputs},
    ]
    page = conf.notebook({"cells": cells})
    assert "Title" not in page and page.startswith("\n\nWords.")
    assert "````python\nf(\n    2)\n````" in page
    assert "``````text\none\ntwo\n``````" in page and "``````text\n3\n``````" in page
    assert 'src="data:image/png;base64,ABCD"' in page and "<F>" not in page
    assert "{raw} html" in page and "<b>\n4</b>" in page


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from nothing: a broken link, a docstring or a page nothing leads to is an error."""
    for module in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(module)
    made = tmp_path_factory.mktemp("site")
    words = ["-q", "-W", "--keep-going", "-b", "html", "-d", str(made / "trees")]
    command = [sys.executable, "-m", "sphinx", *words, str(DOCS), str(made / "html")]
    built = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert built.returncode == 0, built.stderr[-4000:]
    return made / "html"


def test_the_site_has_every_page_and_what_they_link_to(site: Path) -> None:
    pages = {path.stem: path.read_text("utf-8") for path in site.glob("*.html")}
    assert {path.stem for path in DOCS.glob("*.md")} <= set(pages)
    linked = {
        path for page in pages.values() for path in re.findall(r'href="(results/[^"#]+)', page)
    }
    assert "results/play/walk.html" in linked
    assert [path for path in linked if not (site / path).exists()] == []
    assert not any(re.search(r'download="[^"]*"[^>]*href="[^"]*\.html"', p) for p in pages.values())
    assert 'id="maskwalk.decode"' in pages["api"] and "0.1.0" in pages["changelog"]
    assert "by_parts" in pages["notebook_your_sampler"]


def test_commands_are_blocks_and_no_prose(site: Path) -> None:
    """An indented block right behind a list belongs to its last item, dashes and all."""
    for path in site.glob("*.html"):
        article = path.read_text("utf-8").partition("<article")[2].partition("</article>")[0]
        prose = re.sub(r"<[^>]+>", " ", re.sub(r"<(code|pre)\b.*?</\1>", "", article, flags=re.S))
        assert re.findall(r"\s–[a-z]\w+", prose) == [], path.name


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


def test_a_block_wider_than_the_column_has_its_comments_above(conf: ModuleType) -> None:
    short = "maskwalk zoo   # the models\nmaskwalk list"
    assert conf.comments_above(short) == short
    wide = f"maskwalk list {'x' * 90}   # everything\nmaskwalk zoo '#1'  # the models\n  more"
    assert conf.comments_above(wide) == (
        f"# everything\nmaskwalk list {'x' * 90}\n# the models\nmaskwalk zoo '#1'\n  more"
    )


CUT = """() => [...document.querySelectorAll("article pre, article .table-wrapper")]
    .filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.innerText)"""
AROUND = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("page", ["index", "tour", "which_sampler", "your_model"])
def test_no_block_is_wider_than_its_box(site: Path, chromium: Any, page: str) -> None:
    tab = chromium.new_page(viewport={"width": 1400, "height": 900})
    tab.goto((site / f"{page}.html").as_uri())
    assert tab.locator("article pre").count() > 0
    assert tab.evaluate(CUT) == []
    assert tab.evaluate(AROUND) <= 0
    tab.set_viewport_size({"width": 390, "height": 900})
    assert tab.evaluate(AROUND) <= 0
    tab.close()
