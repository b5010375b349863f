"""`maskwalk new`: its files work as they stand, their tests can fail, nothing is overwritten."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from maskwalk.cli.new import KINDS, class_name
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.specs.registry import TABLES


@pytest.fixture(autouse=True)
def in_an_empty_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_skeleton_passes_its_own_test(cli, tmp_path: Path) -> None:
    code, out, err = cli("new", "sampler", "by_halves", "--out", "deep/er")
    assert code == 0, err
    assert "maskwalk evaluate deep/er/by_halves.py:ByHalves" in out
    home = tmp_path / "deep" / "er"
    assert 25 <= len((home / "by_halves.py").read_text().splitlines()) <= 40
    assert "<" not in (home / "by_halves.py").read_text().replace("<=", "")
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_by_halves.py"]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=home,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout + done.stderr
    code, out, _ = cli("list", "samplers", "--include", str(home / "by_halves.py"))
    assert code == 0 and "by_halves(bound=0.5)" in out
    del SAMPLERS._makers["by_halves"]


OTHERS = [kind for kind in KINDS if kind != "sampler"]
# In each file, a line that is wrong: another graph every time, nothing masked as said, …
WRONG = {
    "graph": ("seed=seed)", "seed=None)"),
    "task": ("% gap == 0", "% gap == 1"),
    "denoiser": ("+ self.blur / self.vocab_size", "+ self.blur"),
    "metric": (".double().mean(1)", ".double().sum(1)"),
    "world": ("1.0 - torch.eye", "torch.eye"),
}


@pytest.fixture
def tables_as_before() -> Iterator[None]:
    """What a test registers is forgotten after it."""
    before = [(table, dict(table._members)) for table in TABLES]
    yield
    for table, members in before:
        table._members.clear()
        table._members.update(members)


def failures(name: str) -> list[str]:
    """The tests of test_NAME.py that fail, run here: a process of their own costs ten seconds."""
    tests = {k: v for k, v in vars(import_module(f"test_{name}")).items() if k.startswith("test_")}
    failed = []
    for key, test in tests.items():
        try:
            test()
        except (AssertionError, MaskwalkError):
            failed.append(key)
    assert len(tests) > 1
    return failed


@pytest.mark.parametrize("kind", OTHERS)
def test_every_kind_passes_its_own_test_and_fails_it_when_wrong(
    cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables_as_before: None, kind: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    code, out, err = cli("new", kind, f"own_{kind}")
    assert code == 0 and f"own_{kind}.py" in out.partition("Next: maskwalk sample")[2], err
    assert failures(f"own_{kind}") == []
    assert cli("new", kind, f"bad_{kind}")[0] == 0
    file, (right, wrong) = tmp_path / f"bad_{kind}.py", WRONG[kind]
    assert right in file.read_text()
    file.write_text(file.read_text().replace(right, wrong))
    assert failures(f"bad_{kind}") != []


@pytest.mark.parametrize(
    ("kind", "name"), [("world", "walk"), ("graph", "st_er"), ("task", "given"), ("metric", "tv1")]
)
def test_a_name_that_is_taken_is_refused(cli, tmp_path: Path, kind: str, name: str) -> None:
    code, _, err = cli("new", kind, name)
    assert code == 2 and f"There is a {kind} {name} already" in " ".join(err.split())
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(cli, tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("precious")
    code, _, err = cli("new", "sampler", "mine")
    assert code == 2 and "there already" in " ".join(err.split())
    assert (tmp_path / "test_mine.py").read_text() == "precious"
    assert not (tmp_path / "mine.py").exists()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("My", "lower-case"),
        ("2d", "lower-case"),
        ("../x", "lower-case"),
        ("class", "lower-case"),
        ("entropy", "already"),
        ("torch", "hide the Python module"),
    ],
)
def test_names(cli, tmp_path: Path, name: str, says: str) -> None:
    code, _, err = cli("new", "sampler", name)
    assert code == 2 and says in " ".join(err.split()) and list(tmp_path.iterdir()) == []


def test_class_names() -> None:
    assert class_name("my_policy_2") == "MyPolicy2"


def test_list_shows_sources_and_indents_every_line(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = cli("list", "samplers")
    lines = out.splitlines()
    assert code == 0 and all(len(line) <= 80 for line in lines)
    assert all(line.startswith("  ") for line in lines[1:] if line)  # no continuation at the margin
    assert sum(line.strip().startswith("Source: ") for line in lines) == len(list(SAMPLERS))
    assert "Source: EB-Sampler [arXiv 2505.24857]" in out


def test_a_kind_that_is_none_names_the_six(cli) -> None:
    code, _, err = cli("new", "nope", "x")
    assert code == 2 and all(kind in err for kind in KINDS)


def test_who_has_no_pytest_is_told_how_to_get_it(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "Test: pytest test_one.py" in cli("new", "sampler", "one")[1]
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == "pytest" else find(n))
    assert "Test: pip install pytest, then pytest test_two.py" in cli("new", "sampler", "two")[1]
