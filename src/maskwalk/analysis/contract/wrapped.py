"""A sampler inside the eight wrappers, and inside blocks shorter and longer than the canvas.

A wrapper shows its inner sampler a part of the canvas, noisy scores, answers at hand, or a canvas
that is partly filled again, so a sampler that counts rounds, measures a canvas by its length or
chooses where nothing is masked does well alone and goes wrong here. Every sampler is tried in every
wrapper, on rows with nothing given, with a prompt and with tokens given in the middle: what was
given stays, a row is the same alone as among others, a policy asks once a round, and what cannot be
inside a wrapper is refused by a sentence when it is built. A wrapper whose setting leaves it
nothing to do gives the sampler's own tokens in its own rounds, inside blocks as well.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from maskwalk.analysis.contract.stand import BrokenContract, Stand, run, same
from maskwalk.decoding.policy import Sampler, UnmaskingPolicy, chooses_first
from maskwalk.errors import STOPS, MaskwalkError
from maskwalk.samplers.blocks import Blocks
from maskwalk.samplers.corrected import Corrected
from maskwalk.samplers.credit import Credit
from maskwalk.samplers.early_commit import EarlyCommit
from maskwalk.samplers.lossless import Lossless
from maskwalk.samplers.self_correct import SelfCorrect
from maskwalk.samplers.spaced import Spaced
from maskwalk.samplers.stochastic import Stochastic

ROWS = 24
NEVER = 1e6  # nats: no gap is as wide

Wrap = Callable[[Sampler], Sampler]
Holds = Callable[[Sampler], bool]


def _policy(sampler: Sampler) -> bool:
    return isinstance(sampler, UnmaskingPolicy)


def _keeps(sampler: Sampler) -> bool:
    return not sampler.remasks


def _on_its_canvas(sampler: Sampler) -> bool:
    return not sampler.asks_elsewhere


def _both(sampler: Sampler) -> bool:
    return _keeps(sampler) and _on_its_canvas(sampler)


# Each with the samplers it holds.
WRAPPERS: dict[str, tuple[Wrap, Holds]] = {
    "blocks(2, …)": (lambda inner: Blocks(2, inner), lambda inner: True),
    "blocks(99, …)": (lambda inner: Blocks(99, inner), lambda inner: True),
    "spaced(…, 2)": (lambda inner: Spaced(inner, 2), _policy),
    "stochastic(…, 0.5)": (lambda inner: Stochastic(inner, 0.5), _policy),
    "early_commit(…)": (lambda inner: EarlyCommit(inner, 1.0, 0.75, 0.5), _policy),
    "credit(…)": (Credit, _on_its_canvas),
    "lossless(…, 2)": (lambda inner: Lossless(inner, 2), _both),
    "corrected(…, 0.5, 2)": (lambda inner: Corrected(inner, 0.5, 2), _keeps),
    "self_correct(…, 2, 0.5)": (lambda inner: SelfCorrect(inner, 2, 0.5), _keeps),
}

# Those that do nothing, each with the samplers it does nothing to.
NOTHING: dict[str, tuple[Wrap, Holds]] = {
    "lossless(…, 1)": (lambda inner: Lossless(inner, 1), _both),
    "credit(…, alpha=0)": (lambda inner: Credit(inner, 0.0), _on_its_canvas),
    "early_commit(…) that never does": (
        lambda inner: EarlyCommit(inner, NEVER, NEVER, NEVER),
        chooses_first,
    ),
}


def fits_in_wrappers(sampler: Sampler, stand: Stand) -> None:
    """Works inside every wrapper that can hold it, and is refused in a sentence by the others."""
    tokens = stand.starts(ROWS)
    for name, (wrap, holds) in WRAPPERS.items():
        try:
            wrapped = wrap(sampler)
        except MaskwalkError as problem:
            if holds(sampler):
                raise BrokenContract(f"{name} refuses it: {problem}") from problem
            continue
        if not holds(sampler):
            raise BrokenContract(f"{name} takes it, which cannot work.")
        _told(name, partial(_works, wrapped, stand, tokens))
        if _policy(wrapped) and not isinstance(wrapped, Blocks):
            _told(f"blocks(3, {name})", partial(_works, Blocks(3, wrapped), stand, tokens))
    _told("a wrapper", partial(_left_alone, sampler, stand, tokens))


def _told(name: str, check: Callable[[], None]) -> None:
    """A check, and where it failed."""
    try:
        check()
    except BrokenContract as problem:
        raise BrokenContract(f"Inside {name}: {problem}") from problem
    except STOPS:
        raise
    except BaseException as problem:
        raise BrokenContract(
            f"Inside {name} it failed with {type(problem).__name__}: {problem}"
        ) from problem


def _works(wrapped: Sampler, stand: Stand, tokens: Tensor) -> None:
    """Fills what is masked, keeps what was given, and does so alone as among others."""
    mask = stand.denoiser.mask_id
    given = tokens != mask
    everyone = run(wrapped, stand.denoiser, tokens)
    if not torch.equal(everyone.tokens[given], tokens[given]):
        raise BrokenContract("A given token was changed.")
    if bool((everyone.tokens == mask).any()):
        raise BrokenContract("A position was left masked.")
    if _policy(wrapped) and not torch.equal(everyone.calls, everyone.rounds):
        raise BrokenContract(
            "It takes more than one call per round. A rule that reads view.whole has to say so: "
            "reads_whole."
        )
    some = torch.arange(ROWS - 1, 0, -5)  # of each kind, in another order
    part = run(wrapped, stand.denoiser, tokens[some], some)
    same(everyone, part, some, torch.arange(len(some)), f"in a batch of {len(some)}")


def _left_alone(sampler: Sampler, stand: Stand, tokens: Tensor) -> None:
    """Its own tokens and rounds inside wrappers that do nothing, alone and inside blocks."""
    blocks: dict[str, Wrap] = {"": lambda rule: rule, " in blocks": lambda rule: Blocks(3, rule)}
    for where, outer in blocks.items():
        plain = run(outer(sampler), stand.denoiser, tokens)
        for name, (wrap, idle) in NOTHING.items():
            if not idle(sampler):
                continue
            other = run(outer(wrap(sampler)), stand.denoiser, tokens)
            assert plain.trace is not None and other.trace is not None
            if not torch.equal(plain.tokens, other.tokens):
                raise BrokenContract(f"{name} changes its tokens{where}.")
            if not torch.equal(plain.trace.reveal_rounds(), other.trace.reveal_rounds()):
                raise BrokenContract(f"{name} changes its rounds{where}.")
