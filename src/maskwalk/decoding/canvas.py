"""What a sampler works on: a batch of partly revealed sequences, and the randomness of a round."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from maskwalk.decoding.draw import Draw
from maskwalk.kernels.small import large, once, small
from maskwalk.streams import Purpose, Streams, inverse_cdf

State = dict[str, Tensor]  # what a policy remembers: tensors with a leading batch axis
INF = float("inf")


@dataclass(frozen=True, init=False)
class Canvas:
    """A batch of partly revealed sequences in one round of decoding.

    `open` restricts what a sampler works on: inside a block nothing else looks masked to it, while
    the denoiser still reads every mask. `place` is then where each position lies in its block, and
    `span` the positions of a block.
    """

    tokens: Int[Tensor, "batch length"]
    given: Bool[Tensor, "batch length"]
    mask_id: int
    round: int = 0
    state: State = field(default_factory=dict)
    open: Bool[Tensor, "batch length"] | None = None
    place: Int[Tensor, "batch length"] | None = None
    span: int | None = None

    def __init__(
        self,
        tokens: Int[Tensor, "batch length"],
        given: Bool[Tensor, "batch length"],
        mask_id: int,
        round: int = 0,
        state: State | None = None,
        open: Bool[Tensor, "batch length"] | None = None,
        place: Int[Tensor, "batch length"] | None = None,
        span: int | None = None,
    ) -> None:
        # A frozen dataclass sets its fields one by one, which takes three times as long.
        fields = self.__dict__
        fields["tokens"], fields["given"], fields["mask_id"] = tokens, given, mask_id
        fields["round"], fields["state"] = round, {} if state is None else state
        fields["open"], fields["place"], fields["span"] = open, place, span

    def __repr__(self) -> str:
        rows, length = self.tokens.shape
        left = int(self.masked.sum())
        return f"<Canvas: {rows} sequences of {length}, {left} masked, round {self.round}>"

    @once
    def masked(self) -> Bool[Tensor, "batch length"]:
        """Where nothing is revealed yet, as far as it is open."""
        return large(self.masked_few)

    @once
    def masked_few(self) -> Any:
        """The same, as `small` gives it."""
        masked = self.few == self.mask_id
        return masked if self.open is None else masked & small(self.open)

    @once
    def few(self) -> Any:
        """The tokens, as `small` gives them."""
        return small(self.tokens)

    @once
    def given_few(self) -> Any:
        """What was given, as `small` gives it."""
        return small(self.given)

    def select(self, rows: Tensor) -> "Canvas":
        """Some of the rows, with what the policy remembers of them."""
        state = {name: value[rows] for name, value in self.state.items()}
        part = None if self.open is None else self.open[rows]
        place = None if self.place is None else self.place[rows]
        tokens, given = self.tokens[rows], self.given[rows]
        return Canvas(tokens, given, self.mask_id, self.round, state, part, place, self.span)

    def reveal(
        self,
        chosen: Bool[Tensor, "batch length"],
        tokens: Int[Tensor, " n"],
        state: State | None = None,
    ) -> "Canvas":
        """The canvas with `tokens` (packed) written where `chosen` is true."""
        new = self.tokens.masked_scatter(chosen, tokens)
        state = self.state if state is None else state
        block = (self.open, self.place, self.span)
        return Canvas(new, self.given, self.mask_id, self.round, state, *block)


class RoundStreams:
    """The random streams of one round of a batch, and how tokens are drawn in it."""

    def __init__(self, streams: Streams, round: int, length: int, draw: Draw, ties: str) -> None:
        self.streams, self.round, self.length = streams, round, length
        self.drawing, self.ties = draw, ties
        self.watch: Callable[[Tensor, Tensor, Tensor], None] | None = None

    def on(self, rows: Bool[Tensor, " batch"]) -> "RoundStreams":
        """The same streams for some of the rows."""
        part = RoundStreams(
            self.streams.select(rows), self.round, self.length, self.drawing, self.ties
        )
        watch = self.watch
        if watch is not None:

            def told(at: Tensor, log_probs: Tensor, tokens: Tensor) -> None:
                everywhere = torch.zeros(len(rows), self.length, dtype=torch.bool, device=at.device)
                everywhere[rows] = at
                watch(everywhere, log_probs, tokens)

            part.watch = told
        return part

    def uniform(self, purpose: Purpose = Purpose.CHOICE) -> Float64[Tensor, "batch length"]:
        """A uniform for every position, to choose by."""
        return self.streams.uniform(purpose, self.round, self.length)

    def draw(
        self, log_probs: Float[Tensor, "n vocab"], at: Bool[Tensor, "batch length"]
    ) -> Int[Tensor, " n"]:
        """One token for every position in `at` (packed), from its log-marginal."""
        if self.drawing.temperature == 0:  # needs no numbers
            tokens = self.drawing.likeliest(log_probs)
        else:
            rows, positions = at.nonzero(as_tuple=True)
            tokens = self.drawing(log_probs, self.streams, self.round, rows, positions)
        self.note(at, log_probs, tokens)
        return tokens

    def redraw(
        self, log_probs: Float[Tensor, "n vocab"], at: Bool[Tensor, "batch length"]
    ) -> Int[Tensor, " n"]:
        """A second token in the same round, from log-probabilities that are shaped already."""
        rows, positions = at.nonzero(as_tuple=True)
        u = self.streams.uniform_at(Purpose.REDRAW, self.round, rows, positions)
        return inverse_cdf(log_probs, u)

    def note(
        self,
        at: Bool[Tensor, "batch length"],
        log_probs: Float[Tensor, "n vocab"],
        tokens: Int[Tensor, " n"],
    ) -> None:
        """Tells the trace which marginals the tokens at `at` come from (`draw` does so itself)."""
        if self.watch is not None:
            self.watch(at, log_probs, tokens)
