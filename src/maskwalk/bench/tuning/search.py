"""Finds the knobs that spend a budget of calls, then tries every setting; all of it resumable.

A knob is found on a few sequences (a pilot): its calls at both ends, then half-way, a few times.
What counts is the setting with the most calls that keeps the budget.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maskwalk.bench.plan import Job
from maskwalk.bench.records import REMEDY, read_rows
from maskwalk.bench.run import Engine, Run, here
from maskwalk.bench.tuning.candidates import Knob, knobs, settings
from maskwalk.errors import MaskwalkError
from maskwalk.reading import anything, flag, maybe, number, table, text, whole

FILE = "tune.jsonl"
HALVINGS = 6
PILOT = 4  # sequences that say how many calls a knob spends
Row = dict[str, Any]
MEASURED = table(
    {
        "value": maybe(number()),
        "se": maybe(number(0)),
        "n": whole(0, 2**53),
        "bound": maybe(flag),
        "each": maybe(anything),
        "better": whole(-1, 1),
        "unit": text(),
    },
    needs=("value",),
)
ROW = table(
    {
        "key": text(least=1),
        "sampler": text(least=1),
        "model": text(),
        "kind": text(),
        "pilot": whole(0, 2**53),
        "calls": MEASURED,
        "likelihood": maybe(MEASURED),
        "quality": maybe(MEASURED),
    },
    needs=("key", "sampler", "calls", "pilot", "likelihood", "quality"),
)


def load_rows(path: Path) -> list[Row]:
    """The complete rows of a search; none where there is no file."""
    return list(read_rows(path, ROW, "a row of `maskwalk tune`", REMEDY)) if path.exists() else []


@dataclass
class Search:
    """The search on one model: `job` makes a job of a setting, with a pilot's size or 0."""

    job: Callable[[str, int], Job]
    masked: int  # positions to fill
    path: Path
    engine: Engine = field(default_factory=here)
    notes: list[str] = field(default_factory=list)

    def turning(self, budgets: Iterable[int]) -> Iterator[list[str]]:
        """What is tried, in `steps`: of each budget what needs no search, then knob by knob."""
        for calls in budgets:
            yield settings(self.masked, calls)
            for knob in knobs(self.masked):
                spec = self._turned(knob, calls)
                yield [] if spec is None else [spec]

    def steps(self, budgets: Sequence[int]) -> int:
        """How many steps `turning` takes."""
        return len(budgets) * (1 + len(knobs(self.masked)))

    def _turned(self, knob: Knob, calls: int) -> str | None:
        """The setting of a rule with the most calls that keeps the budget; None if none does."""
        few, many = (knob.low, knob.high) if knob.rising else (knob.high, knob.low)
        spent = {value: self._pilot(knob.spec(value)) for value in (few, many)}
        for _ in range(HALVINGS):
            if spent[few] > calls or spent[many] <= calls:
                break  # even the fewest are too many, or the most are not
            middle = knob.middle(*sorted((few, many)))
            if middle is None:
                break
            spent[middle] = self._pilot(knob.spec(middle))
            few, many = (middle, many) if spent[middle] <= calls else (few, middle)
        kept = [value for value in spent if spent[value] <= calls]
        return knob.spec(max(kept, key=lambda value: spent[value])) if kept else None

    def _pilot(self, spec: str) -> float:
        job = self.job(spec, PILOT)
        for _ in self._run([job]):
            pass
        return float(self._known()[job.key]["calls"]["value"])

    def _known(self) -> dict[str, Row]:
        return {row["key"]: row for row in load_rows(self.path)}

    def _run(self, jobs: list[Job]) -> Iterator[Any]:
        run = Run(jobs, self.path, self.engine, load_rows)
        yield from run
        self.notes += run.notes

    def trials(self, specs: Iterable[str]) -> list[Job]:
        """The jobs of some settings."""
        return [self.job(spec, 0) for spec in specs]

    def rows(self, jobs: Iterable[Job]) -> list[Row]:
        """What is known of them."""
        known = self._known()
        return [known[job.key] for job in jobs if job.key in known]


def check_budgets(calls: Iterable[int], masked: int) -> list[int]:
    """The budgets, largest first, each once."""
    budgets = sorted(set(calls), reverse=True)
    if not budgets or budgets[-1] < 1:
        raise MaskwalkError("--calls is the number of calls per sequence: at least 1.")
    return list(dict.fromkeys(min(budget, masked) for budget in budgets))
