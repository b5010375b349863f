"""What every denoiser keeps, as checks that say in a sentence what is broken.

normalised        every marginal sums to 1, and nothing is NaN
packed            answers come in row-major order of the places asked for
never the mask    the mask is no token, or has probability zero
same in any batch the same bits whatever else is in the batch

from maskwalk import broken_denoiser
assert broken_denoiser(mine, canvases) == {}       # canvases: partly masked rows it can read
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.arguments import as_denoiser

Canvases = Int[Tensor, "batch length"]
Asked = Bool[Tensor, "batch length"]


class BrokenDenoiser(AssertionError):
    """What a denoiser does that it must not do."""


def places(denoiser: Denoiser, canvases: Canvases) -> Asked:
    """What may be asked: every masked position, of an autoregressive model only the first."""
    masked = canvases == denoiser.mask_id
    if getattr(denoiser, "causal", False):
        return masked & (masked.cumsum(1) == 1)
    return masked


def normalised(denoiser: Denoiser, canvases: Canvases, at: Asked) -> None:
    """Every marginal is a distribution over the vocabulary."""
    answer = denoiser(canvases, at)
    if answer.shape != (int(at.sum()), denoiser.vocab_size):
        raise BrokenDenoiser(
            f"{int(at.sum())} places over {denoiser.vocab_size} tokens are answered with a table "
            f"of shape {tuple(answer.shape)}."
        )
    if not bool((answer <= 1e-6).all()):  # NaN is not at most anything
        raise BrokenDenoiser("An answer holds NaN, or a log-probability above 0.")
    totals = answer.to(torch.float64).exp().sum(1)
    close = 1e-9 if answer.dtype == torch.float64 else 1e-4
    if not bool(((totals - 1).abs() < close).all()):
        raise BrokenDenoiser(f"A marginal sums to {float(totals.min()):.6g}.")


def packed(denoiser: Denoiser, canvases: Canvases, at: Asked) -> None:
    """Asking for some places gives those rows of the whole answer, in row-major order."""
    whole = denoiser(canvases, at).clone()
    some = at & (torch.arange(at.shape[1], device=at.device) % 2 == 0)
    if getattr(denoiser, "causal", False) or not bool(some.any()):
        some = at & (torch.arange(len(at), device=at.device) % 2 == 0)[:, None]
    if not torch.equal(denoiser(canvases, some), whole[some[at]]):
        raise BrokenDenoiser("Some places alone are answered otherwise, or in another order.")


def never_the_mask(denoiser: Denoiser, canvases: Canvases, at: Asked) -> None:
    """A drawn token is never the mask."""
    if denoiser.mask_id < denoiser.vocab_size:
        answer = denoiser(canvases, at)
        if bool((answer[:, denoiser.mask_id] > -torch.inf).any()):
            raise BrokenDenoiser("The mask has a positive probability.")


def same_in_any_batch(denoiser: Denoiser, canvases: Canvases, at: Asked) -> None:
    """A row's answer is the same bits alone, among others and in another order."""
    whole, counts = denoiser(canvases, at).clone(), at.sum(1).tolist()
    each = whole.split(counts)
    for i in range(len(canvases)):
        if not torch.equal(denoiser(canvases[i : i + 1], at[i : i + 1]), each[i]):
            raise BrokenDenoiser(f"Row {i} is answered otherwise when it is alone.")
    order = torch.arange(len(canvases) - 1, -1, -1, device=canvases.device)
    turned = denoiser(canvases[order], at[order]).split([counts[i] for i in order.tolist()])
    if not all(torch.equal(turned[len(each) - 1 - i], row) for i, row in enumerate(each)):
        raise BrokenDenoiser("Rows are answered otherwise in another order.")


CHECKS: dict[str, Callable[[Denoiser, Canvases, Asked], None]] = {
    check.__name__: check for check in (normalised, packed, never_the_mask, same_in_any_batch)
}


def broken_denoiser(denoiser: Denoiser | str, canvases: Canvases) -> dict[str, str]:
    """Each check that a denoiser (or the model of a name) fails on these canvases, and why; empty
    if it keeps all."""
    denoiser = as_denoiser(denoiser)
    at, broken = places(denoiser, canvases), dict[str, str]()
    for name, check in CHECKS.items():
        try:
            check(denoiser, canvases, at)
        except BrokenDenoiser as problem:
            broken[name] = str(problem)
        except Exception as problem:
            broken[name] = f"It failed with {type(problem).__name__}: {problem}"
    return broken
