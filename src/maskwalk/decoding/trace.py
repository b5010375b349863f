"""The story of a decoding: which position of which sequence changed in which round, and to what.

A trace is one flat table, an event a row, so it opens in any tool that reads Parquet:

    sequence   the row's stream id          round     -1 for what was given
    position   0..length-1                  token     the mask token where a sampler remasked
    log_prob   log p(token) when drawn      entropy   nats of the marginal it was drawn from
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.errors import MaskwalkError
from maskwalk.resources import write_file

COLUMNS = ("sequence", "round", "position", "token", "log_prob", "entropy")


@dataclass
class Trace:
    """The events of one call of `decode`, in order."""

    ids: Int[Tensor, " batch"]
    length: int
    mask_id: int
    events: dict[str, Tensor]

    def __repr__(self) -> str:
        events = len(self.events["round"])
        return f"<Trace of {len(self.ids)} sequences of {self.length} tokens, {events:,} events>"

    @classmethod
    def start(
        cls, tokens: Int[Tensor, "batch length"], ids: Int[Tensor, " batch"], mask_id: int
    ) -> "Trace":
        """A trace that holds what was given."""
        empty = {name: torch.empty(0, dtype=torch.int64) for name in COLUMNS[:4]}
        empty |= {name: torch.empty(0, dtype=torch.float64) for name in COLUMNS[4:]}
        trace = cls(ids.cpu(), tokens.shape[1], mask_id, empty)
        blank = torch.full(tokens.shape, torch.nan, dtype=torch.float64)
        rows = torch.arange(len(tokens), device=tokens.device)
        trace.add(-1, rows, torch.full_like(tokens, mask_id), tokens, blank, blank)
        return trace

    def add(
        self,
        round: int,
        rows: Tensor,
        before: Tensor,
        after: Tensor,
        log_prob: Tensor,
        entropy: Tensor,
    ) -> None:
        """Appends what one round changed; `rows` says which sequences the canvas held."""
        changed = before != after
        row, position = changed.nonzero(as_tuple=True)
        new = {
            "sequence": self.ids[rows[row].cpu()],
            "round": torch.full((len(row),), round),
            "position": position,
            "token": after[changed],
            "log_prob": log_prob.to(changed.device)[changed],
            "entropy": entropy.to(changed.device)[changed],
        }
        self.events = {k: torch.cat([v, new[k].cpu()]) for k, v in self.events.items()}

    def replay(self) -> Iterator[Int[Tensor, "batch length"]]:
        """The canvas before the first round, and after each one."""
        canvas = torch.full((len(self.ids), self.length), self.mask_id)
        row = self._rows()
        last = int(self.events["round"].max()) if len(self.events["round"]) else -1
        for round in range(-1, last + 1):
            now = self.events["round"] == round
            canvas[row[now], self.events["position"][now]] = self.events["token"][now]
            yield canvas.clone()

    def reveal_rounds(self) -> Int[Tensor, "batch length"]:
        """The last round in which each position changed; -1 where it was given."""
        rounds = torch.full((len(self.ids), self.length), -1)
        place = self._rows() * self.length + self.events["position"]
        return (
            rounds.flatten().scatter_reduce(0, place, self.events["round"], "amax").view_as(rounds)
        )

    def _rows(self) -> Int[Tensor, " events"]:
        """The batch row of every event."""
        ids, inverse = self.ids.sort()
        return inverse[torch.searchsorted(ids, self.events["sequence"])]

    def save(self, path: str | Path) -> None:
        """Writes the events as Parquet, with what `load` needs in the file's metadata."""
        table = pa.table({name: self.events[name].numpy() for name in COLUMNS})
        ids = ",".join(map(str, self.ids.tolist()))
        about = {"maskwalk_ids": ids, "length": str(self.length), "mask_id": str(self.mask_id)}
        file = pa.BufferOutputStream()
        pq.write_table(table.replace_schema_metadata(about), file)
        write_file(Path(path), file.getvalue().to_pybytes())

    @classmethod
    def load(cls, path: str | Path) -> "Trace":
        """Reads what `save` wrote."""
        try:
            table = pq.read_table(path)
            about = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
            ids = torch.tensor([int(i) for i in about["maskwalk_ids"].split(",")])
            events = {name: torch.tensor(table[name].to_numpy()) for name in COLUMNS}
            return cls(ids, int(about["length"]), int(about["mask_id"]), events)
        except (OSError, KeyError, ValueError, pa.ArrowInvalid) as problem:
            raise MaskwalkError(f"{path} is not a maskwalk trace: {problem}") from None
