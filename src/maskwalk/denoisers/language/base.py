"""What every text denoiser shares: packed log-marginals over a large vocabulary, and no copies.

The answer is one float32 table with a row for each place asked for. The network runs on `rows`
sequences at a time, always as many (short batches repeat a sequence), and its last linear map on a
number of places at a time that depends on the vocabulary alone, only at those asked for: a place's
answer is then the same bits whatever else is asked, and the peak is the table itself and a slice.
Logits are normalised on their way into
the table; tokens that must never be drawn (the mask, other special tokens, columns beyond the
tokenizer) get probability zero.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import torch
from jaxtyping import Bool, Float, Float32, Int
from torch import Tensor

from maskwalk.denoiser import masked_positions
from maskwalk.errors import MaskwalkError, whole
from maskwalk.kernels.rows import slices

PLACES = 64  # on a CPU; 64 × 50,258 logits are 13 MB
ACCELERATOR_LOGITS = 1 << 25  # 4,096 places of 8,192 tokens, 256 of LLaDA's 126,464
ACCELERATOR_PLACES = 4096  # at most


class LogMarginals:
    """A table of log-marginals that is being filled with logits, from the first place on."""

    def __init__(
        self,
        places: int,
        vocab: int,
        forbidden: tuple[int, ...],
        bias: Float32[Tensor, " vocab"] | None,
        device: torch.device,
    ) -> None:
        self.table = torch.empty((places, vocab), dtype=torch.float32, device=device)
        never = _never(vocab, forbidden, device)
        self._shift = never if bias is None else torch.where(never == 0, bias.to(device), never)
        self._lost = torch.zeros((), dtype=torch.int32, device=device)
        self._done = 0

    def append(self, logits: Float[Tensor, "n width"]) -> None:
        """The logits of the next places; columns beyond the vocabulary are left out."""
        part = self.table[self._done : self._done + len(logits)]
        self._done += len(logits)
        self._normalise(logits, part)

    def put(self, places: Int[Tensor, " n"], logits: Float[Tensor, "n width"]) -> None:
        """The logits of these places."""
        part = self.table.new_empty((len(logits), self.table.shape[1]))
        self._normalise(logits, part)
        self.table[places] = part
        self._done += len(logits)

    def append_mapped(
        self, states: Float[Tensor, "places width"], last_map: Callable[[Tensor], Tensor]
    ) -> None:
        """The next places, whose logits are a network's last map of `states`."""
        for logits in mapped(states, last_map, self.table.shape[1]):
            self.append(logits)
            del logits  # before the next slice is made

    def _normalise(self, logits: Tensor, part: Tensor) -> None:
        logits = logits.to(part.device)  # a model may lie on several
        if logits.is_cuda:
            from maskwalk.kernels.normalise import normalise

            normalise(logits, self._shift, part, self._lost)
            return
        for some in slices(part):
            shifted = logits[some, : part.shape[1]] + self._shift
            shifted = shifted.to(torch.float32).masked_fill_(self._shift == -torch.inf, -torch.inf)
            part[some] = torch.log_softmax(shifted, -1)
            self._lost |= part[some].amax(1).isnan().any()

    def whole(self) -> Float32[Tensor, "places vocab"]:
        """The table, if all of it was written and is finite."""
        assert self._done == len(self.table)
        if bool(self._lost):  # asked once: an accelerator is not made to wait for every slice
            raise MaskwalkError(
                "The model answers with numbers that are not finite; load it in float32, and check "
                "that its weights are whole."
            )
        return self.table


@lru_cache(maxsize=8)  # kept: a list of tokens is copied to an accelerator, which waits for it
def _never(
    vocab: int, forbidden: tuple[int, ...], device: torch.device
) -> Float32[Tensor, " vocab"]:
    """−∞ for the tokens never drawn, whatever their logits are, and 0 for the others."""
    shift = torch.zeros(vocab, device=device)
    shift[list(forbidden)] = -torch.inf
    return shift


class TextDenoiser(ABC):
    """A denoiser over a large vocabulary; a subclass writes logits at the places asked for."""

    score_grid = 1e-4
    bias: Float32[Tensor, " vocab"] | None = None  # of the last map, where `fill` leaves it out

    def __init__(
        self, vocab_size: int, mask_id: int, rows: int, forbidden: Iterable[int] = ()
    ) -> None:
        self.vocab_size = whole("vocab_size", vocab_size, 2)
        self.mask_id = whole("mask_id", mask_id, 0)
        self.rows = whole("rows", rows, 1)
        clean = {int(token) for token in forbidden} | {mask_id}
        self.forbidden = tuple(sorted(token for token in clean if 0 <= token < vocab_size))
        if len(self.forbidden) == vocab_size:
            raise MaskwalkError("Every token is forbidden: nothing is left to draw.")

    @property
    def notes(self) -> tuple[str, ...]:
        """What a record should say of the answers."""
        return (f"text model, answers in float32, rows={self.rows}",)

    @abstractmethod
    def fill(
        self,
        answer: LogMarginals,
        tokens: Int[Tensor, "batch length"],
        at: Bool[Tensor, "batch length"],
    ) -> None:
        """Writes the logits of the places in `at`, packed, into `answer`."""

    @torch.no_grad()
    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "rows vocab"]:
        """Normalised log-marginals at the positions named, packed, in float32."""
        at = masked_positions(tokens, self.mask_id, at)
        places = int(at.sum())
        answer = LogMarginals(places, self.vocab_size, self.forbidden, self.bias, tokens.device)
        if places:
            self.fill(answer, tokens, at)
        return answer.whole()

    @torch.no_grad()
    def over_all(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"]
    ) -> tuple[Float[Tensor, "rows vocab"], Float[Tensor, "rows vocab"]]:
        """(log-marginals, the same before the tokens that are never drawn are taken out)."""
        answer = LogMarginals(int(at.sum()), self.vocab_size, (), self.bias, tokens.device)
        if len(answer.table):
            self.fill(answer, tokens, at)
        everything = answer.whole()
        left = everything.clone()
        left[:, list(self.forbidden)] = -torch.inf
        for some in slices(left):
            left[some] -= left[some].logsumexp(-1, keepdim=True)
        return left, everything


def few_at_a_time(
    tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"], rows: int
) -> Iterator[tuple[Int[Tensor, "rows length"], Int[Tensor, " sequences"]]]:
    """Sequences that ask for something, `rows` at a time, and their places in the batch.

    What is missing in the last group is filled with a copy of its first sequence.
    """
    for group in at.any(1).nonzero()[:, 0].split(rows):
        padded = group[:1].expand(rows).clone()
        padded[: len(group)] = group
        yield tokens[padded], group


def places_at_once(device: str, tokens: int) -> int:
    """How many places a last map to so many tokens is given: a power of two on an accelerator,
    where what is asked for too little is filled up, and a wide map of many places is dear."""
    if device == "cpu":
        return PLACES
    most: int = 1 << max(0, (ACCELERATOR_LOGITS // max(1, tokens)).bit_length() - 1)
    return min(max(most, PLACES), ACCELERATOR_PLACES)


def mapped(
    states: Float[Tensor, "places width"], last_map: Callable[[Tensor], Tensor], tokens: int
) -> Iterator[Float[Tensor, "n tokens"]]:
    """A network's last map of the states to so many tokens, in slices; it is always given as many
    places."""
    step = places_at_once(states.device.type, tokens)
    for some in states.split(step):
        count = len(some)
        if count < step:
            some = torch.cat([some, some[:1].expand(step - count, -1)])
        yield last_map(some)[:count]
