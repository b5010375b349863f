"""Samplers that run another one first: its rounds, on the rows that are still in that phase."""

from dataclasses import replace

from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.counting import asking_for
from maskwalk.decoding.policy import Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.samplers.parts.rows import written

PREFIX = "inner "


def inner_state(state: State) -> State:
    """What the inner sampler remembers, under names of its own."""
    return {PREFIX + name: value for name, value in state.items()}


def inner_round(
    rule: Sampler,
    canvas: Canvas,
    denoise: Denoiser,
    rng: RoundStreams,
    rows: Bool[Tensor, " batch"],
) -> Canvas:
    """One round of the inner sampler on some of the rows: it never sees one that it has filled."""
    some = canvas.select(rows)
    known = {
        name.removeprefix(PREFIX): value
        for name, value in some.state.items()
        if name.startswith(PREFIX)
    }
    after = rule.step(replace(some, state=known), asking_for(denoise, rows), rng.on(rows))
    state = dict(canvas.state)
    for name, value in inner_state(after.state).items():
        state[name] = written(state[name], rows, value)
    return replace(canvas, tokens=written(canvas.tokens, rows, after.tokens), state=state)
