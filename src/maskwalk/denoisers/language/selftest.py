"""What every model is asked once, when it is loaded: whether its answers can be meant.

    finite          no number that is not one, in weights' tables or in answers
    normalised      every marginal sums to 1
    both ways       a later token changes an earlier answer, and an earlier one a later
    order           the same tokens in another order are answered otherwise: positions are read
    any batch       one sequence alone and several together get the same answer, but for rounding
    rotary tables   frequencies lie in (0, 1] and fall, which memory that nobody wrote does not

A wrong layout, a table that was never computed or a decoder that looks one way only still gives
numbers; none of them passes here. It costs seven short passes. `check=False` (--no-check) leaves it
out, for a network that is meant to be otherwise.
"""

from copy import copy

import torch
from jaxtyping import Float
from torch import Tensor, nn

from maskwalk.denoisers.language.base import TextDenoiser
from maskwalk.errors import MaskwalkError

LENGTH = 8
SAME = 1e-6  # answers that differ by less, as probabilities or log-probabilities, are the same
CLOSE = {torch.float32: 1e-3, torch.float16: 0.05, torch.bfloat16: 0.1}  # between row counts


def self_test(denoiser: TextDenoiser, source: object, device: str) -> None:
    """Raises a sentence if the answers of a model cannot be meant."""
    model, causal = getattr(denoiser, "model", None), getattr(denoiser, "causal", False)
    if isinstance(model, nn.Module):
        check_tables(model, source)
    words = _words(denoiser)
    canvas = torch.tensor([words], device=device)
    canvas[0, [LENGTH - 1] if causal else [2, LENGTH - 3]] = denoiser.mask_id
    alone = denoiser(canvas)  # raises where an answer is not finite
    if not bool(((alone.double().exp().sum(1) - 1).abs() < 1e-3).all()):
        raise _broken(source, "its marginals do not sum to 1")
    later, earlier, turned = (canvas.clone() for _ in range(3))
    later[0, -1], earlier[0, 0] = words[0], words[1]
    turned[0, 3:5] = canvas[0, 3:5].flip(0)
    questions = [
        (earlier, -1, "an earlier token changes nothing after it"),
        (turned, -1, "two tokens in another order change nothing: it does not know positions"),
    ]
    if not causal:
        one_way = "a later token changes nothing before it: it reads from left to right only"
        questions.append((later, 0, one_way))
    for other, place, what in questions:
        if _distance(denoiser(other)[place], alone[place]) < SAME:
            raise _broken(source, what)
    many = copy(denoiser)
    many.rows = denoiser.rows + 1
    together = many(torch.cat([canvas, earlier]))[: len(alone)]
    apart = float((together.exp() - alone.exp()).abs().max())
    if not apart < CLOSE[_precision(denoiser)]:
        raise _broken(source, f"one sequence alone and two together are answered {apart:.2g} apart")


def _words(denoiser: TextDenoiser) -> list[int]:
    """Tokens that may be drawn: up to six different ones, spread over the vocabulary."""
    never = set(denoiser.forbidden)
    step = max(1, denoiser.vocab_size // 64)
    free = [i for i in range(0, denoiser.vocab_size, step) if i not in never]
    if len(free) < 6:
        free = [i for i in range(denoiser.vocab_size) if i not in never]
    few = free[:: max(1, len(free) // 6)][:6]
    return [few[i % len(few)] for i in range(LENGTH)]


def _distance(one: Float[Tensor, " vocab"], other: Float[Tensor, " vocab"]) -> float:
    gap = (one - other).abs()
    return float(gap[gap.isfinite()].max())


def _precision(denoiser: TextDenoiser) -> torch.dtype:
    model = getattr(denoiser, "model", None)
    weight = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    if weight is None:
        weight = getattr(denoiser, "_map", None)
    return weight.dtype if isinstance(weight, Tensor) and weight.dtype in CLOSE else torch.float32


def check_tables(model: nn.Module, source: object) -> None:
    """Refuses tables that no file carries and nobody computed."""
    for name, table in model.named_buffers():
        if table.is_meta or (table.is_floating_point() and not bool(table.isfinite().all())):
            raise _broken(source, f"its table {name} was never computed")
        if name.endswith("inv_freq") and table.numel():
            falls = bool((table.diff() <= 0).all())
            if not (falls and float(table.min()) > 0 and float(table.max()) <= 1 + 1e-6):
                raise _broken(source, f"its rotary frequencies {name} were never computed")


def _broken(source: object, what: str) -> MaskwalkError:
    return MaskwalkError(
        f"{source} was loaded, and its answers cannot be meant: {what}. Its files, its kind and "
        "this version of transformers may not belong together. If the network is meant to be so, "
        "say check=False (--no-check)."
    )
