"""Checks of the law: one token per step, the precision of a draw, and the curve over steps."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from scipy.stats import chi2, poisson
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from maskwalk.stats import goodness_of_fit, share_se
from maskwalk.testing.calling import Failed
from maskwalk.testing.laws import RARE, rare
from maskwalk.testing.result import FINDING, PASSES, Point, Result, not_applicable
from maskwalk.testing.trial import FALSE_ALARM, Trial, reveal_rounds

RANDOM = ("rand", "rand_like", "uniform_", "exponential_", "multinomial", "bernoulli", "normal_")
DRAWN = 40_000  # single tokens for the precision
CURVE = 2000  # sequences at each number of steps


def law(trial: Trial) -> Result:
    """As many steps as tokens, temperature 1: the sequences follow the world's law."""
    world = trial.world
    tokens, passes = trial.sample(world)
    sequences, probs = trial.support
    statistic, freedom = goodness_of_fit(tokens.clamp(max=world.vocab_size), sequences, probs)
    impossible = 1 - _coherence(trial, tokens)
    p = float(chi2.sf(statistic, freedom))
    sizes = _sizes(trial)
    evidence: dict[str, Any] = {
        "sequences": len(tokens),
        "chi_square": statistic if statistic < float("inf") else None,
        "freedom": freedom,
        "p": p,
        "impossible": impossible,
        "tokens per pass": sizes,
        "passes": passes,
    }
    if p >= FALSE_ALARM:
        said = f"Its {len(tokens):,} sequences follow the world's law (chi-square {statistic:.0f} "
        return Result("law", PASSES, f"{said}on {freedom}).", evidence)
    how = (
        f"{impossible:.1%} of them are impossible in this world"
        if statistic == float("inf")
        else f"chi-square {statistic:.0f} on {freedom}"
    )
    why = ""
    if sizes is not None and max(sizes) > 1:
        told = ", ".join(f"{size:g}" for size in sizes)
        why = f" It does not reveal one token per step but {told}."
    elif sizes is not None:
        why = " It reveals one token per step: what it draws, or which draw it keeps, is at fault."
    return Result(
        "law",
        FINDING,
        f"With as many steps as tokens its sequences do not follow the world's law ({how}).{why}",
        evidence,
    )


def _sizes(trial: Trial) -> list[float] | None:
    """How many tokens of a sequence each pass reveals, on average."""
    found = trial.ask(trial.world, trial.blank(trial.world, 1), temperature=trial.warm, seed=3)
    rounds = reveal_rounds(found, trial.world.vocab_size)
    if rounds is None:
        return None
    counts = torch.bincount(rounds.clamp(min=0).flatten(), minlength=found.calls)
    return [float(count) for count in counts]


def precision(trial: Trial) -> Result:
    """Tokens of probability 2^-11 to 2^-13 come up as often as they should, in two precisions."""
    if trial.batched:
        return not_applicable("precision", "one sequence at a time gives too few draws to tell")
    law, evidence, wrong = rare(), dict[str, Any](), []
    for dtype in (torch.float32, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        try:
            with _spied() as kinds:
                trial.sample(law, 2, dtype=dtype)
            tokens, _ = trial.sample(law, DRAWN, dtype=dtype)
        except Failed as problem:
            return not_applicable("precision", f"a sequence of one token is refused ({problem})")
        drawn = int((tokens >= 2).sum())
        expected = sum(RARE) * len(tokens)
        evidence[name] = {
            "drawn": drawn,
            "expected": round(expected, 1),
            "tokens": len(tokens),
            "random numbers": sorted(kinds),
        }
        # Logits in bfloat16 are up to 3 % off themselves, so only half of the mass counts.
        if poisson.cdf(drawn, expected / 2) < FALSE_ALARM:
            wrong.append(f"{drawn} of {expected:.0f} expected with a {name} model")
    used = sorted({kind for one in evidence.values() for kind in one["random numbers"]})
    numbers = f" Its random numbers are {' and '.join(used)}." if used else ""
    if wrong:
        said = f"Tokens of probability at most 2^-11 are cut off: drawn {'; '.join(wrong)}."
        return Result("precision", FINDING, f"{said}{numbers}", evidence)
    said = f"Tokens down to 2^-13 come up as often as they should.{numbers}"
    return Result("precision", PASSES, said, evidence)


class _Spy(TorchDispatchMode):
    """Notes the precision of every random number that is made."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kinds: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in RANDOM:
            source = args[0] if args and isinstance(args[0], Tensor) else found
            if source.is_floating_point():
                self.kinds.add(str(source.dtype).removeprefix("torch."))
        return found


@contextmanager
def _spied() -> Iterator[set[str]]:
    spy = _Spy()
    with spy:
        yield spy.kinds


def curve(trial: Trial) -> tuple[Result, tuple[Point, ...], dict[str, float]]:
    """Coherence, KL and TV at several numbers of steps, beside what exact sequences get."""
    world = trial.world
    sequences, probs = trial.support
    if not trial.decoder.signature.takes("steps"):
        return not_applicable("curve", "it takes no number of steps"), (), {}
    points, refused = [], []
    wanted = sorted({world.length, -(-world.length // 2), 2, 1}, reverse=True)
    for steps in wanted:
        try:
            tokens, passes = trial.sample(world, CURVE, steps=steps, seed=13 + steps)
        except Failed as problem:
            refused.append(f"steps={steps}: {problem}")
            continue
        share = _coherence(trial, tokens)
        kl, tv = distances(tokens, sequences, probs)
        points.append(
            Point(steps, passes, share, share_se(share, len(tokens)), kl, tv, len(tokens))
        )
    if not points:
        return not_applicable("curve", refused[0]), (), {}
    exact = world.sample(points[0].sequences, seed=5)
    kl, tv = distances(exact, sequences, probs)
    best = f"{points[0].coherence:.3f} at {points[0].passes:g} passes"
    last = f"{points[-1].coherence:.3f} at {points[-1].passes:g}"
    more = f" Refused: {refused[0]}" if refused else ""
    said = f"Coherence {best}, {last}; KL {points[0].kl:.3f} to {points[-1].kl:.3f} nats.{more}"
    return Result("curve", PASSES if not refused else "noted", said), tuple(points), {
        "kl": kl,
        "tv": tv,
    }  # fmt: skip


def distances(tokens: Tensor, sequences: Tensor, probs: Tensor) -> tuple[float, float]:
    """KL(law ‖ sample) in nats, each possible sequence counted half a time more, and TV."""
    table = {tuple(row): i for i, row in enumerate(sequences.tolist())}
    counts = torch.zeros(len(probs), dtype=torch.float64)
    for row in tokens.tolist():
        place = table.get(tuple(row))
        if place is not None:
            counts[place] += 1
    outside = 1 - float(counts.sum()) / len(tokens)
    smooth = (counts + 0.5) / (len(tokens) + 0.5 * len(probs))
    kl = float((probs * (probs.log() - smooth.log())).sum())
    tv = 0.5 * (float((counts / len(tokens) - probs).abs().sum()) + outside)
    return max(kl, 0.0), tv


def _coherence(trial: Trial, tokens: Tensor) -> float:
    """The share of sequences that the world allows."""
    possible = {tuple(row) for row in trial.support[0].tolist()}
    return sum(tuple(row) in possible for row in tokens.tolist()) / len(tokens)
