"""Checks of rows: are they filled, kept, read at the right place, and each its own?"""

import numpy as np
import torch
from scipy.stats import binom, chi2
from torch import Tensor

from maskwalk.testing.calling import Failed
from maskwalk.testing.laws import certain
from maskwalk.testing.result import FINDING, PASSES, Result, not_applicable
from maskwalk.testing.trial import FALSE_ALARM, Trial, reveal_rounds

ALONE, BATCH, BATCHES = 200, 100, 8  # sequences where only laws can be compared


def runs(trial: Trial) -> Result:
    """One sequence, several, and fewer steps than tokens: every mask becomes a token."""
    world = trial.world
    for temperature in (0.0, 1.0) if trial.cold else (1.0,):
        for steps in (world.length, world.length // 2, 1):
            found = trial.ask(
                world, trial.blank(world, 1), temperature=temperature, steps=steps, seed=steps
            )
            left = int((found.tokens == world.vocab_size).sum())
            beyond = int(((found.tokens > world.vocab_size) | (found.tokens < 0)).sum())
            if left or beyond:
                what = f"{left} masks" if left else f"{beyond} tokens that the model rules out"
                return Result(
                    "runs",
                    FINDING,
                    f"With steps={steps} and temperature {temperature:g} it left {what} among "
                    f"{world.length} tokens.",
                )
            if found.calls == 0:
                return Result("runs", FINDING, "It gave back tokens without asking the model.")
    return Result("runs", PASSES, "It fills every mask with a token, at one step and at many.")


def alignment(trial: Trial) -> Result:
    """In a law of one sequence, another token at every place, that sequence comes out."""
    law = certain()
    found = trial.ask(law, trial.blank(law, 1), temperature=0.0 if trial.cold else 1.0)
    truth = torch.arange(1, law.length + 1) % law.vocab_size
    got = found.tokens[0]
    evidence = {"expected": truth.tolist(), "got": got.tolist()}
    if torch.equal(got, truth):
        return Result("alignment", PASSES, "Every position gets its own answer.", evidence)
    shift = next((s for s in (1, -1, 2, -2) if _shifted(got, truth, s)), None)
    wrong = f"{int((got != truth).sum())} of {law.length} positions"
    said = f"{wrong} get an answer that is not theirs."
    if shift is not None:
        side = f"{abs(shift)} to the {'right' if shift > 0 else 'left'}"
        said = f"{wrong} get the answer of the one {side}: an off-by-one in the logits' shift."
    return Result("alignment", FINDING, said, evidence)


def _shifted(got: Tensor, truth: Tensor, shift: int) -> bool:
    inner = slice(max(0, -shift), len(truth) - max(0, shift))
    return torch.equal(got[inner], truth.roll(-shift)[inner])


def given_tokens(trial: Trial) -> Result:
    """What was given comes back as it was given."""
    if not trial.decoder.prompts:
        return not_applicable("given_tokens", "it takes no prompt")
    canvases = [trial.prompted(1, given) for given in (1, 2)]
    if not trial.batched:
        canvases.append(trial.prompted(4, 2))
    if trial.decoder.holes:
        sequences, _ = trial.support
        hole = sequences[:1].clone()
        hole[:, [0, 2, trial.world.length - 1]] = trial.world.vocab_size
        canvases.append(hole)
    for canvas in canvases:
        for temperature in (0.0, 1.0) if trial.cold else (1.0,):
            found = trial.ask(trial.world, canvas, temperature=temperature)
            given = canvas != trial.world.vocab_size
            wrong = (found.tokens != canvas) & given
            if bool(wrong.any()):
                row, place = (int(x) for x in wrong.nonzero()[0])
                return Result(
                    "given_tokens",
                    FINDING,
                    f"{int(wrong.sum())} of {int(given.sum())} given tokens were overwritten: the "
                    f"one at position {place} was {int(canvas[row, place])} and came back as "
                    f"{int(found.tokens[row, place])}.",
                    {"given": canvas[row].tolist(), "got": found.tokens[row].tolist()},
                )
    where = "in front and between masks" if trial.decoder.holes else "in front"
    return Result("given_tokens", PASSES, f"Tokens given {where} are kept.")


def batch(trial: Trial) -> Result:
    """A sequence gets the same result alone and in every batch."""
    if trial.batched:
        return Result("batch", FINDING, f"Several sequences at once: {trial.batched}")
    if trial.settled and trial.decoder.prompts:
        return _compared(trial, trial.prompted(8, 2), "batch")
    return _laws_compared(trial)


def uneven_rows(trial: Trial) -> Result:
    """Rows with different numbers of masks in one batch: each gets what it gets alone."""
    if not trial.decoder.holes:
        return not_applicable("uneven_rows", "its rows always have equally many masks")
    if trial.batched:
        return not_applicable("uneven_rows", "it takes one sequence at a time")
    if not trial.settled:
        return not_applicable("uneven_rows", "its results at temperature 0 depend on the seed")
    sequences, probs = trial.support
    canvas = sequences[probs.argsort(descending=True)[:6]].clone()
    last = trial.world.length - 1
    for row in range(len(canvas)):
        canvas[row, [i for i in range(last + 1) if i == last or i > row]] = trial.world.vocab_size
    return _compared(trial, canvas, "uneven_rows")


def _compared(trial: Trial, canvas: Tensor, check: str) -> Result:
    """Rows alone, together, in reverse and in pairs, at temperature 0: token by token."""
    world, rows = trial.world, torch.arange(len(canvas))
    steps = world.length
    alone = [trial.ask(world, canvas[r : r + 1], steps=steps) for r in rows.tolist()]
    orders = [rows, rows.flip(0), rows[:2], rows[-3:], rows[::3]]
    for order in orders:
        try:
            found = trial.ask(world, canvas[order], steps=steps)
        except Failed as problem:
            return Result(check, FINDING, f"In a batch of {len(order)}: {problem}")
        rounds = reveal_rounds(found, world.vocab_size)
        for place, row in enumerate(order.tolist()):
            evidence = {
                "prompt": canvas[row].tolist(),
                "alone": alone[row].tokens[0].tolist(),
                "in a batch": found.tokens[place].tolist(),
                "batch": len(order),
            }
            masks = int((canvas[row] == world.vocab_size).sum())
            where = f"A sequence with {masks} masks, in a batch of {len(order)},"
            left = int((found.tokens[place] == world.vocab_size).sum())
            if left and not bool((alone[row].tokens == world.vocab_size).any()):
                return Result(
                    check, FINDING, f"{where} comes back with {left} masks; alone it has none.",
                    evidence,
                )  # fmt: skip
            if not torch.equal(alone[row].tokens[0], found.tokens[place]):
                return Result(check, FINDING, f"{where} gets other tokens than alone.", evidence)
            own = reveal_rounds(alone[row], world.vocab_size)
            if own is not None and rounds is not None and not torch.equal(own[0], rounds[place]):
                evidence |= {"rounds alone": own[0].tolist(), "rounds": rounds[place].tolist()}
                return Result(
                    check, FINDING, f"{where} is revealed in another order than alone.", evidence
                )
    words = "alone, in pairs and in batches, whatever the neighbours"
    kinds = "rows with different numbers of masks" if check == "uneven_rows" else "a sequence"
    return Result(check, PASSES, f"At temperature 0 {kinds} get the same {words}.".replace(
        "a sequence get ", "a sequence gets "), {"rows": len(canvas)})  # fmt: skip


def _laws_compared(trial: Trial) -> Result:
    """Sequences drawn one by one, against those drawn beside others: two samples, chi-square."""
    world = trial.world
    prompts = trial.prompted(2, 1) if trial.decoder.prompts else trial.blank(world, 2)
    one, mixed = prompts[:1], prompts.repeat(BATCH // 2, 1)
    alone = [
        trial.ask(world, one, temperature=trial.warm, seed=1000 + i).tokens for i in range(ALONE)
    ]
    beside = [
        trial.ask(world, mixed, temperature=trial.warm, seed=5000 + i) for i in range(BATCHES)
    ]
    together = torch.cat([found.tokens[0 :: len(prompts)] for found in beside])
    p, statistic, freedom = two_samples(torch.cat(alone), together)
    alike, place = _alike(together, torch.cat([*alone, together]))
    evidence = {"p": p, "chi_square": statistic, "freedom": freedom, "alone": ALONE}
    evidence["p of neighbours"] = alike
    if p < FALSE_ALARM:
        said = f"have different laws (chi-square {statistic:.0f} on {freedom})"
        return Result(
            "batch",
            FINDING,
            f"Sequences drawn alone and in a batch of {len(mixed)} {said}.",
            evidence,
        )
    if alike < FALSE_ALARM:
        return Result(
            "batch",
            FINDING,
            f"Neighbours in a batch get the same token at position {place} more often than chance.",
            evidence,
        )
    return Result(
        "batch",
        PASSES,
        f"Sequences drawn alone and in a batch of {len(mixed)} are not told apart (chi-square "
        f"{statistic:.0f} on {freedom}); its results depend on the seed, so laws are compared.",
        evidence,
    )


def _alike(together: Tensor, every: Tensor) -> tuple[float, int]:
    """(p, position) where neighbours agree most beyond chance, corrected for the positions."""
    pairs = together[: len(together) // 2 * 2].view(-1, 2, together.shape[1])
    ps = []
    for place in range(together.shape[1]):
        share = torch.bincount(every[:, place]).double() / len(every)
        agree = int((pairs[:, 0, place] == pairs[:, 1, place]).sum())
        ps.append(float(binom.sf(agree - 1, len(pairs), min(1.0, float((share**2).sum())))))
    return min(1.0, min(ps) * len(ps)), ps.index(min(ps))


def two_samples(one: Tensor, other: Tensor) -> tuple[float, float, int]:
    """(p, chi-square, freedom) that two sets of sequences have one law; rare ones are pooled."""
    _, inverse = torch.unique(torch.cat([one, other]), dim=0, return_inverse=True)
    first = np.bincount(inverse[: len(one)], minlength=int(inverse.max()) + 1).astype(float)
    second = np.bincount(inverse[len(one) :], minlength=len(first)).astype(float)
    order = np.argsort(first + second)
    edges, total = [0], 0.0
    for i, amount in enumerate((first + second)[order]):
        total += amount
        if total >= 20:
            edges.append(i + 1)
            total = 0.0
    edges[-1] = len(order)
    if len(edges) < 3:
        return 1.0, 0.0, 0
    a, b = (np.add.reduceat(counts[order], edges[:-1]) for counts in (first, second))
    share = a.sum() / (a.sum() + b.sum())
    expected = (a + b) * share
    statistic = float(((a - expected) ** 2 / (expected * (1 - share))).sum())
    return float(chi2.sf(statistic, len(a) - 1)), statistic, len(a) - 1


def padding(trial: Trial) -> Result:
    """A shorter prompt, padded to the left, gets what it gets without pads."""
    decoder, world = trial.decoder, trial.world
    if decoder.like not in ("llada", "dream"):
        return not_applicable("padding", "sequences of this style have one length")
    if not decoder.signature.takes("attention"):
        return not_applicable(
            "padding", "it takes no attention_mask, so prompts of two lengths do not mix"
        )
    if trial.batched:
        return not_applicable("padding", "it takes one sequence at a time")
    canvas = trial.prompted(4, 2)
    pads = torch.tensor([0, 1, 0, 1])
    canvas[pads == 1, 0] = 0
    found = trial.ask(world, canvas, pads=pads, temperature=0.0 if trial.settled else 1.0)
    shown = sum(asked.pads for asked in found.asked)
    if shown:
        return Result(
            "padding",
            FINDING,
            f"The model was shown {shown} pads as if they were text: attention_mask does not reach "
            "every forward pass.",
            {"pads": shown, "passes": sum(asked.pads > 0 for asked in found.asked)},
        )
    if not trial.settled:
        return Result(
            "padding", PASSES, "The model never sees a pad. (Results depend on the seed.)"
        )
    for row in range(len(canvas)):
        skip = int(pads[row])
        alone = trial.ask(world, canvas[row : row + 1, skip:])
        if not torch.equal(alone.tokens[0], found.tokens[row, skip:]):
            return Result(
                "padding",
                FINDING,
                f"A prompt with {skip} pads gets other tokens than without.",
                {"without": alone.tokens[0].tolist(), "with": found.tokens[row, skip:].tolist()},
            )
    return Result("padding", PASSES, "A padded prompt gets what it gets alone; no pad is seen.")
