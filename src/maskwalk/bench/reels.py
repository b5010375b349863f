"""One sequence of a cell being unmasked: what changed in every round, and what was expected before.

The denoiser is asked again about the canvas before each round, at every masked position: the
entropy of its marginal and its likeliest tokens are what a sampler had to choose from.
"""

from dataclasses import dataclass, replace
from math import exp

import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.bench.cell import Cell, run_cell
from maskwalk.decoding.scores import entropy
from maskwalk.decoding.trace import Trace
from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.resolve import build_denoiser
from maskwalk.errors import whole
from maskwalk.worlds.world import build_world

LIKELIEST = 3  # tokens named at a masked position
MOST_ROUNDS = 2_000  # of a sequence that is recorded
MOST_SEQUENCES = 4_096


@dataclass(frozen=True)
class Change:
    """A position that a round changed; without a token it was masked again."""

    position: int
    token: int | None
    prob: float | None  # of the token, when it was drawn
    nats: float | None  # entropy of the marginal it was drawn from


@dataclass(frozen=True)
class Guess:
    """What the denoiser expects at a masked position."""

    position: int
    nats: float
    likeliest: tuple[tuple[int, float], ...]  # tokens and their probabilities


@dataclass(frozen=True)
class Reel:
    """One sequence of one sampler, from what was given to the last token."""

    sampler: str
    given: tuple[int | None, ...]
    rounds: tuple[tuple[Change, ...], ...]
    guesses: tuple[tuple[Guess, ...], ...]  # before every round
    tokens: tuple[int, ...]
    valid: tuple[bool, ...] | None  # of the tokens; None: nobody can check
    calls: int
    kind: str  # exact, factorised or shaped


def record_reel(cell: Cell, sequence: int = 0, device: str = "cpu") -> Reel:
    """Decodes a cell's prompts up to this sequence, and keeps that one's story."""
    whole("sequence", sequence, 0, MOST_SEQUENCES - 1)
    alone = replace(cell, count=sequence + 1, per_prompt=1, metrics=())
    record, decoded = run_cell(alone, device, trace=True)
    assert decoded.trace is not None
    trace, world = _only(decoded.trace, sequence), build_world(cell.world)
    last = whole("rounds of the sequence", int(decoded.rounds[sequence]), 0, MOST_ROUNDS)
    canvases = _canvases(trace, last)
    denoiser = build_denoiser(cell.denoiser, world, device)
    final = decoded.tokens[sequence]
    valid = world.valid(final[None])
    return Reel(
        sampler=cell.sampler,
        given=tuple(None if t == trace.mask_id else t for t in canvases[0].tolist()),
        rounds=tuple(_changes(trace, number) for number in range(last)),
        guesses=tuple(_guesses(denoiser, canvas.to(device)) for canvas in canvases[:-1]),
        tokens=tuple(final.tolist()),
        valid=None if valid is None else tuple(valid[0].tolist()),
        calls=int(decoded.calls[sequence]),
        kind=record["kind"],
    )


def _only(trace: Trace, sequence: int) -> Trace:
    """The events of one sequence."""
    mine = trace.events["sequence"] == sequence
    events = {name: column[mine] for name, column in trace.events.items()}
    return Trace(torch.tensor([sequence]), trace.length, trace.mask_id, events)


def _canvases(trace: Trace, last: int) -> list[Int[Tensor, " length"]]:
    """Before the first round and after every one, also those that changed nothing."""
    canvases = [canvas[0] for canvas in trace.replay()]
    return [*canvases, *(canvases[-1] for _ in range(last + 1 - len(canvases)))]


def _changes(trace: Trace, number: int) -> tuple[Change, ...]:
    now = trace.events["round"] == number
    columns = (trace.events[name][now].tolist() for name in ("position", "token", "log_prob"))
    return tuple(
        Change(
            position,
            None if token == trace.mask_id else token,
            exp(log_prob) if log_prob == log_prob else None,
            nats if nats == nats else None,
        )
        for position, token, log_prob, nats in zip(*columns, trace.events["entropy"][now].tolist())
    )


def _guesses(denoiser: Denoiser, canvas: Int[Tensor, " length"]) -> tuple[Guess, ...]:
    masked = (canvas == denoiser.mask_id).nonzero()[:, 0].tolist()
    if not masked:
        return ()
    log_probs = denoiser(canvas[None]).double()
    nats = entropy(log_probs).tolist()
    best = log_probs.exp().topk(min(LIKELIEST, log_probs.shape[1]), dim=1)
    rows = zip(masked, nats, best.indices.tolist(), best.values.tolist())
    return tuple(
        Guess(position, spread, tuple((t, p) for t, p in zip(tokens, probs) if p > 0))
        for position, spread, tokens, probs in rows
    )
