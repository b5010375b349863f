"""What `decode` gets back from denoisers and samplers, checked: a sentence names whose fault it is.

A denoiser's answer is checked at every call: its shape and type, one pass over it for NaN, for rows
without a possible token and for log-probabilities above 0, and two of its rows for their sum:
which ones differs from one number of rows to the next, so from round to round.
What a sampler makes of the canvas is checked after every round: its shape, its tokens, and that
what was given is still there.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from maskwalk.decoding.canvas import Canvas
from maskwalk.denoiser import Denoiser
from maskwalk.errors import misbehaved, shown
from maskwalk.kernels.small import LOOKED_AT, large, small, some

ROWS = 2  # of an answer whose sum is checked
SPREAD = 2_654_435_761  # times a number of rows: the first row that is summed, scattered
ABOVE = 1e-3  # how far above 0 a log-probability may be by rounding (bfloat16 networks)
ALONE = 8192  # numbers that a product of vectors leaves to one thread
SUMS = 1e-2  # how far from 1 a marginal may sum to


def check_answer(denoiser: Denoiser, answer: Any, rows: int) -> None:
    """A denoiser's answer is a table of log-marginals, a row for every place it was asked about,
    or a sentence that names the denoiser."""
    if not isinstance(answer, Tensor):
        raise misbehaved(denoiser, f"answers with {shown(answer)}; a denoiser gives a tensor.")
    if answer.shape != (rows, denoiser.vocab_size) or not answer.dtype.is_floating_point:
        raise misbehaved(
            denoiser,
            f"answers for {rows} places over {denoiser.vocab_size} tokens with a table of shape "
            f"{tuple(answer.shape)} of {answer.dtype}; it gives a row of log-probabilities for "
            "every place, in row-major order.",
        )
    if rows == 0:
        return
    table = small(answer, LOOKED_AT)
    told = _told_by(table) if isinstance(table, np.ndarray) else _waited_for(answer)
    low, high, least, most = told
    if low == -torch.inf or not high <= ABOVE:  # NaN is not at most anything
        what = (
            "log-probabilities that are NaN"
            if low != low
            else "a place where no token is possible (all -inf)"
            if low == -torch.inf
            else f"a log-probability of {high:.3g}, above 0; it has to be normalised"
        )
        raise misbehaved(denoiser, f"answers with {what}, so there is nothing to draw from.")
    total = most if most - 1 > 1 - least else least
    if abs(total - 1) > SUMS:
        raise misbehaved(denoiser, f"answers with a marginal that sums to {total:.3g}, not 1.")


@lru_cache(maxsize=1 << 12)
def summed(rows: int) -> range:
    """Which rows of an answer are summed: a function of how many there are, so that the same
    decoding is always refused in the same round."""
    apart = -(-rows // ROWS)
    return range(rows * SPREAD % 2**32 * apart >> 32, rows, apart)


def _told_by(table: np.ndarray) -> tuple[float, float, float, float]:
    """The lowest and the highest number of a table (of the largest of each row, if some token is
    impossible), and the least and the most of the sums that are looked at."""
    low, high = table.item(table.argmin()), table.item(table.argmax())
    if low == -torch.inf:  # is every token of a place?
        largest = np.maximum.reduce(table, -1)
        low = largest.item(largest.argmin())
    if not high <= ABOVE:  # refused before anything is summed, so no sum overflows
        return low, high, 1.0, 1.0
    rows, width = table.shape
    if width > ALONE:
        totals = [float(np.add.reduce(np.exp(table[row]))) for row in summed(rows)]
    else:
        ones = _ones(width, table.dtype)
        totals = [float(ones.dot(np.exp(table[row]))) for row in summed(rows)]
    return low, high, min(totals), max(totals)


def _waited_for(answer: Tensor) -> tuple[float, float, float, float]:
    """The same of the largest of each row, on an accelerator: waited for once, not one by one."""
    rows = summed(len(answer))
    totals = answer[rows.start :: rows.step].to(torch.float32).exp().sum(-1)
    told = (*answer.amax(-1).aminmax(), *totals.aminmax())
    low, high, least, most = torch.stack([x.to(torch.float64) for x in told]).tolist()
    return low, high, least, most


@lru_cache(maxsize=8)
def _ones(width: int, dtype: np.dtype) -> np.ndarray:
    """What a row is multiplied with for its sum: a call that costs less than a sum's."""
    return np.ones(width, dtype)


def checked_choice(
    sampler: object, choice: Any, masked: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """What a policy's `choose` gave back: a mask of positions and its state, or a sentence."""
    if not isinstance(choice, tuple) or len(choice) != 2:
        raise misbehaved(
            sampler, f"must give back (chosen, state) from choose(), not {shown(choice)}."
        )
    chosen, state = choice
    if not isinstance(chosen, Tensor) or chosen.dtype != torch.bool or chosen.shape != masked.shape:
        raise misbehaved(
            sampler,
            f"must choose by a boolean tensor of shape {tuple(masked.shape)}, not {_told(chosen)}.",
        )
    return chosen, check_state(sampler, state, masked.shape[0])


def check_state(sampler: object, state: Any, batch: int) -> dict[str, Tensor]:
    """What a sampler remembers: tensors by name, with a leading batch axis."""
    fine = isinstance(state, dict)
    for value in state.values() if fine else ():
        fine = fine and isinstance(value, Tensor) and value.shape[:1] == (batch,)
    if not fine:
        what = (
            ", ".join(f"{name}: {_told(value)}" for name, value in state.items())
            if isinstance(state, dict)
            else shown(state)
        )
        raise misbehaved(
            sampler,
            f"must remember a dictionary of tensors with a row for each of {batch} sequences, not "
            f"{what}.",
        )
    return dict(state)


def check_finished(sampler: object, done: Any, batch: int) -> Tensor:
    """Which rows are done: a boolean tensor, or a sentence."""
    if not isinstance(done, Tensor) or done.dtype != torch.bool or done.shape != (batch,):
        raise misbehaved(
            sampler, f"must say which of {batch} rows are finished, not {_told(done)}."
        )
    return done


def check_step(sampler: object, before: Canvas, after: Any, vocab: int) -> tuple[Canvas, Any]:
    """The canvas after a round and where it changed (as `small` gives it), or a sentence: it keeps
    its shape and what was given, and what is written are tokens."""
    if not isinstance(after, Canvas):
        raise misbehaved(sampler, f"must give back a Canvas from step(), not {shown(after)}.")
    old, new = before.tokens, after.tokens
    if not isinstance(new, Tensor) or new.shape != old.shape or new.dtype != old.dtype:
        raise misbehaved(
            sampler,
            f"must keep the canvas a table of shape {tuple(old.shape)} of {old.dtype}, not "
            f"{_told(new)}.",
        )
    now, given = after.few, before.given_few
    changed = now != before.few
    if _suspicious(now, changed & given, vocab + (before.mask_id == vocab)):
        _check_written(sampler, before, now, changed, vocab)
    check_state(sampler, after.state, old.shape[0])
    return after, changed


def _suspicious(now: Any, touched: Any, top: int) -> bool:
    """Whether anything given was touched or any number may be no token: a look, in few calls."""
    if isinstance(now, np.ndarray) and now.size:
        inside = now.item(now.argmin()) >= 0 and now.item(now.argmax()) < top
        return not inside or some(touched)
    return bool((touched | (now < 0) | (now >= top)).any())


def _check_written(sampler: object, before: Canvas, now: Any, changed: Any, vocab: int) -> None:
    """A sentence about the first given token that changed, or the first that is no token."""
    given = small(before.given)
    odd = ((now < 0) | (now >= vocab)) & (now != before.mask_id)
    if bool((changed & (given | odd)).any()):
        if bool((changed & given).any()):
            row, position = large(changed & given).nonzero()[0].tolist()
            what = f"changed the given token at position {position} of row {row}"
        else:
            what = f"wrote {int(now[odd][0])}, which is no token (0..{vocab - 1})"
        raise misbehaved(sampler, f"{what} in round {before.round}.")


def check_rounds(sampler: object, most: Any) -> int:
    """The number of rounds after which a sampler loops, or a sentence."""
    if isinstance(most, bool) or not isinstance(most, int):
        raise misbehaved(
            sampler, f"must give a whole number of rounds from max_rounds(), not {shown(most)}."
        )
    return most


def _told(value: Any) -> str:
    if isinstance(value, Tensor | np.ndarray):
        return f"a {type(value).__name__} of shape {tuple(value.shape)} of {value.dtype}"
    return shown(value)
