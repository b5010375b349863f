"""One run, as an object that shows itself: numbers, sequences, figures, the unmasking."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from jaxtyping import Int
from rich.console import Console
from torch import Tensor

from maskwalk.bench.cell import Cell
from maskwalk.bench.labels import samplers
from maskwalk.bench.records import Record, numbers
from maskwalk.decoding.decode import Decoded
from maskwalk.decoding.draw import decoding_of
from maskwalk.report.estimates import INTERVAL, estimate, with_interval
from maskwalk.report.notebook.shown import Shown, columns, html_table, table
from maskwalk.report.notebook.trace import RunTrace
from maskwalk.report.sequence import sample_summary
from maskwalk.report.words import sample_notes
from maskwalk.resources import need
from maskwalk.worlds.metrics import METRICS, Metric
from maskwalk.worlds.tasks import TASKS
from maskwalk.worlds.world import World

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COHERENCE = "coherence"
SEQUENCES = 4  # shown
SETTINGS = ("world", "task", "denoiser", "sampler", "mode", "count", "per_prompt", "seed")


def labels(runs: "Sequence[Result]") -> list[str]:
    """What tells runs apart: the sampler, the draw if it is not exact, the denoiser if several."""
    short = {sampler.spec: sampler.label for sampler in samplers([run.sampler for run in runs])}
    several = len({run.cell.denoiser for run in runs}) > 1
    return [
        " · ".join(
            [short[run.sampler]]
            + [run.cell.mode] * (run.cell.mode != "exact")
            + [run.cell.denoiser] * several
        )
        for run in runs
    ]


class Number(float):
    """A number that knows its error: `half` of its 95 % interval, `se`, and of how many (`n`)."""

    def __new__(cls, value: float, *_: Any) -> "Number":
        """A float of this value."""
        return super().__new__(cls, value)

    def __init__(self, value: float, half: float | None, se: float | None, n: int | None) -> None:
        self.half, self.se, self.n = half, se, n
        self.text = f"{value:g}"

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What `maskwalk.run` gives for one sampler; `record` is as `maskwalk bench` would write it."""

    cell: Cell
    record: Record
    decoded: Decoded
    world: World

    @property
    def sampler(self) -> str:
        """The sampler's spec."""
        return self.cell.sampler

    @property
    def decoding(self) -> str:
        """Sampler, draw and ties as options, to be pasted behind a command."""
        return decoding_of(self.cell.sampler, self.cell.draw, self.cell.ties)

    @property
    def coherence(self) -> Number | None:
        """The share of sequences that the world can produce; None where nobody can say."""
        return self.metrics.get(COHERENCE)

    @property
    def calls(self) -> Number:
        """Denoiser calls per sequence."""
        return self.metrics[METRICS.cost.key]

    @property
    def tokens(self) -> Int[Tensor, "batch length"]:
        """The decoded sequences."""
        return self.decoded.tokens

    @cached_property
    def described(self) -> list[Metric]:
        """The metrics that have a number, with what they say of themselves."""
        every = [METRICS.describe(key, self.record.get("described")) for key in self.cell.metrics]
        return [metric for metric in every if estimate(self.record, metric) is not None]

    @cached_property
    def metrics(self) -> dict[str, Number]:
        """Every number by its metric's name."""
        return {metric.key: self._number(metric) for metric in self.described}

    def _number(self, metric: Metric) -> Number:
        result = estimate(self.record, metric)
        assert result is not None
        number = Number(result.value, result.half, result.se, result.n)
        number.text = with_interval(metric, result)
        return number

    @cached_property
    def trace(self) -> RunTrace | None:
        """The unmasking of the first sequences; None where none was followed."""
        return RunTrace.of(self.decoded.trace, self.world) if self.decoded.trace else None

    @property
    def label(self) -> str:
        """The run in a few words: its sampler, and how tokens are drawn if not exactly."""
        return labels([self])[0]

    def table(self) -> Shown:
        """Every metric with half of its 95 % interval, and what it means."""
        rows = [(m.title, repr(self.metrics[m.key]), m.meaning) for m in self.described]
        return table(("", "value", ""), rows, left=(0, 2), note=INTERVAL)

    def to_arrow(self) -> pa.Table:
        """The settings and every number, a column each, as `read_records` has them."""
        return pa.Table.from_pylist([self.row()])

    def to_pandas(self) -> Any:
        """The same as a DataFrame of one row."""
        need("pandas", "notebook", "A DataFrame")
        return self.to_arrow().to_pandas()

    def row(self) -> dict[str, Any]:
        """The settings and every number there is, flat."""
        settings = {key: self.record.get(key) for key in (*SETTINGS, "seconds", "key")}
        settings["decoding"] = self.decoding
        measured = numbers(self.record).items()
        return settings | {key: value for key, value in measured if value is not None}

    def plot(self) -> "Figure":
        """Where sequences break, and when each position is revealed."""
        from maskwalk.report.notebook.plots import positions

        return positions(self)

    def shown_sequences(self, count: int = SEQUENCES) -> list[str]:
        """The first sequences, as the world shows them."""
        return [self.world.show(tokens) for tokens in self.tokens[:count]]

    def __repr__(self) -> str:
        quality = f"coherence {self.coherence!r}, " if self.coherence is not None else ""
        n = len(self.tokens)
        task = TASKS.short(self.cell.task)
        return f"<Result {self.label} · {task}: {quality}{self.calls!r} calls, n = {n}>"

    def __str__(self) -> str:
        console = Console(width=columns(), highlight=False, markup=False, emoji=False)
        with console.capture() as capture:
            console.print(sample_summary(self.record, self.shown_sequences()))
        return "\n".join(line.rstrip() for line in capture.get().rstrip().split("\n"))

    def _repr_html_(self) -> str:
        settings = [(key, str(self.record.get(key))) for key in SETTINGS]
        settings.append(("as options", self.decoding))
        notes = "".join(f"<p>Note: {escape(note)}</p>" for note in sample_notes(self.record))
        lines = escape("\n".join(self.shown_sequences()))
        parts = (
            html_table(("", ""), settings, left=(0, 1)),
            self.table().html,
            f"<p>The first sequences:</p><pre>{lines}</pre>",
            notes,
        )
        return f"<div>{''.join(parts)}</div>"
