"""The house in order: what a clone holds, and what the documents say of it."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import maskwalk

ROOT = Path(__file__).parent.parent


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name]


def test_the_tracked_tree_stays_small() -> None:
    """Over 60 MiB it no longer travels to the GPU machine."""
    total = sum(path.stat().st_size for path in tracked() if path.is_file())
    assert total < 60 * 2**20


def test_weights_live_in_the_zoo_and_stay_under_nine_megabytes() -> None:
    for path in tracked():
        if path.suffix in (".safetensors", ".xz", ".pt", ".bin", ".ckpt"):
            records = path.name.endswith(".jsonl.xz")
            assert path.relative_to(ROOT).parts[0] == ("results" if records else "zoo"), path
            assert path.stat().st_size < 9_000_000, path


def test_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == maskwalk.__version__
    assert f"version: {maskwalk.__version__}" in (ROOT / "CITATION.cff").read_text()


def test_the_paper_is_cited_alike() -> None:
    """As the Citation File Format 1.2 has it, and as BibTeX: number, address, year, title."""
    cited = pytest.importorskip("yaml").safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    paper, page = cited["references"][0], (ROOT / "docs" / "cite.md").read_text("utf-8")
    (identifier,) = paper["identifiers"]
    assert identifier["type"] == "other" and identifier["value"] == "arXiv:2606.22976"
    assert paper["url"] == "https://arxiv.org/abs/2606.22976" and paper["year"] == 2026
    for words in ("arXiv 2606.22976", "arXiv:2606.22976", paper["url"], "year    = {2026}"):
        assert words in page
    authors = [f"{one['family-names']}, {one['given-names']}" for one in paper["authors"]]
    assert paper["title"] in page and " and ".join(authors) in page and cited["title"] in page
    assert f"[{maskwalk.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_readme_names_both_commands_and_only_files_that_exist() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make quickstart" in readme and "make test" in readme
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readmes_tree_tells_of_every_module() -> None:
    readme = (ROOT / "README.md").read_text()
    for path in sorted((ROOT / "src" / "maskwalk").iterdir()):
        if path.name in ("__pycache__", "__init__.py", "__main__.py", "py.typed"):
            continue
        assert path.name in readme, f"{path.name} is missing from the tree in the README"
