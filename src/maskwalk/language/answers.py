"""What every text denoiser shares: packed log-marginals over a large vocabulary, and no copies.

The answer is one float32 table with a row for each place asked for. The network runs on `rows`
sequences at a time, always as many (short batches repeat a sequence), and its last linear map on
`PLACES` places at a time, only at those asked for: a place's answer is then the same bits whatever
else is asked, and the peak is the table itself and a slice. Tokens that must never be drawn (the
mask, other special tokens, columns beyond the tokenizer) get probability zero, and the rest is
normalised in place.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator

import torch
from jaxtyping import Bool, Float, Float32, Int
from torch import Tensor

from maskwalk.denoisers.protocol import masked_positions
from maskwalk.errors import MaskwalkError, whole
from maskwalk.slices import slices

PLACES = 64  # on a CPU; 64 × 50,258 logits are 13 MB
ACCELERATOR_PLACES = 4096


class TextDenoiser(ABC):
    """A denoiser over a large vocabulary; a subclass writes logits at the places asked for."""

    grid = 1e-4

    def __init__(self, vocab_size: int, mask_id: int, rows: int, never: Iterable[int] = ()) -> None:
        self.vocab_size = whole("vocab_size", vocab_size, 2)
        self.mask_id = whole("mask_id", mask_id, 0)
        self.rows = whole("rows", rows, 1)
        clean = {int(token) for token in never} | {mask_id}
        self.never = tuple(sorted(token for token in clean if 0 <= token < vocab_size))
        if len(self.never) == vocab_size:
            raise MaskwalkError("Every token is forbidden: `never` leaves nothing to draw.")

    @property
    def notes(self) -> tuple[str, ...]:
        """What a record should say of the answers."""
        return (f"text model, answers in float32, rows={self.rows}",)

    @abstractmethod
    def fill(
        self,
        answer: Float32[Tensor, "places vocab"],
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
        shape = (int(at.sum()), self.vocab_size)
        answer = torch.empty(shape, dtype=torch.float32, device=tokens.device)
        if len(answer) == 0:
            return answer
        self.fill(answer, tokens, at)
        never = torch.tensor(self.never, dtype=torch.int64, device=tokens.device)
        lost = torch.zeros((), dtype=torch.bool, device=tokens.device)
        for part in slices(answer):
            some = answer[part].index_fill_(1, never, -torch.inf)
            some.copy_(torch.log_softmax(some, -1))
            lost |= some.amax(1).isnan().any()
        if bool(lost):  # asked once: an accelerator is not made to wait for every slice
            raise MaskwalkError(
                "The model answers with numbers that are not finite; load it in float32, and check "
                "that its weights are whole."
            )
        return answer


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


def fill_by_map(
    answer: Float32[Tensor, "places vocab"],
    states: Float[Tensor, "places width"],
    last_map: Callable[[Tensor], Tensor],
) -> None:
    """Applies a network's last map to the states of the places, always to as many at a time."""
    step = PLACES if answer.device.type == "cpu" else ACCELERATOR_PLACES
    for start in range(0, len(answer), step):
        some = states[start : start + step]
        if len(some) < step:
            some = torch.cat([some, some[:1].expand(step - len(some), -1)])
        part = answer[start : start + step]
        part.copy_(last_map(some)[: len(part), : answer.shape[1]])


def write_places(
    answer: Float32[Tensor, "places vocab"],
    found: Float[Tensor, "n width"],
    done: int,
) -> int:
    """Copies rows of logits into the answer after the first `done`; returns how many are done."""
    answer[done : done + len(found)] = found[:, : answer.shape[1]]
    return done + len(found)
