"""Info-Gain: try several moves, look one call ahead, keep the one that leaves least uncertain.

A move a is a set of `block` masked positions and a token drawn at each. Draw N moves: the first
takes the positions whose drawn tokens x are likeliest, p_i(x_i); each other draws tokens anew and
takes the largest p_i(x_i)/T + Gumbel noise; a set of positions that was met before is dropped. Ask
about the canvas after every move, side by side, and keep the first with the largest

    J(a) = −Σ_{i∈a} H_i − H̄(a)      gain="info_gain"
    J(a) = −H̄(a)                     gain="lookum"

H_i the entropy now, H̄(a) the mean entropy after the move over all that is then masked, also outside
an open block. Where every masked position has max p_i ≥ `threshold`, or no more than `block` are
left, all are revealed without looking ahead. Defaults N = 8 (`candidates`), T = 0.2, threshold 0.8,
one position a move.

Source: Info-Gain sampler [arXiv 2602.18176]; lookum is LookUM's score [arXiv 2511.05563] as the
public code has it (yks23/Information-Gain-Sampler 0ae2da8, which has `block` 1 and works inside
blocks(size=32, …) with argmax tokens, draw(temperature=0)). Kin: LoPA [arXiv 2512.16229], whose
branches add one position each to a threshold's choice and are compared by confidence. The answer
about the winner is the next round's, as there, so a round asks N canvases or fewer; it is
remembered (V numbers per position), so the rule suits small vocabularies. A move is kept by what
its tokens lead to: the law is shaped, also one token at a time.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, Sampler
from maskwalk.decoding.scores import entropy
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.errors import one_of, real, whole
from maskwalk.samplers.parts.views import gumbel
from maskwalk.streams import Purpose, inverse_cdf

GAINS = ("info_gain", "lookum")


@SAMPLERS.register("info_gain")
@dataclass(frozen=True)
class InfoGain(Sampler):
    """Draw first: of several drawn moves, the one that leaves the least entropy behind."""

    candidates: int = 8
    block: int = 1
    temperature: float = 0.2
    threshold: float = 0.8
    gain: str = "info_gain"
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        {"candidates": 8},
        {"candidates": 4, "block": 2},
        {"candidates": 4, "block": 2, "gain": "lookum"},
        {"candidates": 4, "block": 4},
    )

    def __post_init__(self) -> None:
        whole("candidates", self.candidates, 1, 1000)
        whole("block", self.block, 1)
        real("temperature", self.temperature, 1e-6)
        real("threshold", self.threshold, 0.0)
        one_of("gain", self.gain, GAINS)

    def first_picks(self, length: int) -> range:
        """Any position, if all scores tie."""
        return range(length)

    @property
    def asks_elsewhere(self) -> bool:
        """The candidates, looked ahead to."""
        return True

    def init(self, canvas: Canvas) -> State:
        """No answer yet (the vocabulary's size is not known yet either)."""
        shape = (*canvas.tokens.shape, 1)
        answer = torch.zeros(shape, dtype=torch.float64, device=canvas.tokens.device)
        return {"answer": answer, "known": torch.zeros_like(canvas.masked[:, 0])}

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """Draw the moves, look ahead, make the best."""
        view, masked = View(canvas, denoise, rng), canvas.masked
        answer = self._answer(canvas, denoise)
        log_p = answer[masked]
        moves, drawn = self._moves(view, log_p, rng)
        plain = self._plain(view, log_p)
        after = torch.where(moves, drawn, canvas.tokens[:, None])
        new = ~_repeated(moves) & ~plain[:, None]
        asked = (after == canvas.mask_id) & new[:, :, None]
        answers = denoise(after.flatten(0, 1), asked.flatten(0, 1))
        left = _mean(entropy(answers), asked)
        spent = view.unpack(entropy(log_p)).masked_fill(~masked, 0.0)
        cost = (moves * spent[:, None]).sum(2) if self.gain == "info_gain" else 0.0
        value = torch.round((cost + left) / view.score_grid).masked_fill(~new, torch.inf)
        best = value.argmin(1)  # the first of equals
        row = torch.arange(len(best), device=best.device)
        best = torch.where(plain, 0, best)
        chosen = torch.where(plain[:, None], masked, moves[row, best])
        tokens = drawn[row, best][chosen]
        rng.note(chosen, log_p[chosen[masked]], tokens)
        seen = answers.new_zeros((*asked.shape[::2], answers.shape[1]))
        seen[asked[row, best]] = answers[_picked(asked, best)]
        return canvas.reveal(chosen, tokens, {"answer": seen, "known": ~plain})

    def _answer(self, canvas: Canvas, denoise: Denoiser) -> Float[Tensor, "batch length vocab"]:
        """The log-marginals at all that is masked: remembered, or asked for."""
        every, known = canvas.tokens == canvas.mask_id, canvas.state["known"]
        unknown = every & ~known[:, None]
        old = canvas.state["answer"]
        if not bool(unknown.any()):
            return old
        found = denoise(canvas.tokens, unknown)
        answer = old.expand(*old.shape[:2], found.shape[1]).to(found).clone()
        answer[unknown] = found
        return answer

    def _plain(self, view: View, log_p: Float[Tensor, "rows vocab"]) -> Bool[Tensor, " batch"]:
        """Where nothing has to be weighed: few are left, or all are sure."""
        best = view.unpack(log_p.amax(-1).exp())
        sure = (best >= self.threshold - view.score_grid / 2).all(1)
        return (view.masked.sum(1) <= self.block) | sure

    def _moves(
        self, view: View, log_p: Float[Tensor, "rows vocab"], rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch moves length"], Int[Tensor, "batch moves length"]]:
        """The positions of every move, and the tokens drawn for it at all that is masked."""
        row, place = view.masked.nonzero(as_tuple=True)
        numbers = (
            rng.streams.single_at(purpose, rng.round, row, place, self.candidates).double()
            for purpose in (Purpose.REDRAW, Purpose.NOISE)
        )
        again, noise = next(numbers), gumbel(next(numbers))
        shaped = rng.drawing.shape(log_p)
        moves, drawn = [], []
        for number in range(self.candidates):
            if number == 0:
                tokens = rng.draw(log_p, view.masked)
            else:
                tokens = inverse_cdf(shaped, again[:, number])
            likely = log_p.gather(1, tokens[:, None])[:, 0].exp().to(torch.float64)
            likely = torch.round(likely / view.score_grid) * view.score_grid
            if number:
                likely = likely / self.temperature + noise[:, number]
            moves.append(view.lowest(view.unpack(-likely), self.block))
            drawn.append(view.tokens.masked_scatter(view.masked, tokens))
        return torch.stack(moves, 1), torch.stack(drawn, 1)


def _repeated(moves: Bool[Tensor, "batch moves length"]) -> Bool[Tensor, "batch moves"]:
    """Which moves take the same positions as one before them."""
    same = (moves[:, :, None] == moves[:, None]).all(3)
    return same.tril(-1).any(2)


def _mean(
    packed: Float[Tensor, " n"], at: Bool[Tensor, "batch moves length"]
) -> Float64[Tensor, "batch moves"]:
    """The mean of packed numbers over each canvas; 0 where there are none."""
    dense = torch.zeros(at.shape, dtype=torch.float64, device=at.device)
    dense = dense.masked_scatter(at, packed.to(torch.float64))
    return dense.sum(2) / at.sum(2).clamp(min=1)


def _picked(
    asked: Bool[Tensor, "batch moves length"], best: Int[Tensor, " batch"]
) -> Bool[Tensor, " rows"]:
    """Which rows of an answer are about each sequence's canvas number `best`."""
    number = torch.arange(asked.shape[1], device=asked.device)
    return (number == best[:, None])[:, :, None].expand_as(asked)[asked]
