"""What every world keeps, as checks that say in a sentence what is broken.

The tests run them over every registered world in a small size; run them over yours:

    from maskwalk import broken_world
    assert broken_world(Coins(length=4)) == {}

Where all sequences can be listed, the law is compared with the listing: probabilities add up to 1,
samples follow them (chi-square at a false-alarm rate of 1e-6, fixed seeds, so a pass stays a pass),
and the oracle equals the sum over all sequences that agree, to 1e-10 and with true zeros. What a
world does not know (None) is not checked.
"""

from collections.abc import Callable

import numpy as np
import torch
from scipy.special import chdtrc

from maskwalk.stats import goodness_of_fit
from maskwalk.worlds.exact.listing import listing
from maskwalk.worlds.world import World, as_world

CLOSE, FALSE_ALARM = 1e-10, 1e-6


class BrokenWorld(AssertionError):
    """What a world does that it must not do."""


def samples_are_numbered(world: World) -> None:
    """A sample depends on its seed and number alone, and holds tokens of the vocabulary."""
    many = world.sample(20, 3)
    if many.shape != (20, world.length) or many.dtype != torch.int64:
        raise BrokenWorld(f"sample(20, …) gives {tuple(many.shape)} of {many.dtype}.")
    if not bool(((many >= 0) & (many < world.vocab_size)).all()):
        raise BrokenWorld("A sample holds something that is not a token.")
    if not torch.equal(world.sample(7, 3, first=5), many[5:12]):
        raise BrokenWorld("Samples number 5 to 11 are not the same when drawn alone.")
    if torch.equal(world.sample(20, 4), many) and len(many.unique(dim=0)) > 1:
        raise BrokenWorld("Another seed gives the same samples.")


def samples_are_possible(world: World) -> None:
    """What the world draws, it calls valid, and likelier than never."""
    tokens = world.sample(200, 0)
    valid, log_probs = world.valid(tokens), world.log_prob(tokens)
    if valid is not None and (valid.shape != tokens.shape or not bool(valid.all())):
        raise BrokenWorld("A sequence of the world's own is not valid.")
    if log_probs is not None and not bool(log_probs.isfinite().all()):
        raise BrokenWorld("A sequence of the world's own has probability zero.")


def valid_is_the_support(world: World) -> None:
    """A sequence is valid everywhere if, and only if, its probability is positive."""
    generator = np.random.Generator(np.random.Philox(5))
    noise = torch.from_numpy(generator.integers(0, world.vocab_size, (400, world.length)))
    own = world.sample(400, 1)
    mixed = torch.where(torch.from_numpy(generator.random(own.shape) < 0.15), noise, own)
    tokens = torch.cat([noise, mixed])
    valid, log_probs = world.valid(tokens), world.log_prob(tokens)
    if valid is None or log_probs is None:
        return
    if not torch.equal(valid.all(1), log_probs > -torch.inf):
        raise BrokenWorld("`valid` and `log_prob` disagree on which sequences are possible.")


def probabilities_add_up(world: World) -> None:
    """Over all sequences they sum to 1."""
    known = listing(world)
    if known is not None and abs(float(known[1].sum()) - 1) > 1e-9:
        raise BrokenWorld(f"The probabilities of all sequences sum to {float(known[1].sum()):.9g}.")


def samples_follow_the_law(world: World) -> None:
    """Chi-square of 4,000 samples against the listed probabilities."""
    known = listing(world)
    if known is None:
        return
    possible = known[1] > 0
    statistic, freedom = goodness_of_fit(
        world.sample(4000, 11), known[0][possible], known[1][possible]
    )
    if chdtrc(freedom, statistic) < FALSE_ALARM:
        raise BrokenWorld(f"Samples do not follow log_prob (chi-square {statistic:.0f}).")


def entropy_is_right(world: World) -> None:
    """Where the world has entropy(), it is −Σ p log p of the listing."""
    known, entropy = listing(world), getattr(world, "entropy", None)
    if known is None or entropy is None or entropy() is None:
        return
    nats = float(torch.special.entr(known[1]).sum())
    if abs(float(entropy()) - nats) > 1e-9 * max(1.0, nats):
        raise BrokenWorld(f"entropy() is {entropy():.9g}, and the listing has {nats:.9g} nats.")


def oracle_is_the_truth(world: World) -> None:
    """Its conditionals are those of the listing, for evidence that is possible."""
    known, oracle = listing(world), world.oracle()
    if known is None or oracle is None:
        return
    tokens, probs = known
    samples = world.sample(24, 2)
    reveal = torch.from_numpy(np.random.Generator(np.random.Philox(9)).random(samples.shape) < 0.4)
    canvas = torch.where(reveal, samples, oracle.mask_id)
    canvas[0] = oracle.mask_id
    answers = oracle(canvas).to(torch.float64).exp()
    row = 0
    for line in canvas:
        agree = ((tokens == line) | (line == oracle.mask_id)).all(1)
        weights = torch.where(agree, probs, 0.0)
        for i in (line == oracle.mask_id).nonzero()[:, 0].tolist():
            truth = torch.zeros(world.vocab_size, dtype=torch.float64)
            truth.index_add_(0, tokens[:, i], weights / weights.sum())
            if float((answers[row] - truth).abs().max()) > CLOSE:
                raise BrokenWorld(f"The oracle is off by {(answers[row] - truth).abs().max():.1g}.")
            if not torch.equal(answers[row] == 0, truth == 0):
                raise BrokenWorld("The oracle has no zero where a token is impossible.")
            row += 1


def any_order_gives_the_law(world: World) -> None:
    """One position at a time, in any order, the oracle's conditionals multiply to log_prob."""
    oracle = world.oracle()
    tokens = world.sample(6, 7)
    log_probs = world.log_prob(tokens)
    if oracle is None or log_probs is None:
        return
    for seed in (0, 1):
        canvas, total = torch.full_like(tokens, oracle.mask_id), torch.zeros_like(log_probs)
        order = np.random.Generator(np.random.Philox(seed)).permutation(world.length).tolist()
        for i in order:
            at = torch.zeros_like(tokens, dtype=torch.bool)
            at[:, i] = True
            total += oracle(canvas, at).gather(1, tokens[:, i : i + 1])[:, 0].to(total)
            canvas[:, i] = tokens[:, i]
        if float((total - log_probs).abs().max()) > 1e-8 * world.length:
            raise BrokenWorld(f"In the order {order} the conditionals do not give log_prob.")


def shows_a_sequence(world: World) -> None:
    """`show` gives text, for a broken sequence too, and with masks if it is `pictured`."""
    own = world.sample(1, 0)[0]
    shown = [own, own.roll(1), torch.zeros_like(own)]
    if getattr(world, "pictured", False):
        shown += [own.where(own % 2 == 0, world.vocab_size), torch.full_like(own, world.vocab_size)]
    for tokens in shown:
        if not isinstance(world.show(tokens), str):
            raise BrokenWorld("show() gives something that is not text.")


CHECKS: dict[str, Callable[[World], None]] = {
    check.__name__: check
    for check in (
        samples_are_numbered,
        samples_are_possible,
        valid_is_the_support,
        probabilities_add_up,
        samples_follow_the_law,
        entropy_is_right,
        oracle_is_the_truth,
        any_order_gives_the_law,
        shows_a_sequence,
    )
}


def broken_world(world: World | str) -> dict[str, str]:
    """Each check that a world (or the world of a spec) fails, and why; empty if it keeps all."""
    world = as_world(world)
    broken: dict[str, str] = {}
    for name, check in CHECKS.items():
        try:
            check(world)
        except BrokenWorld as problem:
            broken[name] = str(problem)
        except Exception as problem:
            broken[name] = f"It failed with {type(problem).__name__}: {problem}"
    return broken
