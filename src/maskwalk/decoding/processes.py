"""Several processes that work on one thing: started by `torchrun`, or by `training.launch`.

Training shares a batch among them (`training/step.py`). Decoding shares rows: inside `rows_shared`
every process decodes its part of the rows and all of them get the whole. A row's random numbers
depend on its id alone, so the tokens are those of one process.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from maskwalk.errors import MaskwalkError

Result = TypeVar("Result")


class Group:
    """This process's place among those that work together; a context manager."""

    def __init__(self, device: str) -> None:
        self.world = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        kind = torch.device(device).type
        local = int(os.environ.get("LOCAL_RANK", self.rank))
        accelerated = kind != "cpu"
        self.device = f"{kind}:{local}" if accelerated and self.world > 1 else device
        self._mine = self.world > 1 and not dist.is_initialized()
        if self._mine:
            if accelerated:
                torch.cuda.set_device(self.device)
            dist.init_process_group("nccl" if accelerated else "gloo")

    @property
    def first(self) -> bool:
        """Whether this process writes files and talks."""
        return self.rank == 0

    def wait(self) -> None:
        """Until all processes are here."""
        if self.world > 1:
            dist.barrier()

    def share(self, count: int) -> slice:
        """This process's part of `count` rows: consecutive ones, the first parts one longer."""
        size, more = divmod(count, self.world)
        begin = self.rank * size + min(self.rank, more)
        return slice(begin, begin + size + (self.rank < more))

    def gather(self, mine: Tensor, count: int) -> Tensor:
        """The rows of all processes in their order, from this one's `share(count)` of them."""
        if self.world == 1:
            return mine
        most = -(-count // self.world)  # equal parts on the way: what is missing is cut off again
        part = torch.zeros((most, *mine.shape[1:]), dtype=mine.dtype, device=self.device)
        part[: len(mine)] = mine
        parts = [torch.empty_like(part) for _ in range(self.world)]
        dist.all_gather(parts, part)
        size, more = divmod(count, self.world)
        return torch.cat([p[: size + (r < more)] for r, p in enumerate(parts)]).to(mine.device)

    def sum(self, number: int) -> int:
        """The sum of every process's number."""
        if self.world == 1:
            return number
        total = torch.tensor(number, device=self.device)
        dist.all_reduce(total)
        return int(total)

    def together(self, work: Callable[[], Result]) -> Result:
        """What `work` gives in this process, once it has succeeded in all of them."""
        problem, result = None, None
        try:
            result = work()
        except Exception as error:
            problem = error
        failed = self.sum(int(problem is not None))
        if problem is not None:
            raise problem
        if failed:
            raise MaskwalkError(f"{failed} of {self.world} processes failed; their errors say why.")
        return result  # type: ignore[return-value]

    def tell(self, text: str = "") -> str:
        """The first process's text, in every process."""
        if self.world == 1:
            return text
        data = torch.tensor(list(text.encode()), dtype=torch.uint8, device=self.device)
        size = torch.tensor(len(data), device=self.device)
        dist.broadcast(size, 0)
        if not self.first:
            data = torch.empty(int(size), dtype=torch.uint8, device=self.device)
        dist.broadcast(data, 0)
        return bytes(data.tolist()).decode()

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, *problem: Any) -> None:
        if self._mine:
            dist.destroy_process_group()


def alone(what: str) -> None:
    """Refuses to do in every process that torchrun started what one does."""
    count = os.environ.get("WORLD_SIZE", "1")
    if count.isdecimal() and int(count) > 1:
        raise MaskwalkError(
            f"{what} works in one process, and torchrun started {count}, which would all do the "
            "same; leave torchrun out (generate, sample, bench and train share their work)."
        )


_groups: list[Group] = []  # of the `rows_shared` that are open


@contextmanager
def rows_shared(device: str) -> Iterator[Group]:
    """Inside, `decode_rows` shares its rows among the processes that torchrun started."""
    with Group(device) as group:
        _groups.append(group)
        try:
            yield group
        finally:
            _groups.pop()


def row_group() -> Group | None:
    """The processes that share rows now; None if there is this one only."""
    return _groups[-1] if _groups and _groups[-1].world > 1 else None
