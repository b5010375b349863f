"""A sampler inside the wrappers: `blocks`, `spaced`, `stochastic` and `corrected`.

A wrapper shows its inner sampler a part of the canvas, noisy scores, or a canvas that is partly
filled again, so a sampler that counts rounds, measures a canvas by its length or chooses where
nothing is masked does well alone and goes wrong here. Every sampler is tried in every wrapper, on
rows with nothing given, with a prompt and with tokens given in the middle: what was given stays, a
row is the same alone as among others, and what cannot be inside a wrapper is refused by a sentence
when it is built.
"""

from collections.abc import Callable

import torch

from maskwalk.analysis.contract.stand import BrokenContract, Stand, run, same
from maskwalk.decoding.policy import Sampler, UnmaskingPolicy
from maskwalk.errors import MaskwalkError
from maskwalk.samplers.blocks import Blocks
from maskwalk.samplers.corrected import Corrected
from maskwalk.samplers.spaced import Spaced
from maskwalk.samplers.stochastic import Stochastic

ROWS = 24


def _policy(sampler: Sampler) -> bool:
    return isinstance(sampler, UnmaskingPolicy)


def _keeps(sampler: Sampler) -> bool:
    return not sampler.remasks


# Each with the samplers it holds.
WRAPPERS: dict[str, tuple[Callable[[Sampler], Sampler], Callable[[Sampler], bool]]] = {
    "blocks(2, …)": (lambda inner: Blocks(2, inner), lambda inner: True),
    "spaced(…, 2)": (lambda inner: Spaced(inner, 2), _policy),
    "stochastic(…, 0.5)": (lambda inner: Stochastic(inner, 0.5), _policy),
    "corrected(…, 0.5, 2)": (lambda inner: Corrected(inner, 0.5, 2), _keeps),
}


def fits_in_wrappers(sampler: Sampler, stand: Stand) -> None:
    """Works inside every wrapper that can hold it, and is refused in a sentence by the others."""
    for name, (wrap, holds) in WRAPPERS.items():
        try:
            wrapped = wrap(sampler)
        except MaskwalkError as problem:
            if holds(sampler):
                raise BrokenContract(f"{name} refuses it: {problem}") from problem
            continue
        if not holds(sampler):
            raise BrokenContract(f"{name} takes it, which cannot work.")
        try:
            _works(wrapped, stand)
        except BrokenContract as problem:
            raise BrokenContract(f"Inside {name}: {problem}") from problem
        except (Exception, SystemExit) as problem:
            raise BrokenContract(
                f"Inside {name} it failed with {type(problem).__name__}: {problem}"
            ) from problem


def _works(wrapped: Sampler, stand: Stand) -> None:
    """Fills what is masked, keeps what was given, and does so alone as among others."""
    tokens, mask = stand.starts(ROWS), stand.denoiser.mask_id
    given = tokens != mask
    everyone = run(wrapped, stand.denoiser, tokens)
    if not torch.equal(everyone.tokens[given], tokens[given]):
        raise BrokenContract("A given token was changed.")
    if bool((everyone.tokens == mask).any()):
        raise BrokenContract("A position was left masked.")
    some = torch.arange(ROWS - 1, 0, -5)  # of each kind, in another order
    part = run(wrapped, stand.denoiser, tokens[some], some)
    same(everyone, part, some, torch.arange(len(some)), f"in a batch of {len(some)}")
