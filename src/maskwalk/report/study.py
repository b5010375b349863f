"""Records arranged for reading: modes × panels × samplers, and the estimates in each cell.

A panel is a world (the experiment's title for it) and a task; a mode is a kind of denoiser and a
way of drawing tokens. What nobody decoded, such as held-out text, is the reference of its panel:
no sampler, but the mark that samplers are measured by. `arrange.py` makes a study of records.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from maskwalk import stats
from maskwalk.bench.kinds import Departures, departure_words, kind_of
from maskwalk.bench.labels import Family, Sampler
from maskwalk.bench.records import Record
from maskwalk.decoding.kinds import MARK, SHAPED
from maskwalk.report.estimates import Estimate, Published, estimate, published
from maskwalk.worlds.metrics import METRICS, QUALITY, Metric

REFERENCE = "held-out text"
Place = tuple[int, int, int]  # mode, panel, sampler


@dataclass(frozen=True)
class Panel:
    """A world and a task: one figure, one column of a table."""

    title: str
    task: str
    detail: str


@dataclass(frozen=True)
class Study:
    """All the records of a report, addressed by (mode, panel, sampler)."""

    modes: list[str]
    panels: list[Panel]
    samplers: list[Sampler]
    families: list[Family]
    cells: dict[Place, Record]
    references: dict[tuple[int, int], Record]  # by mode and panel
    causal: frozenset[int]  # the samplers that are a model of another kind: AR
    metrics: list[Metric]  # that some record holds
    superseded: int  # records replaced by a later one of the same cell
    law: list[Record] = field(default_factory=list)  # that only say how far others are from the law

    @property
    def cost(self) -> Metric:
        """What figures have on their x axis."""
        return METRICS.cost

    @property
    def unit(self) -> str:
        """The label of that axis."""
        return f"{self.cost.title} per sequence"

    @cached_property
    def quality(self) -> Metric | None:
        """What a sampler leads by: the first such metric that the records hold."""
        return next((m for m in self.metrics if m.role == QUALITY and m.better), None)

    @cached_property
    def drawn(self) -> list[Metric]:
        """The metrics with figures and tables of their own, the quality first."""
        metrics = [m for m in self.metrics if m.drawn and m.key != self.cost.key]
        return sorted(metrics, key=lambda m: m != self.quality)

    @property
    def single(self) -> bool:
        """Whether there is one panel: then the metrics are the figures and columns."""
        return len(self.panels) == 1

    @cached_property
    def records(self) -> list[Record]:
        """Every record, references first."""
        return list({id(r): r for r in (*self.references.values(), *self.cells.values())}.values())

    @cached_property
    def tried(self) -> list[int]:
        """The samplers that have records; rows of losses may bring others."""
        return sorted({s for _, _, s in self.cells})

    @cached_property
    def tasks(self) -> list[str]:
        """The task labels, in order of appearance."""
        return list(dict.fromkeys(panel.task for panel in self.panels))

    def of_task(self, task: str) -> list[int]:
        """The panels of one task."""
        return [i for i, panel in enumerate(self.panels) if panel.task == task]

    def record(self, mode: int, panel: int, sampler: int | None) -> Record | None:
        """The record of a cell; that of the reference where `sampler` is None."""
        if sampler is None:
            return self.references.get((mode, panel))
        return self.cells.get((mode, panel, sampler))

    def estimate(
        self, mode: int, panel: int, sampler: int | None, metric: Metric
    ) -> Estimate | None:
        """The estimate in a cell, or None where it was not run or does not apply."""
        record = self.record(mode, panel, sampler)
        return None if record is None else self.number(record, metric)

    def number(self, record: Record, metric: Metric) -> Estimate | None:
        """A metric of one of its records, read once."""
        key = (id(record), metric.key)
        known = self._numbers
        if key not in known:
            known[key] = estimate(record, metric)
        return known[key]

    @cached_property
    def _numbers(self) -> dict[tuple[int, str], Estimate | None]:
        return {}

    @cached_property
    def memory(self) -> dict[str, Any]:
        """What others have made of this study and may need again, by name."""
        return {}

    def has(self, metric: Metric, panel: int) -> bool:
        """Whether any mode and sampler has this metric in the panel."""
        return (metric.key, panel) in self._measured

    @cached_property
    def _measured(self) -> set[tuple[str, int]]:
        """The metrics that some cell of each panel has a number of."""
        measured: set[tuple[str, int]] = set()
        for (_, panel, _), record in self.cells.items():
            for metric in self.metrics:
                if (metric.key, panel) not in measured and self.number(record, metric):
                    measured.add((metric.key, panel))
        return measured

    def published(self, mode: int, panel: int, sampler: int) -> Published | None:
        """What a paper prints for this cell, where its record says so."""
        record = self.cells.get((mode, panel, sampler))
        return None if record is None else published(record, self.quality)

    @cached_property
    def kinds(self) -> dict[Place, str]:
        """Of which kind each cell is: exact, factorised or shaped."""
        return {place: kind_of(record) for place, record in self.cells.items()}

    @cached_property
    def _departures(self) -> Departures:
        return Departures([*self.records, *self.law])

    @cached_property
    def _shaped_in(self) -> dict[int, set[int]]:
        """For every sampler the modes in which some of its results are shaped."""
        modes: dict[int, set[int]] = {}
        for (mode, _, sampler), kind in self.kinds.items():
            if kind == SHAPED:
                modes.setdefault(sampler, set()).add(mode)
        return modes

    @cached_property
    def shaped_modes(self) -> set[int]:
        """The modes in which nothing else was run: their draws are not exact."""
        modes = {m for m, *_ in self.kinds}
        return modes - {m for (m, *_), kind in self.kinds.items() if kind != SHAPED}

    def departure(self, mode: int, panel: int, sampler: int) -> stats.Estimate | None:
        """How far a cell is from the law, beyond one-at-a-time decoding; None: not measured."""
        return self._departures.of(self.cells[mode, panel, sampler])

    def shaped(self, sampler: int, mode: int | None = None, panel: int | None = None) -> bool:
        """Whether a sampler's results are shaped: one's, those of a mode, or wherever others are.

        Where everything is shaped, as by truncated draws, it is so of the mode, not of a sampler.
        """
        if mode is not None and panel is not None:
            return self.kinds.get((mode, panel, sampler)) == SHAPED
        modes = self._shaped_in.get(sampler, set())
        return bool(modes - self.shaped_modes) if mode is None else mode in modes

    def marked(self, sampler: int, mode: int, panel: int | None = None) -> str:
        """Its name, with a † where its results are shaped."""
        return self.label(sampler) + MARK * self.shaped(sampler, mode, panel)

    def law_words(self, mode: int, panel: int, sampler: int) -> str:
        """ "shaped, off the law by 0.312 ± 0.021"; nothing of an exact or factorised result."""
        if self.kinds[mode, panel, sampler] != SHAPED:
            return ""
        return departure_words(self.departure(mode, panel, sampler))

    def label(self, sampler: int | None) -> str:
        """The name of a sampler, or of the reference."""
        return REFERENCE if sampler is None else self.samplers[sampler].label
