"""What a paired comparison needs of a cell: for every sequence, coherent or not, and its calls.

A record holds means; these are what the means are of, in the order of the prompts, so that two
samplers can be compared prompt by prompt. The record comes along: it is `maskwalk bench`'s own.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from maskwalk.analysis.contract.answers import Answers
from maskwalk.bench.cell import Cell, run_cell
from maskwalk.bench.records import Record
from maskwalk.decoding.decode import Decoded
from maskwalk.decoding.policy import Sampler
from maskwalk.errors import MaskwalkError
from maskwalk.worlds.world import build_world


@dataclass(frozen=True, eq=False)
class Outcome:
    """One sampler in one scene, prompt by prompt: means over the samples of each prompt."""

    record: Record
    coherent: Float64[np.ndarray, " prompts"]
    calls: Float64[np.ndarray, " prompts"]

    @property
    def sampler(self) -> str:
        """The spec it was run under."""
        return str(self.record["sampler"])

    def as_json(self) -> dict[str, Any]:
        """As the cache keeps it."""
        return {
            "key": self.record["key"],
            "record": self.record,
            "coherent": self.coherent.tolist(),
            "calls": self.calls.tolist(),
        }

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> "Outcome":
        """What `as_json` wrote."""
        coherent, calls = (np.array(kept[k], dtype=np.float64) for k in ("coherent", "calls"))
        return cls(kept["record"], coherent, calls)


def outcome(cell: Cell, sampler: Sampler | None = None) -> Outcome:
    """Runs a cell (with `sampler` in place of the one it names) and keeps what each prompt got."""
    return _scored(cell, *run_cell(cell, sampler=sampler))


def traced_outcome(
    cell: Cell, sampler: Sampler, answers: Answers | None = None
) -> tuple[Outcome, Decoded]:
    """`outcome`, and the very run it scores, with the trace of all its sequences; `answers` keeps
    what its denoiser said."""
    behind = None if answers is None else answers.of
    record, decoded = run_cell(cell, trace=True, sampler=sampler, behind=behind)
    return _scored(cell, record, decoded), decoded


def _scored(cell: Cell, record: Record, decoded: Decoded) -> Outcome:
    """Coherent means what the metric `coherence` means: every step possible in the world."""
    valid = build_world(cell.world).valid(decoded.tokens)
    if valid is None:
        raise MaskwalkError(f"Nobody can check a sequence of {cell.world}: there is no verdict.")
    coherent = valid.all(1).numpy().astype(np.float64)
    calls = decoded.calls.numpy().astype(np.float64)
    shape = (cell.count, cell.per_prompt)
    return Outcome(record, coherent.reshape(shape).mean(1), calls.reshape(shape).mean(1))


def outcome_row(cell: dict[str, Any], device: str) -> dict[str, Any]:
    """The job of a baseline (run.py)."""
    return outcome(Cell.from_json(cell)).as_json()
