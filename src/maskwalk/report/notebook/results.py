"""Several runs on the same prompts and random streams, and the paired differences between them."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa
from jaxtyping import Float64

from maskwalk.errors import MaskwalkError, unknown
from maskwalk.report.estimates import NONE
from maskwalk.report.notebook.result import COHERENCE, Result, labels
from maskwalk.report.notebook.shown import Shown, table
from maskwalk.resources import need
from maskwalk.stats import Difference, holm, paired_difference
from maskwalk.worlds.metrics import METRICS
from maskwalk.worlds.tasks import TASKS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = sys.float_info.min  # a p-value that is smaller than any number is said to be at most this
NOTE = (
    "± half of a 95 % interval. Differences of coherence are to the first run, paired by prompt, "
    "with a 95 % interval; p after Holm's correction."
)


SMALL = 1e-4  # below, a p-value is shown by this bound


@dataclass(frozen=True)
class Paired:
    """A run's coherence minus another's, prompt by prompt."""

    run: str
    against: str
    difference: Difference
    p: float  # after Holm's correction over the differences of one table; at least LEAST

    def __repr__(self) -> str:
        p = p_value(self.p) if self.p < SMALL else f"= {self.p:.2g}"
        return f"{self.run} − {self.against}: {interval(self.difference)}, p {p}"


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """What `maskwalk.run` gives for a list: its runs, in order, comparable prompt by prompt."""

    runs: tuple[Result, ...]

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.runs)

    @overload
    def __getitem__(self, which: int) -> Result: ...
    @overload
    def __getitem__(self, which: slice) -> "Results": ...
    @overload
    def __getitem__(self, which: str) -> Result: ...
    def __getitem__(self, which: int | slice | str) -> "Result | Results":
        """A run by its place, its label or its sampler's spec; a slice is comparable again."""
        if isinstance(which, slice):
            return Results(self.runs[which])
        if isinstance(which, int):
            return self.runs[which]
        from maskwalk.decoding.policy import SAMPLERS

        for label, run in zip(self.labels, self.runs):
            if which in (label, run.sampler):
                return run
        for run in self.runs:
            if SAMPLERS.canonical(which) == run.sampler:
                return run
        raise unknown("run", which, self.labels)

    @cached_property
    def labels(self) -> list[str]:
        """What tells the runs apart: the sampler, and denoiser or draw where they differ."""
        return labels(self.runs)

    @cached_property
    def differences(self) -> tuple[Paired, ...]:
        """Every other run's coherence minus the first one's; none where nobody can check."""
        first = coherent(self.runs[0])
        others = [coherent(run) for run in self.runs[1:]]
        if first is None or any(each is None for each in others):
            return ()
        found = [paired_difference(each - first) for each in others if each is not None]
        corrected = holm(np.array([difference.p for difference in found], dtype=np.float64))
        return tuple(
            Paired(label, self.labels[0], difference, max(float(p), LEAST))
            for label, difference, p in zip(self.labels[1:], found, corrected)
        )

    def difference(self, run: int | str, against: int | str = 0) -> Paired:
        """The coherence of one run minus that of another; p is of this one difference."""
        first, second = self[run], self[against]
        one, other = coherent(first), coherent(second)
        if one is None or other is None:
            raise MaskwalkError("Nobody can check a sequence of this world: there is no coherence.")
        found = paired_difference(one - other)
        return Paired(first.label, second.label, found, max(found.p, LEAST))

    def _rows(self, more: Sequence[str]) -> tuple[list[str], list[list[str]]]:
        head = ["", METRICS.cost.title]
        rows = [[label, repr(run.calls)] for label, run in zip(self.labels, self.runs)]
        if any(run.coherence is not None for run in self):
            head.append(COHERENCE)
            rows = [[*row, repr(run.coherence)] for row, run in zip(rows, self)]
        if self.differences:
            head += ["to the first", "p"]
            rows[0] += ["", ""]
            for row, paired in zip(rows[1:], self.differences):
                row += [interval(paired.difference), p_value(paired.p)]
        for key in more:
            if not any(key in run.metrics for run in self):
                raise unknown("metric of these runs", key, self.runs[0].metrics)
            head.append(METRICS.describe(key, self.runs[0].record.get("described")).title)
            numbers = [run.metrics.get(key) for run in self]
            rows = [[*row, NONE if n is None else repr(n)] for row, n in zip(rows, numbers)]
        return head, rows

    def table(self, *metrics: str) -> Shown:
        """Calls and coherence of every run, the paired difference to the first, and `metrics`."""
        head, rows = self._rows(metrics)
        return table(head, rows, left=(0,), note=NOTE)

    def to_arrow(self) -> pa.Table:
        """One row per run, one column per setting or number, and the paired differences."""
        rows = [run.row() for run in self]
        for row, paired in zip(rows[1:], self.differences):
            d = paired.difference
            row |= {"difference": d.value, "difference_low": d.low, "difference_high": d.high}
            row |= {"difference_p": paired.p}
        columns = dict.fromkeys(key for row in rows for key in row)
        return pa.table({key: [row.get(key) for row in rows] for key in columns})

    def to_pandas(self) -> Any:
        """The same as a DataFrame."""
        need("pandas", "notebook", "A DataFrame")
        return self.to_arrow().to_pandas()

    def plot(self) -> "Figure":
        """Coherence against calls, a point per run with its 95 % interval."""
        from maskwalk.report.notebook.plots import against_calls

        return against_calls(self)

    def __repr__(self) -> str:
        cell = self.runs[0].cell
        runs, task = f"{len(self)} run{'s' * (len(self) != 1)}", TASKS.short(cell.task)
        return f"<Results of {runs} · {task} · n = {cell.count * cell.per_prompt}>"

    def __str__(self) -> str:
        return self.table().text

    def _repr_html_(self) -> str:
        return self.table().html


def coherent(run: Result) -> Float64[np.ndarray, " prompts"] | None:
    """The share of a prompt's sequences that are possible, prompt by prompt."""
    if run.coherence is None:
        return None
    valid = run.world.valid(run.tokens)
    assert valid is not None
    whole_ones = valid.all(1).numpy().astype(np.float64)
    return np.asarray(whole_ones.reshape(run.cell.count, run.cell.per_prompt).mean(1))


def interval(d: Difference) -> str:
    """ "+0.12 [+0.05, +0.19]"."""
    return f"{d.value:+.3f} [{d.low:+.3f}, {d.high:+.3f}]"


def p_value(p: float) -> str:
    """Two digits, or a bound."""
    return f"{p:.2g}" if p >= SMALL else "< .0001"
