"""The verdict in plain sentences: one for the oracle, one for the models, each with its reason."""

from collections.abc import Sequence

from maskwalk.bench.verdict.verdict import Comparison, best_of, standing

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
    """Where it stands, with the oracle and with the models: one statement for each, and why."""
    at = standing(found)
    told: list[str] = []
    for model, words in ((False, "With the oracle"), (True, "With the shipped models")):
        here = {structure: at[structure, m] for structure, m in at if m == model}
        own = [c for c in found if c.scene.model == model]
        parts = [
            _clause(position, [s for s in here if here[s] == position], len(here), own)
            for position in CLAUSES
            if position in here.values()
        ]
        if parts:
            told.append(f"{words}, {'it' if told else name} is {_joined(parts)}. {_reason(own)}")
    return " ".join(told).strip()


def _clause(position: str, names: list[str], total: int, own: Sequence[Comparison]) -> str:
    """ "on the front on tree (a difference of 0.26 would have shown)"."""
    text = f"{CLAUSES[position]} {_listed(names, total)}"
    if position != "on":
        return text
    seen = [c.seen for c in own if c.position == "on" and c.scene.structure in names]
    most = max((one for one in seen if one is not None), default=None)
    if most is None:
        return f"{text} (no difference shows)"
    return f"{text} (a difference of {min(most, 1.0):.2f} would have shown)"


def _reason(found: Sequence[Comparison]) -> str:
    """What this rests on: the worst there is to say, or else the best; "" where it was said."""
    off = [c for c in found if c.position == "off" and c.departure is not None]
    if off:
        worst = max(off, key=lambda c: c.departure.value if c.departure else 0.0)
        return _sentence(off_the_law(worst))
    decided = [c for c in found if c.front is not None and c.position != "void"]
    best = best_of(decided)
    if best is None or best.front is None:
        return "Neither it nor any baseline as cheap is coherent 5 % of the time."
    where = f"{best.setting}, {best.scene.title}"
    if best.position == "beyond":
        more = f"{best.gain:.2f} more often{_nats(best)}"
        return f"At {calls(best.calls)} it is coherent {more} ({where})."
    if best.position == "near":
        return _sentence(f"{near_the_law(best)} ({where})")
    if best.position == "dominated" and best.cheaper is not None:
        other = f"{best.cheaper.sampler} takes {best.cheaper.calls.mean():.3g}"
        return f"Even its best setting takes {calls(best.calls)} where {other} ({where})."
    if best.position == "inside":
        less = f"{-best.gain:.2f} less often than the front at {calls(best.calls)}"
        return f"Even its best setting is coherent {less} ({where})."
    return ""


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, and {parts[-1]}"


def off_the_law(c: Comparison) -> str:
    """By how much, and what it buys."""
    assert c.departure is not None
    gained = "" if c.front is None else f" (coherence {signed(c.gain)})"
    where = f"{c.setting}, {c.scene.title}"
    return (
        f"its sequences are off the law by {c.departure.value:.2f} in rank TV{gained}, so its "
        f"coherence is not that of the law's own samples ({where})"
    )


def near_the_law(c: Comparison) -> str:
    """How near, and what it gains."""
    assert c.departure is not None
    return f"within {max(c.departure.high, 0.0):.2f} of the law, coherence {signed(c.gain)}"


def _nats(c: Comparison) -> str:
    kl = None if c.loss is None else c.loss.get("kl")
    return "" if kl is None or kl != kl or kl == float("inf") else f", losing {kl:.2g} nats"


def signed(value: float, digits: int = 2) -> str:
    """+0.25; what rounds to nothing has no sign."""
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def calls(number: float) -> str:
    """1 call, 5 calls."""
    return f"{number:.3g} call{'' if f'{number:.3g}' == '1' else 's'}"


def _listed(names: list[str], total: int) -> str:
    if len(names) == total and total > 1:
        return "every structure"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
