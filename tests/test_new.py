"""`maskwalk new sampler`: what it writes works as it stands; what it must not do it does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from maskwalk.cli.new import class_name
from maskwalk.samplers import SAMPLERS


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
