"""A row of the tables of bad input, and how it is tried.

`{dir}` in an argument stands for a fresh directory that holds the row's `files`; it is also the
working directory. `says` is what the sentence must name: the file, the parameter, the remedy.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from maskwalk.cli import main as cli

TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True)
class Case:
    """One bad input: the arguments of `maskwalk`, the files it finds, what it has to say."""

    name: str
    argv: tuple[str, ...]
    says: str
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    code: int = 2
    process: bool = False  # as a real process, rather than in this one
    user_traceback: bool = False  # a user's own code raised: their frames are shown below

    def arguments(self, directory: Path) -> list[str]:
        """The arguments with the directory filled in."""
        return [part.replace("{dir}", str(directory)) for part in self.argv]

    def prepare(self, directory: Path) -> None:
        """Writes the files it finds."""
        for name, content in self.files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)


def refused(
    case: Case,
    directory: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The row is refused: its exit code, one sentence that names what is wrong, no traceback."""
    case.prepare(directory)
    if case.process:
        code, said = _process(case, directory)
    else:
        monkeypatch.chdir(directory)
        monkeypatch.setattr(sys, "argv", ["maskwalk", *case.arguments(directory)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        code, said = int(stopped.value.code or 0), capsys.readouterr().err
    plain = re.sub(r"\s+", " ", said)
    assert code == case.code, said
    assert case.says in plain, said
    assert case.user_traceback or TRACEBACK not in said, said


def _process(case: Case, directory: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "maskwalk", *case.arguments(directory)]
    environment = os.environ | {"COLUMNS": "200"}
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, timeout=120, check=False
    )
    return done.returncode, done.stderr.decode(errors="replace")
