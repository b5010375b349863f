"""Checks of the course: forward passes, repeats, temperature 0, the ranking, remasking, manners."""

from itertools import pairwise

import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.testing.calling import Outcome
from maskwalk.testing.laws import Independent, Law, fans, flat, ladder
from maskwalk.testing.result import FINDING, NOTED, PASSES, Result, not_applicable
from maskwalk.testing.trial import Trial, reveal_rounds, same_course

RANKS = ("confidence", "entropy", "margin", "random")
BEST_FIRST = {"confidence": "highest confidence", "entropy": "lowest entropy",
              "margin": "largest margin"}  # fmt: skip


def calls(trial: Trial) -> Result:
    """Forward passes for a number of steps, and what the decoder itself says they were."""
    if not trial.decoder.signature.takes("steps"):
        return not_applicable("calls", "it takes no number of steps")
    world, temperature = trial.world, 0.0 if trial.cold else 1.0
    counted, claimed, rows = dict[int, int](), dict[int, int](), 1.0
    for steps in (world.length, world.length // 2):
        found = trial.ask(world, trial.blank(world, 1), temperature=temperature, steps=steps)
        counted[steps], rows = found.calls, max(rows, found.rows / max(1, found.calls))
        if found.claimed is not None:
            claimed[steps] = found.claimed
    evidence = {"passes": counted, "claimed": claimed, "rows per pass and sequence": rows}
    words = _passes(counted)
    if any(n > steps for steps, n in counted.items()):
        return Result("calls", FINDING, f"More forward passes than steps: {words}.", evidence)
    if any(claimed.get(steps, n) != n for steps, n in counted.items()):
        said = f"It made these forward passes: {words}; and says {_passes(claimed)}."
        return Result("calls", FINDING, said, evidence)
    if rows > 1:
        said = f"Forward passes: {words}, each over {rows:g} rows per sequence."
        return Result("calls", NOTED, said, evidence)
    if not trial.batched:
        many = trial.ask(world, trial.blank(world, 64), temperature=temperature).calls
        evidence["passes of 64 together"] = many
        if many != counted[world.length]:
            said = f"Forward passes: {words}; {many} where 64 sequences are decoded together."
            return Result("calls", NOTED, said, evidence)
    return Result("calls", PASSES, f"Forward passes: {words}.", evidence)


def _passes(counts: dict[int, int]) -> str:
    return ", ".join(f"{n} at steps={steps}" for steps, n in counts.items())


def repeats(trial: Trial) -> Result:
    """The same seed gives the same result, at any temperature."""
    canvas = trial.prompted(1) if trial.decoder.prompts else trial.blank(trial.world, 1)
    for temperature in (0.0, 1.0) if trial.cold else (1.0,):
        one, two = (
            trial.ask(trial.world, canvas, temperature=temperature, seed=5) for _ in range(2)
        )
        if not same_course(one, two):
            return Result(
                "repeats",
                FINDING,
                f"Called twice with torch, numpy and random seeded alike, at temperature "
                f"{temperature:g}, it gives two results: it keeps something between calls, or "
                "draws from elsewhere.",
                {"one": one.tokens[0].tolist(), "two": two.tokens[0].tolist()},
            )
    return Result("repeats", PASSES, "The same seed gives the same result.")


def temperature_0(trial: Trial) -> Result:
    """At temperature 0 every token is the likeliest of its pass; does the seed matter?"""
    if not trial.cold:
        return not_applicable("temperature_0", "it takes no temperature")
    canvas = trial.prompted(1) if trial.decoder.prompts else trial.blank(trial.world, 1)
    runs = [trial.ask(trial.world, canvas, seed=seed) for seed in range(21, 29)]
    shares = [likeliest(trial, trial.world, found) for found in runs]
    known = [share for share in shares if share is not None]
    results = len({tuple(found.tokens[0].tolist()) for found in runs})
    evidence = {"seeds": len(runs), "results": results, "likeliest": known}
    if not known:
        return not_applicable("temperature_0", "its passes do not show every row")
    if min(known) < 1.0:
        return Result(
            "temperature_0",
            FINDING,
            f"{1 - min(known):.0%} of the tokens are not the likeliest ones of their pass.",
            evidence,
        )
    if not trial.settled:
        return Result(
            "temperature_0",
            NOTED,
            "Every token is the likeliest of its pass, but the order depends on the seed: "
            f"{results} results from {len(runs)} seeds.",
            evidence,
        )
    return Result(
        "temperature_0", PASSES, "Every token is the likeliest; the seed changes nothing.", evidence
    )


def likeliest(trial: Trial, law: Law, found: Outcome) -> float | None:
    """The share of revealed tokens that are the model's likeliest in the pass before."""
    model = trial.model(law)
    rounds = reveal_rounds(found, model.mask_id)
    if rounds is None or found.canvases is None:
        return None
    right = total = 0
    for number, canvas in enumerate(found.canvases):
        here = rounds == number
        best = model.conditionals(_whole(canvas, model.length, model.mask_id)).argmax(-1)
        right += int((best[:, : canvas.shape[1]] == found.tokens)[here].sum())
        total += int(here.sum())
    return right / total if total else None


def _whole(canvas: Tensor, length: int, mask_id: int) -> Tensor:
    tail = torch.full((len(canvas), length - canvas.shape[1]), mask_id)
    return torch.cat([canvas.clamp(max=mask_id), tail], 1)


def confidence(trial: Trial) -> Result:
    """The order of revealing is the one the decoder says it ranks by."""
    if trial.ranks is None:
        return not_applicable("confidence", "it does not say what it ranks by (--ranks)")
    if trial.ranks == "random":
        return not_applicable("confidence", "it says it takes positions at random")
    if not trial.cold:
        return not_applicable("confidence", "it takes no temperature, so its order is random")
    rounds = _rounds(trial, ladder(), 1, 0.0)
    if rounds is None:
        return not_applicable("confidence", "its passes do not show every row")
    order = rounds[0].argsort(stable=True).tolist()
    evidence = {"order": order, "rounds": rounds[0].tolist(), "says": trial.ranks}
    fits = [name for name, best in rankings(ladder()).items() if _fits(rounds[0], best)]
    evidence["fits"] = fits
    if int(rounds[0].max()) == int(rounds[0].min()):
        return not_applicable("confidence", "it reveals everything in one pass")
    if trial.ranks in fits:
        return Result(
            "confidence", PASSES, f"It reveals the {BEST_FIRST[trial.ranks]} first.", evidence
        )
    if f"{trial.ranks} reversed" in fits:
        return Result(
            "confidence",
            FINDING,
            f"It ranks by {trial.ranks} the wrong way round: the least certain position first.",
            evidence,
        )
    seen = f"it fits {', '.join(fits)}" if fits else f"positions in the order {order}"
    return Result(
        "confidence", FINDING, f"It does not reveal the {BEST_FIRST[trial.ranks]} first: {seen}.",
        evidence,
    )  # fmt: skip


def rankings(law: Independent) -> dict[str, list[int]]:
    """The order of positions, best first, by each score, and the other way round."""
    probs = law.log_probs.exp()
    top = probs.topk(2, -1).values
    scores = {
        "confidence": -top[:, 0],
        "entropy": torch.special.entr(probs).sum(-1),
        "margin": top[:, 1] - top[:, 0],
        "position": torch.arange(law.length).double(),
    }
    orders = {name: score.argsort(stable=True).tolist() for name, score in scores.items()}
    return orders | {f"{name} reversed": list(reversed(order)) for name, order in orders.items()}


def _fits(rounds: Int[Tensor, " length"], order: list[int]) -> bool:
    """Whether no position is revealed after one that ranks behind it."""
    along = rounds[order]
    return bool((along[1:] >= along[:-1]).all())


def noise(trial: Trial) -> Result:
    """At temperature 1 the order is the same: what draws tokens does not rank positions."""
    if trial.ranks in (None, "random"):
        return not_applicable("noise", "it says nothing it ranks by, or random order")
    law = ladder() if trial.ranks == "margin" else fans()
    order = rankings(law)[str(trial.ranks)]
    rows = 1 if trial.batched else 32
    found = [
        _rounds(trial, law, rows, trial.warm, seed)
        for seed in (range(31, 47) if rows == 1 else (31,))
    ]
    known = [rounds for rounds in found if rounds is not None]
    if not known:
        return not_applicable("noise", "its passes do not show every row")
    every = torch.cat(known)
    # The right order, or the wrong way round (which `confidence` says): noise has neither.
    off = min(sum(not _fits(rounds, way) for rounds in every) for way in (order, order[::-1]))
    evidence = {"sequences": len(every), "in another order": off, "order": order}
    if off:
        return Result(
            "noise",
            FINDING,
            f"Where no draw can change a score, {off} of {len(every)} sequences are revealed in "
            "another order at temperature 1: the noise that draws tokens is in the scores.",
            evidence,
        )
    return Result("noise", PASSES, "Drawing tokens does not change the order.", evidence)


def ties(trial: Trial) -> Result:
    """Where every position is alike, which is first?"""
    if not trial.cold:
        return not_applicable("ties", "it takes no temperature")
    rows = 1 if trial.batched else 64
    law = flat()
    found = [
        _rounds(trial, law, rows, 0.0, seed) for seed in (range(51, 67) if rows == 1 else (51,))
    ]
    known = [rounds for rounds in found if rounds is not None]
    if not known:
        return not_applicable("ties", "its passes do not show every row")
    every = torch.cat(known)
    first = (every == every.amin(1, keepdim=True)).sum(0).tolist()
    evidence = {"first picks by position": first}
    if max(first) == sum(first):
        place = first.index(max(first))
        return Result(
            "ties",
            NOTED,
            f"Equal scores always go to position {place}. A model whose answers tie at first "
            "(rotary positions, all masked) starts there every time.",
            evidence,
        )
    return Result("ties", PASSES, f"Equal scores are shared: first picks {first}.", evidence)


def remasks(trial: Trial) -> Result:
    """Are tokens taken back, and does the decoder say so?"""
    world = trial.world
    rows = 1 if trial.batched else 64
    found = trial.ask(world, trial.blank(world, rows), temperature=trial.warm,
                      steps=2 * world.length)  # fmt: skip
    if found.canvases is None:
        return not_applicable("remasks", "its passes do not show every row")
    course = [*found.canvases, found.tokens]
    back = changed = 0
    for before, after in pairwise(course):
        revealed = before != world.vocab_size
        back += int((revealed & (after == world.vocab_size)).sum())
        changed += int((revealed & (after != before) & (after != world.vocab_size)).sum())
    evidence = {"taken back": back, "changed": changed, "sequences": rows}
    if trial.remasks and not back + changed:
        return Result(
            "remasks", FINDING, f"It says it remasks, and takes no token of {rows} sequences back.",
            evidence,
        )  # fmt: skip
    if back + changed and not trial.remasks:
        return Result(
            "remasks",
            FINDING,
            f"It takes {back} tokens back and changes {changed} without saying so (--remasks).",
            evidence,
        )
    said = f"It takes {back + changed} tokens back." if trial.remasks else "No token is taken back."
    return Result("remasks", PASSES, said, evidence)


def manners(trial: Trial) -> Result:
    """What it leaves behind: output, settings of the process, the random generator."""
    canvas = trial.prompted(1) if trial.decoder.prompts else trial.blank(trial.world, 1)
    states = {
        trial.ask(trial.world, canvas, temperature=1.0, seed=seed).generator for seed in (71, 72)
    }
    wrong = []
    if len(states) == 1:
        wrong.append("sets the seed of torch itself, so every call draws the same numbers")
    if trial.printed:
        wrong.append(f"prints ({' '.join(trial.printed.split())[:60]!r})")
    if trial.changed:
        wrong.append(f"changes {', '.join(sorted(trial.changed))}")
    if wrong:
        return Result("manners", FINDING, f"It {'; it '.join(wrong)}.")
    return Result("manners", PASSES, "It prints nothing and leaves the process as it found it.")


def _rounds(
    trial: Trial, law: Law, rows: int, temperature: float, seed: int = 1
) -> Int[Tensor, "batch length"] | None:
    found = trial.ask(law, trial.blank(law, rows), temperature=temperature, seed=seed)
    return reveal_rounds(found, law.vocab_size)
