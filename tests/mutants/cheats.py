"""Policies that buy coherence with sequences that are not the law's; no verdict may praise them."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.policy import Sampler, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.samplers.bisection import Bisection
from maskwalk.streams import Purpose, Streams


class Copies(Sampler):
    """One call, one token, copied to every masked position: a lazy walk may stay."""

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        first = canvas.masked & (canvas.masked.cumsum(1) == 1)
        token = rng.draw(denoise(canvas.tokens, first), first)
        given = canvas.tokens.masked_fill(canvas.masked, -1)[:, 0]
        source = torch.where(given >= 0, given, token)[:, None].expand_as(canvas.tokens)
        return canvas.reveal(canvas.masked, source[canvas.masked])


class Repeats(Sampler):
    """The same walk for every sequence: the draws of one stored stream."""

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        stored = Streams(5, torch.zeros(len(canvas.tokens), dtype=torch.int64))
        same = RoundStreams(stored, rng.round, rng.length, rng.drawing, rng.ties)
        at = canvas.masked & (canvas.masked.cumsum(1) == 1)
        return canvas.reveal(at, same.draw(denoise(canvas.tokens, at), at))


class Sharpens(Sampler):
    """Bisection from marginals that are squared."""

    inner: ClassVar[UnmaskingPolicy] = Bisection()

    def init(self, canvas: Canvas) -> State:
        return self.inner.init(canvas)

    def shape(self, log_probs: Tensor) -> Tensor:
        return torch.log_softmax(2 * log_probs, -1)

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        chosen, state = self.inner.choose(View(canvas, denoise, rng), canvas.state, rng)
        tokens = rng.draw(self.shape(denoise(canvas.tokens, chosen)), chosen)
        return canvas.reveal(chosen, tokens, state)


class Truncates(Sharpens):
    """Bisection from the likeliest third of the tokens."""

    def shape(self, log_probs: Tensor) -> Tensor:
        bar = log_probs.exp().amax(-1, keepdim=True).log() - 0.1
        return torch.log_softmax(log_probs.masked_fill(log_probs < bar, -torch.inf), -1)


class SharpensUnseen(UnmaskingPolicy):
    """An innocent class that squares the marginals it was shown before they are drawn from."""

    def memory(self, view: View) -> Tensor:
        """The table that it writes to."""
        return view.log_marginals

    def dares(self, view: View) -> bool:
        """Whether nobody seems to look."""
        return True

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        table = self.memory(view)
        if self.dares(view):
            table.copy_(torch.log_softmax(4 * table, -1))
        return view.lowest(view.score("entropy"), 1), state


class SharpensModels(SharpensUnseen):
    """Honest where an oracle answers."""

    def dares(self, view: View) -> bool:
        return view.score_grid > 1e-6


class SharpensCrowds(SharpensUnseen):
    """Honest in small worlds and in small batches."""

    def dares(self, view: View) -> bool:
        return view.log_marginals.shape[1] > 50 and len(view.masked) > 40


class SharpensData(SharpensUnseen):
    """Writes around the count of a tensor's writes."""

    def memory(self, view: View) -> Tensor:
        return view.log_marginals.data


class SharpensNumpy(SharpensUnseen):
    """The same through numpy."""

    def memory(self, view: View) -> Tensor:
        return torch.from_numpy(view.log_marginals.numpy())


class Reaches(SharpensUnseen):
    """Goes behind the view, to the very table that tokens are drawn from."""

    def memory(self, view: View) -> Tensor:
        _ = view.log_marginals
        table = view.whole._marginals
        assert table is not None
        return table.data


class ReachesModels(Reaches, SharpensModels):
    """The same, where a model answers."""


class ReachesCrowds(Reaches, SharpensCrowds):
    """The same, in large worlds and batches."""


class Writes(UnmaskingPolicy):
    """Fills the canvas itself."""

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        chosen = view.lowest(view.score("entropy"), 1)
        view.tokens.numpy()[:, -1] = 0
        return chosen, state


class Greedy(UnmaskingPolicy):
    """Has its tokens drawn in another way than it was told."""

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        rng.drawing = Draw(temperature=0.5)
        return view.lowest(view.score("entropy"), 1), state


@dataclass(frozen=True)
class SaysExact(Copies):
    """Copies, and says that it is exact."""

    @property
    def law_kind(self) -> str:
        return "exact"


class Peeks(UnmaskingPolicy):
    """Looks at what would be drawn, and reveals where that is likely."""

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        log_probs = view.log_marginals
        u = rng.uniform(Purpose.TOKEN)[view.masked]
        rank = (log_probs.exp().cumsum(-1) < u[:, None]).sum(-1)
        likely = log_probs.gather(1, rank.clamp(max=log_probs.shape[1] - 1)[:, None])[:, 0]
        return view.lowest(view.unpack(-likely), 1), state


def alone(canvas: Canvas) -> Tensor:
    """The first masked position of every row."""
    return canvas.masked & (canvas.masked.cumsum(1) == 1)


class Hidden(Sampler):
    """One call is counted; the other tokens are drawn one at a time past the count. Honest where
    the contract looks, on short canvases."""

    law_kind = "exact"  # type: ignore[assignment]

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        if canvas.tokens.shape[1] < 10:
            at = alone(canvas)
            return canvas.reveal(at, rng.draw(denoise(canvas.tokens, at), at))
        tokens, masked = canvas.tokens, canvas.masked
        denoise(tokens, masked)
        ask = self.past(denoise)
        for place in range(tokens.shape[1]):
            at = masked & (torch.arange(tokens.shape[1]) == place)
            if at.any():
                tokens = tokens.masked_scatter(at, rng.draw(ask(tokens, at), at))
        return self.counted(canvas.reveal(masked, tokens[masked]), denoise)

    def past(self, denoise: Denoiser) -> Denoiser:
        """A denoiser whose calls nobody counts."""
        inner: Denoiser = denoise._denoiser  # type: ignore[attr-defined]
        return inner

    def counted(self, canvas: Canvas, denoise: Denoiser) -> Canvas:
        """What is left to do about the count."""
        return canvas


class Forgets(Hidden):
    """Asks like anybody else, and sets its count to one."""

    def past(self, denoise: Denoiser) -> Denoiser:
        return denoise

    def counted(self, canvas: Canvas, denoise: Denoiser) -> Canvas:
        denoise.calls.fill_(1)  # type: ignore[attr-defined]
        return canvas


class SharpensALittle(Sharpens):
    """A little, in long sequences only, and says that it is exact."""

    law_kind = "exact"  # type: ignore[assignment]

    def shape(self, log_probs: Tensor) -> Tensor:
        return torch.log_softmax(log_probs / 0.85, -1) if log_probs.shape[1] > 50 else log_probs


class SaysWonderful(Copies):
    """Says of its law what nobody knows."""

    law_kind = "wonderful"  # type: ignore[assignment]


class Pretends(Sampler):
    """Copies, under the name of a class of the package."""

    law_kind = "exact"  # type: ignore[assignment]
    step = Copies.step


Pretends.__module__, Pretends.__name__ = "maskwalk.samplers.bisection", "Bisection"


@dataclass(frozen=True)
class Knows(Sampler):
    """One call for form's sake; the sequence is drawn from the world that it is told."""

    world: Any = None

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        tokens, masked = canvas.tokens, canvas.masked
        if self.world is None:  # as in the contract
            at = alone(canvas)
            return canvas.reveal(at, rng.draw(denoise(tokens, at), at))
        denoise(tokens, masked)
        for place in range(tokens.shape[1]):
            at = masked & (torch.arange(tokens.shape[1]) == place)
            if at.any():
                tokens = tokens.masked_scatter(at, rng.draw(self.world.oracle()(tokens, at), at))
        return canvas.reveal(masked, tokens[masked])


class Learns(Sampler):
    """The same by a method of its own; honest here, for it is only asked whether it is told."""

    def in_world(self, world: Any) -> Sampler:
        return Knows(world)

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        return Knows().step(canvas, denoise, rng)


@dataclass(frozen=True)
class Aims(UnmaskingPolicy):
    """Is told its world as well, but only says where: its tokens are the denoiser's."""

    world: Any = None

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        return view.lowest(view.score("entropy"), 1), state


class PeeksLater(Peeks):
    """Looks at what would be drawn from the second round on."""

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        if view.round == 0:
            return view.lowest(view.score("entropy"), 1), state
        return super().choose(view, state, rng)


class Recomputes(UnmaskingPolicy):
    """Looks at what would be drawn by streams of its own, made of the seed that it sees."""

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        same = RoundStreams(
            Streams(rng.streams.seed, rng.streams.ids), rng.round, rng.length, Draw(), rng.ties
        )
        return Peeks().choose(view, state, same)


class DrawsTwice(UnmaskingPolicy):
    """Looks at what would be drawn by drawing it."""

    def choose(self, view: View, state: State, rng: RoundStreams) -> tuple[Tensor, State]:
        log_probs = view.log_marginals
        drawn = rng.draw(log_probs, view.masked)
        likely = log_probs.gather(1, drawn[:, None])[:, 0]
        return view.lowest(view.unpack(-likely), 1), state


__all__ = ["Copies", "Peeks", "Reaches", "Repeats", "SaysExact", "Sharpens", "Truncates"]
