"""Lossless: the next steps of another sampler, drafted from one answer and verified side by side.

The inner sampler takes canvas c_j to c_{j+1} by a step that reads the marginals of c_j. Draft its
next steps with marginals that are a step old: ĉ_1 = c_1 is certain, ĉ_2, ĉ_3, … are guesses. Ask
about ĉ_1 … ĉ_k side by side; then, in turn, take the inner sampler's own step from ĉ_j with ĉ_j's
own marginals. While it arrives at ĉ_{j+1} its answer is at hand and the next step is taken too; the
first step that arrives elsewhere is kept as well, and the drafts behind it are dropped. The last
answer used drafts the next round.

Every step kept is the inner sampler's, with its random numbers, so the tokens are those that the
inner sampler gives alone with the same seed, for any denoiser, draw and temperature. A draft shares
its random numbers with the step it guesses (a coupling): a random order is always guessed right,
and a token is as soon as both marginals put the same token at that number. A round is one depth of
at most k calls and takes 1 to k of the inner steps; the first takes one. Defaults: the most
confident position, k = 4.

The inner sampler must keep what it reveals and ask about nothing but its canvas.

Source: FreeDave [arXiv 2510.00294], whose steps are argmaxes; the public code (cychomatica/FreeDave
8b48121) also accepts a draft that is a subset of the step that verifies it, here both are equal.
Kin: Spiffy [arXiv 2509.18085], which drafts a graph of states. With tokens drawn at random it is
speculative sampling in a policy's own order; `speculative` refuses fewer drafts, by rejection, but
keeps only the law, and only of fixed orders.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.kinds import EXACT, SHAPED
from maskwalk.decoding.policy import SAMPLERS, Sampler, chooses_first
from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError, whole
from maskwalk.samplers.parts.answers import Answers
from maskwalk.samplers.parts.inner import Default, Inner, on_its_canvas, sampler
from maskwalk.samplers.parts.rows import written
from maskwalk.specs import Spec

ONE = Default("confidence", (), {"block": 1})
INNER = "inner "


@SAMPLERS.register("lossless")
@dataclass(frozen=True)
class Lossless(Sampler):
    """Another sampler's own steps, up to k per round: drafted, then verified side by side."""

    inner: Inner = ONE
    k: int = 4
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        {"inner": ONE, "k": 2},
        {"inner": ONE, "k": 8},
        {"inner": Spec("random", (), {"block": 1}), "k": 4},
        {"inner": Spec("entropy", (), {"block": 2}), "k": 4},
    )

    def __post_init__(self) -> None:
        inner = sampler("inner", self.inner)
        if inner.remasks:
            raise MaskwalkError(
                f"inner must be a sampler that keeps what it reveals; {inner!r} takes tokens back."
            )
        object.__setattr__(self, "inner", on_its_canvas(inner))
        whole("k", self.k, 1, 1000)

    @property
    def law_kind(self) -> str:
        """Exact where the inner sampler is, one token at a time by its own rule included."""
        inner = sampler("inner", self.inner)
        one = chooses_first(inner) and inner.reveals_one
        return EXACT if one or inner.law_kind == EXACT else SHAPED

    @property
    def lasting(self) -> tuple[str, ...]:  # type: ignore[override]
        """The inner sampler's rounds run on over blocks, and what it says that lasts."""
        return ("round", *(INNER + name for name in sampler("inner", self.inner).lasting))

    def first_picks(self, length: int) -> range | None:
        """The inner sampler's: the first round is its first step."""
        return sampler("inner", self.inner).first_picks(length)

    @property
    def asks_elsewhere(self) -> bool:
        """Its drafts."""
        return self.k > 1 or super().asks_elsewhere

    def init(self, canvas: Canvas) -> State:
        """`round`: inner steps taken; `draft`: canvases to come, `drafted`: how many of them."""
        steps = torch.zeros_like(canvas.tokens[:, 0])
        draft = canvas.tokens[:, None].expand(-1, self.k - 1, -1).clone()
        inner = sampler("inner", self.inner).init(canvas)
        return {"round": steps, "draft": draft, "drafted": steps.clone()} | _named(inner)

    def finished(self, canvas: Canvas) -> Bool[Tensor, " batch"]:
        """Where the inner sampler has."""
        return sampler("inner", self.inner).finished(_inner(canvas))

    def max_rounds(self, length: int) -> int:
        """The inner sampler's: every round takes a step."""
        return sampler("inner", self.inner).max_rounds(length)

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """Ask about the canvas and its drafts, take the steps they allow, draft anew."""
        guesses = torch.cat([canvas.tokens[:, None], canvas.state["draft"]], 1)
        place = torch.arange(self.k, device=guesses.device)
        asked = guesses == canvas.mask_id
        asked &= (place <= canvas.state["drafted"][:, None])[:, :, None]
        if canvas.open is not None:
            inside = asked & canvas.open[:, None]
            all_of_it = sampler("inner", self.inner).reads_whole
            asked = asked & inside.any(2, keepdim=True) if all_of_it else inside
        answers = Answers.to(denoise, guesses, asked)
        now, last = canvas, torch.zeros_like(canvas.state["drafted"])
        going = torch.ones_like(canvas.masked[:, 0])
        for j in range(self.k):
            now = self._advance(now, going, answers.of(last), rng)
            if j + 1 == self.k:
                break
            right = (now.tokens == guesses[:, j + 1]).all(1) & (j < canvas.state["drafted"])
            going = going & right & ~self.finished(now)
            last = torch.where(going, j + 1, last)
            if not bool(going.any()):
                break
        return self._draft(now, answers.of(last), rng)

    def _draft(self, now: Canvas, answers: Answers, rng: RoundStreams) -> Canvas:
        """What the inner sampler would do next if the last answer held on."""
        guess, going = now, ~self.finished(now)
        drafts, count = [], torch.zeros_like(now.state["drafted"])
        blind = RoundStreams(rng.streams, rng.round, rng.length, rng.drawing, rng.ties)
        for _ in range(self.k - 1):
            if bool(going.any()):
                guess = self._advance(guess, going, answers, blind)
                count = count + going
                going = going & ~self.finished(guess)
            drafts.append(guess.tokens)
        draft = torch.stack(drafts, 1) if drafts else now.state["draft"]
        return replace(now, state=now.state | {"draft": draft, "drafted": count})

    def _advance(self, canvas: Canvas, rows: Tensor, answers: Answers, rng: RoundStreams) -> Canvas:
        """The inner sampler's step on some of the rows, each in its own round."""
        tokens, state = canvas.tokens, dict(canvas.state)
        for number in canvas.state["round"][rows].unique().tolist():
            some = rows & (canvas.state["round"] == number)
            part = replace(_inner(canvas.select(some)), round=number)
            streams = rng.on(some)
            streams.round = number
            after = sampler("inner", self.inner).step(part, answers.on(some, part.tokens), streams)
            tokens = written(tokens, some, after.tokens)
            for name, value in after.state.items():
                state[INNER + name] = written(state[INNER + name], some, value)
        state["round"] = canvas.state["round"] + rows
        return replace(canvas, tokens=tokens, state=state)


def _inner(canvas: Canvas) -> Canvas:
    """The canvas with what the inner sampler remembers of it."""
    size = len(INNER)
    state = {name[size:]: x for name, x in canvas.state.items() if name.startswith(INNER)}
    return replace(canvas, state=state)


def _named(state: State) -> State:
    return {INNER + name: value for name, value in state.items()}
