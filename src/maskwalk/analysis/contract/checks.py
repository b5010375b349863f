"""The contract every sampler keeps, as checks that say in a sentence what is broken.

The same checks run over every registered sampler in the tests, over deliberately broken ones
(tests/mutants), and over yours. Statistical checks use chi-square at a false-alarm rate of 1e-6,
with fixed seeds, so a pass stays a pass.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from scipy.special import chdtrc
from torch import Tensor

from maskwalk.analysis.contract.redraw import chooses_blindly, redrawn_share
from maskwalk.analysis.contract.stand import BrokenContract, Sequential, Stand, run, same
from maskwalk.analysis.contract.wrapped import fits_in_wrappers
from maskwalk.analysis.law import sampler_law
from maskwalk.decoding.kinds import EXACT, FACTORISED
from maskwalk.decoding.policy import Sampler, UnmaskingPolicy
from maskwalk.decoding.scores import score
from maskwalk.errors import STOPS, MaskwalkError, UserCodeError, own_source
from maskwalk.stats import goodness_of_fit

FALSE_ALARM = 1e-6


def terminates(sampler: Sampler, stand: Stand) -> None:
    """Fills every position with a clean token, keeps what was given, reveals in every round."""
    tokens = stand.canvas(64)
    result = run(sampler, stand.denoiser, tokens)
    given = tokens != stand.denoiser.mask_id
    if not bool((result.tokens[given] == tokens[given]).all()):
        raise BrokenContract("A given token was changed.")
    if not bool(((result.tokens >= 0) & (result.tokens < stand.denoiser.vocab_size)).all()):
        raise BrokenContract("A position was left masked or filled with something not a token.")
    if bool((result.calls < (~given).any(1).to(torch.int64)).any()):
        raise BrokenContract("A sequence was filled without a single call of the denoiser.")
    if isinstance(sampler, UnmaskingPolicy) and not torch.equal(result.calls, result.rounds):
        raise BrokenContract("A policy must take exactly one call per round.")


def deterministic(sampler: Sampler, stand: Stand) -> None:
    """The same seed gives the same tokens, calls and trace."""
    tokens = stand.canvas(64)
    one, two = (run(sampler, stand.denoiser, tokens) for _ in range(2))
    same(one, two, torch.arange(64), torch.arange(64), "run twice with the same seed")


def batch_free(sampler: Sampler, stand: Stand) -> None:
    """A sequence's result does not depend on the batch: sizes 1, 7 and 512, and permuted."""
    tokens = stand.canvas(512)
    everyone = run(sampler, stand.denoiser, tokens)
    for some in (*torch.arange(8).split(1), torch.arange(7), torch.arange(8, 15)):
        part = run(sampler, stand.denoiser, tokens[some], some)
        same(everyone, part, some, torch.arange(len(some)), f"in a batch of {len(some)}")
    order = torch.from_numpy(np.random.Generator(np.random.Philox(3)).permutation(512))
    shuffled = run(sampler, stand.denoiser, tokens[order], order)
    same(everyone, shuffled, order, torch.arange(512), "in a permuted batch")


def ties_are_fair(sampler: Sampler, stand: Stand) -> None:
    """Where all scores tie, the first pick is uniform over the positions the rule allows."""
    allowed = sampler.first_picks(stand.length)
    if allowed is None:
        return
    tokens = torch.full((stand.samples, stand.length), stand.flat.mask_id)
    result = run(sampler, stand.flat, tokens)
    assert result.trace is not None
    first = (result.trace.reveal_rounds() == 0).to(torch.float64)
    counts = first.sum(0).numpy()
    outside = counts.sum() - counts[list(allowed)].sum()
    if outside:
        raise BrokenContract("With all scores equal it picks positions its rule does not allow.")
    # A set of b picks has less spread than b independent ones, so compare with its own variance.
    share = counts.sum() / len(tokens) / len(allowed)
    spread = len(tokens) * share * (1 - share) * len(allowed) / max(1, len(allowed) - 1)
    if spread < 1e-9:
        return
    statistic = ((counts[list(allowed)] - len(tokens) * share) ** 2).sum() / spread
    if chdtrc(max(1, len(allowed) - 1), statistic) < FALSE_ALARM:
        rates = ", ".join(f"{c / len(tokens):.3f}" for c in counts)
        raise BrokenContract(f"Ties are not broken uniformly; first picks by position: {rates}.")


def ranks_as_stated(sampler: Sampler, stand: Stand) -> None:
    """The first picks are the ones its stated score ranks lowest."""
    if sampler.ranks_by is None:
        return
    # One revealed end, so that scores differ along the rest even under a stationary law.
    full = torch.full((64, stand.length), stand.denoiser.mask_id)
    first = run(Sequential(), stand.denoiser, full).tokens[:, :1]
    tokens = torch.cat([first, full[:, 1:]], 1)
    result = run(sampler, stand.denoiser, tokens)
    assert result.trace is not None
    packed = score(sampler.ranks_by, stand.denoiser(tokens), stand.denoiser.score_grid)
    scores = packed.view(len(tokens), -1)
    picked = result.trace.reveal_rounds()[:, 1:] == 0
    allowed = torch.zeros(stand.length - 1, dtype=torch.bool)
    allowed[list(sampler.first_picks(stand.length - 1) or range(stand.length - 1))] = True
    if not bool((scores[:, allowed].amin(1) < scores[:, allowed].amax(1)).any()):
        raise BrokenContract("The trial cannot tell: all its scores tie.")
    worst = scores.masked_fill(~picked, -torch.inf).amax(1)
    best_left = scores.masked_fill(picked | ~allowed, torch.inf).amin(1)
    if bool((worst > best_left).any()):
        raise BrokenContract(f"It does not reveal the lowest {sampler.ranks_by} first.")


def law_is_as_enumerated(sampler: Sampler, stand: Stand) -> None:
    """The tokens it produces have the law that its choices, enumerated exactly, imply."""
    if not isinstance(sampler, UnmaskingPolicy):
        return
    start = torch.full((stand.length,), stand.denoiser.mask_id)
    try:
        outputs, probs = sampler_law(sampler, stand.denoiser, start)
    except MaskwalkError as problem:
        if "not enumerable" in str(problem):
            return
        raise
    _follows(sampler, stand, (outputs, probs), "the law that its enumerated choices imply")


def draws_from_the_marginals(sampler: Sampler, stand: Stand) -> None:
    """The tokens of a factorised rule are those its choices and the denoiser's marginals imply."""
    if sampler.law_kind != FACTORISED:
        return
    share = redrawn_share(sampler, stand.denoiser, stand.canvas(64), seed=11)
    if share < 1.0:
        raise BrokenContract(
            f"{1 - share:.0%} of its tokens are not drawn from the denoiser's marginals at the "
            "positions it chose: it changes marginals or tokens on the way."
        )
    if not chooses_blindly(sampler, stand.denoiser, stand.canvas(64), seed=11):
        raise BrokenContract("Its choices depend on the tokens that will be drawn there.")


def exact_as_stated(sampler: Sampler, stand: Stand) -> None:
    """A sampler that says it is exact has the law of one token at a time."""
    if sampler.law_kind != EXACT:
        return
    start = torch.full((stand.length,), stand.denoiser.mask_id)
    law = sampler_law(Sequential(), stand.denoiser, start)
    _follows(sampler, stand, law, "the law of one at a time, though it says it is exact")


def _follows(sampler: Sampler, stand: Stand, law: tuple[Tensor, Tensor], words: str) -> None:
    """Tokens of fully masked sequences against a law, by chi-square."""
    start = torch.full((stand.samples, stand.length), stand.denoiser.mask_id)
    statistic, freedom = goodness_of_fit(run(sampler, stand.denoiser, start).tokens, *law)
    if chdtrc(freedom, statistic) < FALSE_ALARM:
        raise BrokenContract(
            f"Its tokens do not follow {words} (chi-square {statistic:.0f} on {freedom})."
        )


def remasks_as_stated(sampler: Sampler, stand: Stand) -> None:
    """A sampler that says it remasks does so, and one that does not say so never does."""
    result = run(sampler, stand.denoiser, torch.full((512, stand.length), stand.denoiser.mask_id))
    assert result.trace is not None
    # A position that changes twice was taken back, whether it was masked in between or not.
    places = torch.stack([result.trace.events[name] for name in ("sequence", "position")])
    remasked = places.unique(dim=1).shape[1] < places.shape[1]
    if remasked != sampler.remasks:
        raise BrokenContract(
            "It never takes a token back although it says it remasks."
            if sampler.remasks
            else "It takes tokens back without saying so."
        )


CHECKS: dict[str, Callable[[Sampler, Stand], None]] = {
    check.__name__: check
    for check in (
        terminates,
        deterministic,
        batch_free,
        ties_are_fair,
        ranks_as_stated,
        law_is_as_enumerated,
        draws_from_the_marginals,
        exact_as_stated,
        remasks_as_stated,
        fits_in_wrappers,
    )
}


def failures(sampler: Sampler, stand: Stand) -> Iterator[tuple[str, str]]:
    """(check, reason) of everything the sampler breaks; a crash is a broken contract too.

    A crash of a sampler from a user's file is told with their lines instead (`UserCodeError`).
    """
    for name, check in CHECKS.items():
        try:
            check(sampler, stand)
        except BrokenContract as problem:
            yield name, str(problem)
        except STOPS:
            raise
        except BaseException as problem:
            if own_source(sampler) is not None and not _sentence(problem):
                raise  # a user's file that does not run has no law to judge
            yield name, f"It failed with {type(problem).__name__}: {problem}"


def _sentence(problem: BaseException) -> bool:
    """Whether it says what the sampler did wrong, rather than that it does not run."""
    return isinstance(problem, MaskwalkError) and not isinstance(problem, UserCodeError)


__all__ = ["CHECKS", "FALSE_ALARM", "BrokenContract", "Stand", "failures", "goodness_of_fit"]
