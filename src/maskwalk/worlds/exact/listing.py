"""All sequences of a small world, listed: the truth that everything else is compared with."""

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from maskwalk.errors import MaskwalkError
from maskwalk.stats import Estimate, plain_mean
from maskwalk.worlds.world import World

LISTED = 300_000  # sequences that are listed at most
SAMPLES, SEED = 100_000, 3  # for an entropy that has to be estimated
Listing = tuple[Int64[Tensor, "n length"], Float64[Tensor, " n"]]


def listing(world: World) -> Listing | None:
    """All sequences with their probabilities; None if they are too many or the law is unknown."""
    vocab, length = world.vocab_size, world.length
    if vocab**length > LISTED:
        return None
    index = torch.arange(vocab**length)
    tokens = torch.stack([index // vocab**d % vocab for d in reversed(range(length))], 1)
    log_probs = world.log_prob(tokens)
    return None if log_probs is None else (tokens, log_probs.exp())


def support_of(world: World) -> Listing | None:
    """The possible sequences with their probabilities: the world's own list, or the listing's."""
    support = getattr(world, "support", None)
    if support is not None:
        tokens, log_probs = support()
        return tokens, log_probs.exp()
    known = listing(world)
    return None if known is None else (known[0][known[1] > 0], known[1][known[1] > 0])


def listed_entropy(world: World) -> float | None:
    """−Σ p log p of the listing, in nats; None if there is none."""
    known = listing(world)
    return None if known is None else float(torch.special.entr(known[1]).sum())


def entropy_estimate(world: World, samples: int = SAMPLES) -> Estimate | None:
    """The entropy in nats: exact (error 0), or the mean of −log p over exact samples.

    None where nobody knows how likely a sequence is.
    """
    try:
        exact = getattr(world, "entropy", lambda: None)()
    except MaskwalkError:  # too large for an exact answer
        exact = None
    if exact is not None:
        return Estimate(float(exact), 0.0, 0)
    log_probs = world.log_prob(world.sample(samples, seed=SEED))
    return None if log_probs is None else plain_mean(-log_probs)
