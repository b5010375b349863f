"""What `maskwalk generate` prints: texts and what they cost, or the same as JSON."""

import json
from typing import Any

from rich.text import Text

from maskwalk.cli.common import err, out
from maskwalk.decoding.generation import Generated
from maskwalk.denoisers.language.model import LanguageModel


def print_texts(texts: list[str], decoding: str, model: LanguageModel, made: Generated) -> None:
    """The texts, numbered if there are several, their cost, and how to get them again."""
    for number, written in enumerate(texts, 1):
        front = f"{number}  " if len(made.texts) > 1 else ""
        out.print(Text(front, style="dim"), Text(written), sep="")
    calls = made.calls.double().mean()
    rate = int(made.new.sum()) / max(made.seconds, 1e-9)
    cost = f"{calls:.4g} calls per text · {made.tokens_per_call:.2f} tokens per call"
    out.print(Text(f"\n{cost} · {made.seconds:.2f} s · {rate:.4g} tokens per second", style="dim"))
    out.print(Text(decoding, style="dim"), soft_wrap=True)
    for note in (*model.notes, *made.notes):
        err.print(Text(f"Note: {note}.", style="dim"))


def print_json(
    denoiser: str, sampler: str, settings: dict[str, Any], model: LanguageModel, made: Generated
) -> None:
    """The settings, the texts, and what they cost."""
    from maskwalk import __version__

    lengths = [
        row.shape[0] - _filled(row, given, model.mask)
        for row, given in zip(made.tokens, made.given)
    ]
    summary = {
        "denoiser": denoiser,
        "sampler": sampler,
        **settings,
        "length": made.tokens.shape[1],
        "texts": made.texts,
        "answers": made.answers,
        "tokens": [row[:n].tolist() for row, n in zip(made.tokens, lengths)],
        "new": made.new.tolist(),
        "calls": made.calls.tolist(),
        "calls_mean": float(made.calls.double().mean()),
        "tokens_per_call": made.tokens_per_call,
        "seconds": made.seconds,
        "version": __version__,
        "notes": [*getattr(model.denoiser, "notes", ()), *model.notes, *made.notes],
    }
    if made.trace is not None:
        summary["rounds"] = made.trace.reveal_rounds().tolist()
    print(json.dumps(summary))


def _filled(row: Any, given: Any, mask: int) -> int:
    """How many masks a row was filled up with."""
    return int(((row == mask) & given).sum())
