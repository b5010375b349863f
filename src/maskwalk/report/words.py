"""Counts, lists, ranges and commands as a person writes them."""

import re
import shlex
from collections.abc import Sequence

from maskwalk.bench.labels import read, spoken
from maskwalk.bench.records import Record

SHAPED_MEANS = (
    "shaped: drawn first, taken back or truncated, so the sequences may follow another law than "
    "the denoiser's."
)
IMPOSSIBLE = "impossible evidence"  # how the note of an oracle begins


def plural(count: int, word: str) -> str:
    """ "1 world", "5 worlds"."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def listed(words: Sequence[str], most: int = 8) -> str:
    """ "a, b and c", at most so many; "a; b, c; and d" where the words hold commas themselves."""
    words = list(words)
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} more"]
    if len(words) == 1:
        return words[0]
    if any("," in word for word in words):
        return "; ".join([*words[:-1], f"and {words[-1]}"])
    return ", ".join(words[:-1]) + " and " + words[-1]


def brief(value: float) -> str:
    """One decimal, and none where it is a zero."""
    return f"{value:.1f}".removesuffix(".0")


def span(values: Sequence[float], digits: int | None = None) -> str:
    """ "5", or "6.1–6.4" where the values differ; with so many decimals if said."""
    if not values:
        return "–"
    ends = (min(values), max(values))
    texts = [brief(v) if digits is None else f"{v:.{digits}f}" for v in ends]
    return "–".join(dict.fromkeys(texts))


def capital(text: str) -> str:
    """The first letter large, the others as they are."""
    return text[:1].upper() + text[1:]


def small(text: str) -> str:
    """The first letter small, but not that of an acronym."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def chance(p: float) -> str:
    """A p-value with three decimals, or that it is smaller."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def note_words(note: str) -> str:
    """A note of a record in plain words: what was impossible, large numbers with separators, and
    "per" for the "a" of older ones."""
    if note.startswith(IMPOSSIBLE):
        return f"where the tokens so far fit no sequence, {_answered(note)}"
    text = re.sub(r"(?<![\w.])\d{4,}(?![\w.])", lambda number: f"{int(number[0]):,}", note)
    return text.replace(" sequences a call", " sequences per call")


def sample_notes(record: Record) -> list[str]:
    """The notes of one setting as sentences; none on what was impossible if nothing was."""
    times, notes = record.get("impossible"), record.get("notes") or []
    told = []
    for note in map(str, notes):
        if not note.startswith(IMPOSSIBLE) or times is None:
            told.append(capital(note_words(note)) + ".")
        elif times:
            fits = f"{plural(times, 'time')} the tokens so far fitted no sequence"
            told.append(f"{capital(fits)}; {_answered(note)}.")
    return told


def _answered(note: str) -> str:
    """What an oracle answers to the impossible, by the note it leaves in a record."""
    every = "every token alike" if "uniform over" in note else "those that break fewest steps"
    return f"the oracle then answers with {every}"


def file_stem(*parts: str) -> str:
    """Words as a file name."""
    text = " ".join(parts).lower()
    return "-".join("".join(c if c.isalnum() else " " for c in text).split())


def quoted(word: str) -> str:
    """A word for a shell, in the quotes that a person would choose."""
    plain = re.fullmatch(r"""[^"$`\\!]*'[^"$`\\!]*""", word)
    return f'"{word}"' if plain else shlex.quote(word)


def typed(words: Sequence[str]) -> str:
    """A command of maskwalk as a person would type it."""
    return " ".join(["maskwalk", *map(quoted, words)])


def world_words(spec: str) -> str:
    """A world in words: its graph, if it is one of walks, and the number of nodes."""
    world = read(spec)
    graph = world.kwargs.get("graph")
    if graph is None:
        return capital(spoken(world.name))
    about = read(str(graph))
    nodes, p = about.kwargs.get("nodes"), about.kwargs.get("p")
    law = read(str(world.kwargs.get("law", ""))).name
    kind = capital(spoken(about.name))
    if about.name == "st_er":
        kind = "Tree" if p == 0 else "Graph"
    words = f"{kind} of {nodes:,} nodes" if isinstance(nodes, int) else kind
    if about.name == "st_er" and p and isinstance(nodes, int):
        words += f", average degree {2 * (nodes - 1) / nodes + float(p) * (nodes - 2):.2g}"
    return words if law in ("lazy", "") else f"{words}, {spoken(law)} walk"
