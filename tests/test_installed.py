"""What an installed package has: shipped experiments, records and documents by name; completion."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest

import maskwalk
from maskwalk import resources
from maskwalk.cli import complete
from maskwalk.cli.catalogue import all_tables
from maskwalk.decoding.presets import PRESETS

ROOT = Path(__file__).parent.parent


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_wheel_carries_what_names_are_looked_for_in() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    carried = build["targets"]["wheel"]["force-include"]
    assert {"zoo", "experiments", "docs", "README.md"} <= set(carried)
    records = {f"results/{p.parent.name}/{p.name}" for p in ROOT.glob("results/*/re*.jsonl.xz")}
    assert records <= set(carried) and all(carried[name] == f"maskwalk/{name}" for name in carried)


@pytest.mark.parametrize(
    "name",
    ["quickstart", "quickstart.toml", "experiments/quickstart.toml", "paper/table_endpoints"],
)
def test_shipped_experiments_by_name(elsewhere: Path, name: str) -> None:
    found = resources.at_hand(Path(name), "experiments", ".toml")
    assert found.is_file() and found.is_relative_to(ROOT / "experiments")
    (elsewhere / "quickstart").write_text("mine")  # what is there comes first
    assert resources.at_hand(Path("quickstart"), "experiments", ".toml") == Path("quickstart")


@pytest.mark.parametrize("name", ["nothing", "../quickstart", "/quickstart", "experiments", "."])
def test_nothing_else_is_found(elsewhere: Path, name: str) -> None:
    assert resources.at_hand(Path(name), "experiments", ".toml") == Path(name)


def test_commands_find_shipped_files_from_anywhere(cli: Any, elsewhere: Path) -> None:
    code, out, err = cli("compare", "--json")
    assert code == 0 and '"published_cells": 384' in out, err
    assert cli("compare", "results/paper", "--json")[1] == out
    assert maskwalk.read_records("results/quickstart").num_rows > 10
    code, _, err = cli("bench", "quickstat", "--out", "runs")
    assert code == 2 and "Did you mean 'quickstart'?" in " ".join(err.split())
    assert list(elsewhere.iterdir()) == []


def test_documents_are_read_and_listed(cli: Any, elsewhere: Path) -> None:
    code, out, _ = cli("docs")
    assert code == 0 and {line.split()[0] for line in out.splitlines()} == {
        "README",
        *(path.stem for path in (ROOT / "docs").glob("*.md")),
    }
    code, out, _ = cli("docs", "README")
    assert code == 0 and "maskwalk" in out
    assert cli("docs", "README", "--path")[1].strip() == str(ROOT / "README.md")
    code, _, err = cli("verify", "README.md", "docs/*.md")
    assert code == 2 and "in a checkout of its repository" in " ".join(err.split())
    code, out, _ = cli("docs", "docs/worlds.md")
    assert code == 0 and "Sudoku" in out and "<!--" not in out and "verify:" not in out
    code, out, _ = cli("docs", "worlds", "--path")
    assert code == 0 and Path(out.strip()) == ROOT / "docs" / "worlds.md"
    code, _, err = cli("docs", "wordls")
    assert code == 2 and "Did you mean 'worlds'?" in " ".join(err.split())


def test_completion_knows_what_the_tables_know() -> None:
    own = {name: set(table.own()) for name, table in all_tables().items()}
    for name, table in all_tables().items():
        assert set(complete.registered()[complete.TABLES[name]]) == set(table) - own[name], name
    assert set(complete.preset_names()) == set(PRESETS)
    models = ["zoo:st_er_deg7", "zoo:st_er_deg7_coarse", "zoo:st_er_p0"]
    assert complete.denoisers("zoo:st_er") == models
    assert complete.denoisers("or") == ["oracle"]
    assert complete.experiments("quick") == ["quickstart"]
    assert "results/paper" in complete.results("results/")


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("maskwalk sample --sampler guided", "guided_bisection"),
        ("maskwalk sample --world su", "sudoku"),
        ("maskwalk list den", "denoisers"),
        ("maskwalk bench quicks", "quickstart"),
    ],
)
def test_the_shell_is_offered_values(line: str, offers: str) -> None:
    program = "import sys; sys.argv = ['maskwalk']; from maskwalk.cli.main import main; main()"
    told = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **told, "_MASKWALK_COMPLETE": "complete_bash"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [offers], done.stderr


def test_an_installed_package_has_no_commit_of_the_checkout_around_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    commit = ["commit", "-q", "--allow-empty", "-m", "theirs"]
    subprocess.run(["git", "-C", str(tmp_path), *who, *commit], check=True)
    inside = tmp_path / ".venv" / "lib" / "site-packages" / "maskwalk"
    inside.mkdir(parents=True)
    monkeypatch.setattr(resources, "PACKAGE", inside)
    assert resources.commit() is None
    source = tmp_path / "src" / "maskwalk"  # and of its own it has
    monkeypatch.setattr(resources, "PACKAGE", source)
    source.mkdir(parents=True)
    assert len(resources.commit() or "") == 40


def test_no_page_loses_words_in_a_narrow_terminal(
    cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables that fit are tables; of others every row is told, cell by cell."""
    monkeypatch.setenv("COLUMNS", "80")
    for page in ("samplers", "which_sampler", "worlds", "experiments", "first_ten_minutes"):
        code, out, _ = cli("docs", page)
        assert code == 0 and max(map(len, out.splitlines())) <= 80
        cut = re.findall(r"\S+…\S*", out)  # an ellipsis of rich; ours stand alone or end a list
        source = (ROOT / "docs" / f"{page}.md").read_text("utf-8").replace("`", "")
        assert all(word in source for word in cut), cut
    flat = " ".join(cli("docs", "samplers")[1].split())
    for words in ("dependence_bounded source: this project kind: factorised", "calls: adaptive"):
        assert words in flat
    assert "graph denoiser" in " ".join(cli("docs", "which_sampler")[1].split())


def test_a_wheel_knows_the_commit_it_was_made_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The hook adds a file to the wheel, and an installed package reads it."""
    face = types.ModuleType("hatchling.builders.hooks.plugin.interface")
    vars(face)["BuildHookInterface"] = object  # the hook's base; the build has it, the tests do not
    monkeypatch.setitem(sys.modules, face.__name__, face)
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))["CommitHook"]()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    commit = ["commit", "-q", "--allow-empty", "-m", "mine"]
    subprocess.run(["git", "-C", str(tmp_path), *who, *commit], check=True)
    added: dict[str, dict[str, str]] = {"force_include": {}}
    hook.root = str(tmp_path)
    hook.initialize("editable", added)
    assert added["force_include"] == {}
    hook.initialize("standard", added)
    ((file, place),) = added["force_include"].items()
    installed = tmp_path / "site-packages" / "maskwalk"
    installed.mkdir(parents=True)
    shutil.copy(file, installed.parent / place)
    head = subprocess.run(
        ["git", "-C", str(tmp_path), "rev-parse", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    monkeypatch.setattr(resources, "PACKAGE", installed)
    assert resources.commit() == head and len(head) == 40
    hook.root = str(installed)  # unpacked without its history, inside another checkout
    none: dict[str, dict[str, str]] = {"force_include": {}}
    hook.initialize("standard", none)
    assert none["force_include"] == {}


def test_list_tells_of_models(cli: Any) -> None:
    out = " ".join(cli("list", "denoisers")[1].split())
    assert "zoo:NAME" in out and "hf:NAME" in out
