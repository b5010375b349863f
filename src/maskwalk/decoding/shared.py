"""Many rows: some at a time, and among all processes of a `rows_shared` (processes.py)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.decoding.decode import Decoded, decode
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.policy import Sampler
from maskwalk.decoding.processes import row_group
from maskwalk.denoiser import Denoiser
from maskwalk.streams import Moved, Streams

OnRound = Callable[[Tensor, Tensor], None]
Filling = Callable[[int, int], None]  # told how many positions are filled, of how many
_told: list[Filling] = []  # by whoever waits


@contextmanager
def filling_told(told: Filling) -> Iterator[None]:
    """`decode_rows` inside tells after every round how many positions are filled, of how many."""
    _told.append(told)
    try:
        yield
    finally:
        _told.remove(told)


def decode_rows(
    sampler: Sampler | str,
    denoiser: Denoiser,
    start: Int[Tensor, "count length"],
    *,
    seed: int,
    ids: Int[Tensor, " count"] | None = None,
    back: Int[Tensor, " count"] | None = None,
    batch: int | None = None,
    draw: Draw | str | None = None,
    ties: str | None = None,
    trace: bool | int = False,
    on_round: OnRound | None = None,
) -> Decoded:
    """`decode` of rows `batch` at a time (all at once if None), on the CPU afterwards.

    `ids`: the numbers of the rows, 0, 1, … without. `back`: how much padding is in front of each,
    which its randomness does not count. `trace` is that of the first batch. Rows are
    shared where at most the first is traced and nobody is told of rounds.
    """
    alone = trace is True or trace > 1 or on_round is not None
    group = None if alone else row_group()
    numbers = torch.arange(len(start)) if ids is None else ids
    mine = slice(0, len(start)) if group is None else group.share(len(start))

    def work() -> Decoded:
        parts = []
        for first in range(mine.start, mine.stop, batch or len(start)):
            some = slice(first, min(first + (batch or len(start)), mine.stop))
            streams = Streams(seed, numbers[some].to(start.device))
            parts.append(
                decode(
                    sampler,
                    denoiser,
                    start[some],
                    streams=streams if back is None else Moved(streams, back[some]),
                    draw=draw,
                    ties=ties,
                    trace=trace if first == 0 else False,
                    on_round=on_round or _filling(denoiser, start, mine, some),
                )
            )
        return _join(parts, start)

    if group is None:
        return work()
    decoded = group.together(work)
    rows = (decoded.tokens, decoded.calls, decoded.rounds, decoded.widest)
    tokens, calls, rounds, widest = (group.gather(each, len(start)) for each in rows)
    return Decoded(tokens, calls, rounds, widest, decoded.trace)


def _filling(denoiser: Denoiser | str, start: Tensor, mine: slice, some: slice) -> OnRound | None:
    """Tells whoever waits, of a batch among this process's rows."""
    if not _told or isinstance(denoiser, str):
        return None
    mask, told = denoiser.mask_id, tuple(_told)
    total, before = (
        int((start[mine.start : stop] == mask).sum()) for stop in (mine.stop, some.stop)
    )

    def on_round(_: Tensor, tokens: Tensor) -> None:
        for tell in told:
            tell(before - int((tokens == mask).sum()), total)

    return on_round


def _join(parts: list[Decoded], start: Tensor) -> Decoded:
    """One after another; nothing if there are none."""
    none = torch.zeros(0, dtype=torch.int64)
    tokens = torch.cat([start[:0].cpu(), *(p.tokens.cpu() for p in parts)])
    calls, rounds, widest = (
        torch.cat([none, *(getattr(p, name).cpu() for p in parts)])
        for name in ("calls", "rounds", "widest")
    )
    return Decoded(tokens, calls, rounds, widest, parts[0].trace if parts else None)
