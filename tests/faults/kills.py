"""Kills a command at random moments, lets it finish, compares with an undisturbed run."""

import random
import shutil
import time
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.faults.commands import NEEDS_TEXT, lines_of, make_models, results
from tests.faults.server import Server

KEPT = ("records.jsonl", "baselines-")  # files whose whole lines no kill may cost


@dataclass(frozen=True)
class Tally:
    """What came of a few kills of one command; all but `kills` and `seconds` must be 0."""

    command: str
    number: int  # of the episode
    kills: int = 0
    fresh: int = 0  # of them, in an interpreter of its own
    lost: int = 0  # lines or files that were there, or should be at the end, and are not
    twice: int = 0  # lines that stand there more than once
    different: int = 0  # from what an undisturbed run gives
    tracebacks: int = 0  # or a last run that did not end well
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.lost or self.twice or self.different or self.tracebacks)

    def as_json(self) -> dict[str, Any]:
        """For a file of them."""
        return asdict(self)


@dataclass
class Killer:
    """One command: its undisturbed run, and episodes of kills."""

    command: str
    folder: Path
    server: Server
    seed: int = 0
    _seconds: dict[bool, float] = field(default_factory=dict)

    @cached_property
    def whole(self) -> dict[str, str]:
        """What an undisturbed run leaves."""
        assert self.seconds(False) > 0
        return results(self._out("whole"))

    def seconds(self, fresh: bool) -> float:
        """How long an undisturbed run takes, as a fork or in a new interpreter."""
        if fresh not in self._seconds:
            if self.command in NEEDS_TEXT:
                make_models(self.folder)
            ended = self._run("whole", fresh=fresh)
            assert ended.code == 0, ended.said
            self._seconds[fresh] = ended.seconds
        return self._seconds[fresh]

    def _out(self, name: str) -> Path:
        return self.folder / f"{self.command.replace(', ', '-').replace(' ', '-')}-{name}" / "run"

    def _run(self, name: str, **more: Any) -> Any:
        if name == "whole":
            shutil.rmtree(self._out(name).parent, ignore_errors=True)
        return self.server(self.command, self._out(name), **more)

    def episode(self, number: int, kills: int, fresh: float = 0.1) -> Tally:
        """Kills the command so many times, each at a random moment, then lets it finish."""
        chance = random.Random(f"{self.seed} {self.command} {number}")
        whole, name = self.whole, str(number)
        shutil.rmtree(self._out(name).parent, ignore_errors=True)
        began, tally = time.monotonic(), Tally(self.command, number)
        seen: dict[str, str] = {}
        while tally.kills < kills:
            new = chance.random() < fresh
            ended = self._run(name, kill=chance.uniform(0, self.seconds(new)), fresh=new)
            tally, seen = self._look(name, tally, seen, ended.said)
            if ended.code == 0:  # it was quicker than the killer: nothing is left to kill
                shutil.rmtree(self._out(name).parent)
                seen = {}
                continue
            good = ended.code == -9
            tally = replace(
                tally,
                kills=tally.kills + 1,
                fresh=tally.fresh + new,
                tracebacks=tally.tracebacks + (not good),
            )
        ended = self._run(name)
        tally, _ = self._look(name, tally, seen, ended.said)
        tally = self._compare(name, tally, whole, ended.code)
        if tally.clean:
            shutil.rmtree(self._out(name).parent)
        return replace(tally, seconds=round(time.monotonic() - began, 2))

    def _look(
        self, name: str, tally: Tally, seen: dict[str, str], said: str
    ) -> tuple[Tally, dict[str, str]]:
        """What is on disk now: nothing that was there may be gone or changed."""
        now = dict(lines_of(self._out(name)))
        kept = {key: value for key, value in now.items() if key.startswith(KEPT)}
        lost = sum(kept.get(key) != value for key, value in seen.items())
        trouble = "Traceback" in said
        return replace(tally, lost=tally.lost + lost, tracebacks=tally.tracebacks + trouble), kept

    def _compare(self, name: str, tally: Tally, whole: dict[str, str], code: int) -> Tally:
        lines = [key for key, _ in lines_of(self._out(name))]
        found = results(self._out(name))
        other = sum(found[key] != value for key, value in whole.items() if key in found)
        return replace(
            tally,
            lost=tally.lost + len(whole.keys() - found.keys()),
            twice=tally.twice + len(lines) - len(set(lines)) + len(found.keys() - whole.keys()),
            different=tally.different + other,
            tracebacks=tally.tracebacks + (code != 0),
        )
