"""The training walks on the device, and the order in which a step takes them.

Each model reads its walks in epochs: a fresh random order (the ranks of Philox words) every
⌊walks/batch⌋ steps, without replacement inside an epoch. Orders are laid out by the host between
steps; which part of the order a step reads is computed from the step counter on the device, so a
captured graph needs no argument.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.errors import MaskwalkError
from maskwalk.training.objective import epoch_order


class Walks:
    """All models' walks in one table, with each model's current order over its own part."""

    def __init__(
        self, tables: list[Int[Tensor, "_ length"]], seeds: Int[Tensor, " models"], batch: int
    ) -> None:
        device = seeds.device
        lengths = {t.shape[1] for t in tables}
        if len(lengths) != 1:
            raise MaskwalkError(
                f"Models trained together need walks of one length, not {sorted(lengths)}."
            )
        self.counts, self.batch = [len(t) for t in tables], batch
        self.epochs = [max(count // batch, 1) for count in self.counts]
        self.table = torch.cat([t.to(torch.int32) for t in tables]).to(device)
        self.starts = [sum(self.counts[:m]) for m in range(len(tables))]
        self.order = torch.zeros(len(tables), max(self.epochs) * batch, dtype=torch.int64)
        self.order = self.order.to(device)
        self.period = torch.tensor(self.epochs, device=device)
        self.seeds = seeds

    def shuffle(self, step: int, resume: bool = False) -> None:
        """Lays out the orders that begin at this step (or are under way in it)."""
        for model, period in enumerate(self.epochs):
            if step % period == 0 or resume:
                self._lay(model, step // period)

    def until(self, step: int) -> int:
        """How many steps from this one need no new order."""
        return min(period - step % period for period in self.epochs)

    def _lay(self, model: int, epoch: int) -> None:
        count, width = self.counts[model], self.epochs[model] * self.batch
        order = epoch_order(count, epoch, self.seeds[model]) + self.starts[model]
        repeats = -(-width // count)  # fewer walks than a batch: some appear twice in it
        self.order[model, :width] = order.repeat(repeats)[:width]

    def gather(
        self, step: Int[Tensor, ""], samples: Int[Tensor, " share"]
    ) -> Int[Tensor, "models share length"]:
        """The walks of these places of the step's batch, for every model."""
        place = ((step % self.period) * self.batch)[:, None] + samples
        return self.table[self.order.gather(1, place)].to(torch.int64)
