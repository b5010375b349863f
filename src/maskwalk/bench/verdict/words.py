"""The verdict as one plain sentence."""

from collections.abc import Sequence

from maskwalk.bench.verdict.verdict import Comparison, Place, best_of, standing

CLAUSES = {
    "beyond": "beyond the baselines' front on",
    "near": "as near to the law as one token at a time on",
    "on": "on the front on",
    "unclear": "neither shown to be on nor off the law on",
    "inside": "inside the front on",
    "dominated": "dominated on",
    "off": "off the law on",
    "void": "not coherent enough to tell on",
}


def sentence(name: str, found: Sequence[Comparison]) -> str:
    """Where it stands, with the oracle and with the models, and by how much."""
    at = standing(found)
    clauses = []
    for model, words in ((False, "with the oracle"), (True, "with the shipped models")):
        here = {structure: at[structure, m] for structure, m in at if m == model}
        parts = [
            f"{text} {_listed([s for s in here if here[s] == position], len(here))}"
            for position, text in CLAUSES.items()
            if position in here.values()
        ]
        if parts:
            clauses.append(f"{words}, {', '.join(parts)}")
    return f"{name} is, {'; '.join(clauses)}: {_reason(found, at)}."


def _reason(found: Sequence[Comparison], at: dict[Place, str]) -> str:
    """What the sentence rests on: the worst there is to say, or else the best."""
    off = [c for c in found if c.position == "off" and c.departure is not None]
    if off:
        return off_the_law(max(off, key=lambda c: c.departure.value if c.departure else 0.0))
    decided = [c for c in found if c.front is not None and c.position != "void"]
    best = best_of(decided)
    if best is None or best.front is None:
        return "neither it nor any baseline as cheap is coherent 5 % of the time"
    where = f"{best.setting}, {best.scene.title}"
    if best.position == "beyond":
        more = f"{best.gain:.2f} more often{_nats(best)}"
        return f"at {calls(best.calls)} it is coherent {more} ({where})"
    if best.position == "near":
        return f"{near_the_law(best)} ({where})"
    if best.position == "dominated" and best.cheaper is not None:
        other = f"{best.cheaper.calls.mean():.3g} do, {best.cheaper.sampler}"
        return f"even its best takes {calls(best.calls)} where {other} ({where})"
    if best.position == "inside":
        less = f"{-best.gain:.2f} less often than the front at {calls(best.calls)}"
        return f"even its best is coherent {less} ({where})"
    seen = max((c.seen for c in decided if c.seen is not None), default=None)
    limit = "" if seen is None else f", and a difference of {seen:.2f} would have been"
    return f"no difference to the front is shown at its calls{limit}"


def off_the_law(c: Comparison) -> str:
    """By how much, and what it buys."""
    assert c.departure is not None
    gained = "" if c.front is None else f" (coherence {c.gain:+.2f})"
    where = f"{c.setting}, {c.scene.title}"
    return (
        f"its sequences are off the law by {c.departure.value:.2f} in rank TV{gained}, so its "
        f"coherence is not that of the law's own samples ({where})"
    )


def near_the_law(c: Comparison) -> str:
    """How near, and what it gains."""
    assert c.departure is not None
    return f"within {max(c.departure.high, 0.0):.2f} of the law, coherence {c.gain:+.2f}"


def _nats(c: Comparison) -> str:
    kl = None if c.loss is None else c.loss.get("kl")
    return "" if kl is None or kl != kl or kl == float("inf") else f", losing {kl:.2g} nats"


def calls(number: float) -> str:
    """1 call, 5 calls."""
    return f"{number:.3g} call{'' if f'{number:.3g}' == '1' else 's'}"


def _listed(names: list[str], total: int) -> str:
    if len(names) == total and total > 1:
        return "every structure"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
