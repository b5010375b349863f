"""Killed at random moments and started again: nothing lost, nothing twice, the same to the bit.

`make soak` does the same a thousand times.
"""

from pathlib import Path

import pytest

from tests.faults.commands import COMMANDS, NEEDS_TEXT
from tests.faults.kills import Killer, Tally
from tests.faults.server import Server
from tests.faults.soak import table
from tests.tiny_books import for_session

KILLS = {"bench": 3, "bench, 2 workers": 1, "train": 3, "evaluate": 1, "reproduce": 1, "text": 2}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_killed_command_comes_to_the_same_end(
    command: str, server: Server, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path
    if command in NEEDS_TEXT:
        pytest.importorskip("transformers")
        folder = for_session(tmp_path_factory).models.parent
    tally = Killer(command, folder, server).episode(0, KILLS[command], fresh=0)
    assert tally.clean and tally.kills == KILLS[command], tally


def test_a_new_interpreter_is_killed_too(server: Server, tmp_path: Path) -> None:
    killer = Killer("train", tmp_path, server, seed=1)
    killer._seconds[True] = 4.0  # about what it takes here
    tally = killer.episode(0, 1, fresh=1)
    assert tally.clean and tally.fresh == 1, tally


def test_the_killer_sees_what_is_wrong(server: Server, tmp_path: Path) -> None:
    """Its own check: records taken away, doubled and changed after a run are counted."""
    killer = Killer("bench", tmp_path, server)
    whole = killer.whole
    out = killer._out("whole")
    file = out / "records.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    assert len(lines) == 16
    start = Tally("bench", 0)
    assert killer._compare("whole", start, whole, 0).clean
    file.write_text("".join(lines[1:]))
    assert killer._compare("whole", start, whole, 0).lost == 1
    file.write_text("".join([*lines, lines[3]]))
    assert killer._compare("whole", start, whole, 0).twice == 1
    file.write_text("".join([lines[0].replace('"count": 16', '"count": 17'), *lines[1:]]))
    assert killer._compare("whole", start, whole, 0).different == 1
    found, seen = killer._look("whole", start, {"records.jsonl gone": "x"}, "Traceback (most …")
    assert found.lost == 1 and found.tracebacks == 1 and len(seen) == 16
    assert "| bench | 0 | 0 | 1 |" in table([found])
