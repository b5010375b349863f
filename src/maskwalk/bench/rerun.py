"""Records run again: what somebody says a policy reached, checked by running its cells."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maskwalk.bench.cell import Cell, run_cell
from maskwalk.bench.law_cells import only_law
from maskwalk.bench.records import Record
from maskwalk.decoding.policy import Sampler
from maskwalk.errors import MaskwalkError, whole

CLOSE = 1e-9  # numbers added up in another order; shares and calls are the same to the last bit
SETTINGS = ("draw", "ties", "count", "per_prompt", "seed")


@dataclass(frozen=True)
class Rerun:
    """A record and what became of it."""

    record: Record
    different: dict[str, tuple[float | None, float | None]]  # metric: as recorded, as run now
    edited: bool  # one of the files it depends on has changed since

    @property
    def same(self) -> bool:
        """Whether every number came out again."""
        return not self.different


def chosen(records: Sequence[Record], most: int, own: Sequence[str] = ()) -> list[Record]:
    """At most so many, evenly; those of the samplers named, where any are."""
    whole("cells", most, 1)
    mine = [r for r in records if not only_law(r) and (not own or r["sampler"] in own)]
    if not mine:
        raise MaskwalkError("There are no records of this policy to run again.")
    if len(mine) <= most:
        return mine
    return [mine[round(i * (len(mine) - 1) / max(most - 1, 1))] for i in range(most)]


def rerun(
    records: Sequence[Record], samplers: Mapping[str, Sampler], device: str = "cpu"
) -> Iterator[Rerun]:
    """Runs every record's cell; `samplers` are those that are in no table, by their specs."""
    for record in records:
        own = samplers.get(record["sampler"])
        again, _ = run_cell(_cell(record, own), device, trace=False, sampler=own)
        before, now = record["metrics"], again["metrics"]
        different = {
            key: (_value(before[key]), _value(now.get(key)))
            for key in before
            if not _close(_value(before[key]), _value(now.get(key)))
        }
        edited = record.get("sources", {}) != again.get("sources", {})
        yield Rerun(record, different, edited)


def _cell(record: Record, own: Sampler | None) -> Cell:
    place: dict[str, Any] = {key: record[key] for key in SETTINGS}  # type: ignore[literal-required]
    name = record["sampler"] if own is None else "left_to_right"
    cell = Cell.checked(
        world=record["world"],
        task=record["task"],
        sampler=name,
        denoiser=record["denoiser"],
        metrics=tuple(record["metrics"]),
        **place,
    )
    return cell if own is None else Cell.from_json({**vars(cell), "sampler": record["sampler"]})


def _value(estimate: Any) -> float | None:
    return None if estimate is None else estimate.get("value")


def _close(one: float | None, two: float | None) -> bool:
    if one is None or two is None:
        return one is two
    return abs(one - two) <= CLOSE * max(1.0, abs(one))
