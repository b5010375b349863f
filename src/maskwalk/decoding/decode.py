"""The only decoding loop in the project.

`decode` owns the stepping, so a sampler is thirty lines: it hands the sampler a canvas, a denoiser
that counts its own calls (no sampler miscounts by mistake), and the round's random streams; rows
leave as soon as the sampler is done with them (complete, for all but remasking ones), and their
counts stop with them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.decoding.arguments import (
    as_draw,
    as_sampler,
    as_streams,
    as_tokens,
    check_question,
)
from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.checks import (
    check_finished,
    check_rounds,
    check_state,
    check_step,
)
from maskwalk.decoding.counting import Counted
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.policy import Sampler
from maskwalk.decoding.scores import entropy
from maskwalk.decoding.trace import Trace
from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.arguments import as_denoiser
from maskwalk.errors import MaskwalkError
from maskwalk.kernels.small import any_of_each, count_of_each, large, larger, small, some
from maskwalk.streams import Streams


@dataclass(frozen=True)
class Decoded:
    """What `decode` returns: the tokens, and what each sequence cost."""

    tokens: Int[Tensor, "batch length"]
    calls: Int[Tensor, " batch"]
    rounds: Int[Tensor, " batch"]
    widest: Int[Tensor, " batch"]  # the most positions that changed in one round
    trace: Trace | None = None

    def __repr__(self) -> str:
        rows, length = self.tokens.shape
        calls = self.calls.double().mean()
        return f"<Decoded {rows} sequences of {length} tokens, {calls:.3g} calls each>"


def decode(
    sampler: Sampler | str,
    denoiser: Denoiser | str,
    tokens: Any,
    *,
    streams: Streams | None = None,
    seed: int | None = None,
    draw: Draw | str | None = None,
    ties: str | None = None,
    trace: bool | int = False,
    on_round: Callable[[Tensor, Tensor], None] | None = None,
) -> Decoded:
    """Fills every masked position of `tokens` (batch, length) with `sampler`, or a spec of one.

    `denoiser` may be the name of a model: "zoo:NAME", a trained directory, "hf:NAME". Positions
    that hold its `mask_id` are filled; everything else is given and kept. `seed`
    draws row i from stream i; `streams` carries a seed and an id per row instead: a row's result
    depends on nothing else. `draw` may be a preset or a spec. `trace` records what happens to every
    row, or to as many first ones as it says. `on_round` is told at first and after every round
    which rows are open and their tokens.
    """
    rule, tokens = as_sampler(sampler), as_tokens(tokens)
    denoiser = as_denoiser(denoiser)
    drawing, ties = as_draw(draw, ties)
    streams = as_streams(streams, seed, tokens)
    check_question(tokens, denoiser, streams, trace, on_round)
    batch, length = tokens.shape
    streams = streams._ahead(length)
    device = tokens.device
    counted = Counted(denoiser, batch, device)
    result, rounds = tokens.clone(), torch.zeros(batch, dtype=torch.int64, device=device)
    widest = rounds.clone()
    changed = small(widest.clone())  # the most so far, of the rows that are still open
    trace_rows = batch if trace is True else int(trace)
    recorder = (
        Trace.start(tokens[:trace_rows], streams.ids[:trace_rows], denoiser.mask_id)
        if trace_rows
        else None
    )

    canvas = Canvas(tokens, tokens != denoiser.mask_id, denoiser.mask_id)
    canvas = _after(canvas, canvas, 0, check_state(rule, rule.init(canvas), batch))
    rows, round = torch.arange(batch, device=device), 0
    most = check_rounds(rule, rule.max_rounds(length))
    if on_round is not None:
        on_round(rows, tokens)
    while True:
        done_few = _finished(rule, canvas)
        if some(done_few):
            done, most_of = large(done_few), large(changed)
            left = rows[done]
            result[left], widest[left], rounds[left] = canvas.tokens[done], most_of[done], round
            if len(left) == len(rows):
                return Decoded(result, counted.calls, rounds, widest, recorder)
            open_rows = ~done
            canvas, rows = canvas.select(open_rows), rows[open_rows]
            changed = small(most_of[open_rows])
            streams = streams.select(open_rows)
        if round >= most:
            raise MaskwalkError(f"{rule!r} did not finish {length} positions in {round} rounds.")
        rng = RoundStreams(streams, round, length, drawing, ties)
        seen = rng.watch = _Watch(canvas.tokens) if recorder is not None else None
        counted.rows = rows
        after, moved = check_step(
            rule, canvas, rule.step(canvas, counted, rng), denoiser.vocab_size
        )
        if recorder is not None and seen is not None:
            n = int((rows < trace_rows).sum())  # rows stay in order as others leave
            told = (canvas.tokens, after.tokens, seen.log_prob, seen.nats)
            recorder.add(round, rows[:n], *(x[:n] for x in told))
        if on_round is not None:
            on_round(rows, after.tokens)
        changed = larger(changed, count_of_each(moved))
        round += 1
        canvas = _after(canvas, after, round, after.state)


def _finished(rule: Sampler, canvas: Canvas) -> Any:
    """Which rows are done, as `small` gives it."""
    if getattr(rule.finished, "__func__", None) is Sampler.finished:
        return ~any_of_each(canvas.masked_few)  # what it says, without making a tensor of it
    return small(check_finished(rule, rule.finished(canvas), canvas.tokens.shape[0]))


def _after(before: Canvas, canvas: Canvas, round: int, state: State) -> Canvas:
    """A canvas in its next round; what was given stays what it was."""
    new = Canvas(canvas.tokens, before.given, before.mask_id, round, state, canvas.open)
    new.__dict__.update(few=canvas.few, given_few=before.given_few)  # known already
    return new


class _Watch:
    """Two canvases that fill with log p(token) and the marginal's entropy as tokens are drawn."""

    def __init__(self, tokens: Int[Tensor, "batch length"]) -> None:
        self.log_prob = torch.full_like(tokens, torch.nan, dtype=torch.float64)
        self.nats = self.log_prob.clone()

    def __call__(self, at: Tensor, log_probs: Tensor, tokens: Tensor) -> None:
        self.log_prob[at] = log_probs.gather(1, tokens[:, None])[:, 0].to(torch.float64)
        self.nats[at] = entropy(log_probs)
