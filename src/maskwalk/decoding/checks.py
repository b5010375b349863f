"""What `decode` gets back from denoisers and samplers, checked: a sentence names whose fault it is.

A denoiser's answer is checked at every call: its shape and type, one pass over it for NaN, for rows
without a possible token and for log-probabilities above 0, and a few of its rows for their sum.
What a sampler makes of the canvas is checked after every round: its shape, its tokens, and that
what was given is still there.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from maskwalk.decoding.canvas import Canvas
from maskwalk.denoiser import Denoiser
from maskwalk.errors import misbehaved, shown
from maskwalk.kernels.small import small

ROWS = 8  # of an answer whose sum is checked
ABOVE = 1e-3  # how far above 0 a log-probability may be by rounding (bfloat16 networks)
SUMS = 1e-2  # how far from 1 a marginal may sum to


def check_answer(denoiser: Denoiser, answer: Any, asked: Tensor) -> None:
    """A denoiser's answer is a table of log-marginals, or a sentence that names the denoiser."""
    if not isinstance(answer, Tensor):
        raise misbehaved(denoiser, f"answers with {shown(answer)}; a denoiser gives a tensor.")
    rows = int(small(asked).sum())
    if answer.shape != (rows, denoiser.vocab_size) or not answer.dtype.is_floating_point:
        raise misbehaved(
            denoiser,
            f"answers for {rows} places over {denoiser.vocab_size} tokens with a table of shape "
            f"{tuple(answer.shape)} of {answer.dtype}; it gives a row of log-probabilities for "
            "every place, in row-major order.",
        )
    if rows == 0:
        return
    table = small(answer)
    largest = table.max(-1) if isinstance(table, np.ndarray) else answer.amax(-1)
    totals = _totals(table[:: max(1, rows // ROWS)])
    low, high, off = _numbers(largest.min(), largest.max(), abs(totals - 1).max())
    if low == -torch.inf or not high <= ABOVE:  # NaN is not at most anything
        what = (
            "log-probabilities that are NaN"
            if low != low
            else "a place where no token is possible (all -inf)"
            if low == -torch.inf
            else f"a log-probability of {high:.3g}, above 0; it has to be normalised"
        )
        raise misbehaved(denoiser, f"answers with {what}, so there is nothing to draw from.")
    if off > SUMS:
        worst = float(totals[abs(totals - 1).argmax()])
        raise misbehaved(denoiser, f"answers with a marginal that sums to {worst:.3g}, not 1.")


def _totals(log_probs: Any) -> Any:
    """What each marginal sums to; far too large ones are infinite."""
    if isinstance(log_probs, Tensor):
        return log_probs.to(torch.float64).exp().sum(-1)
    with np.errstate(over="ignore"):
        return np.exp(log_probs).sum(-1)


def _numbers(*values: Any) -> list[float]:
    """Numbers of an accelerator are waited for once, not one by one."""
    if isinstance(values[0], Tensor):
        return torch.stack([value.to(torch.float64) for value in values]).tolist()
    return [float(value) for value in values]


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
    return chosen, check_state(sampler, state, len(masked))


def check_state(sampler: object, state: Any, batch: int) -> dict[str, Tensor]:
    """What a sampler remembers: tensors by name, with a leading batch axis."""
    fine = isinstance(state, dict) and all(
        isinstance(value, Tensor) and value.ndim >= 1 and len(value) == batch
        for value in state.values()
    )
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


def check_step(sampler: object, before: Canvas, after: Any, vocab: int) -> Canvas:
    """The canvas after a round: its shape, its tokens, and what was given; or a sentence."""
    if not isinstance(after, Canvas):
        raise misbehaved(sampler, f"must give back a Canvas from step(), not {shown(after)}.")
    old, new = before.tokens, after.tokens
    if not isinstance(new, Tensor) or new.shape != old.shape or new.dtype != old.dtype:
        raise misbehaved(
            sampler,
            f"must keep the canvas a table of shape {tuple(old.shape)} of {old.dtype}, not "
            f"{_told(new)}.",
        )
    now = small(new)
    changed = small(before.given) & (now != small(old))
    odd = ((now < 0) | (now >= vocab)) & (now != before.mask_id)
    if bool((changed | odd).any()):
        if bool(changed.any()):
            row, position = torch.as_tensor(changed).nonzero()[0].tolist()
            what = f"changed the given token at position {position} of row {row}"
        else:
            what = f"wrote {int(now[odd][0])}, which is no token (0..{vocab - 1})"
        raise misbehaved(sampler, f"{what} in round {before.round}.")
    check_state(sampler, after.state, len(old))
    return after


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
