"""A trained network as a `Denoiser`.

The network is only ever called on `rows` sequences at a time, short batches being padded with fully
masked rows: matrix kernels pick their blocking by the number of rows, so with one fixed count a
row's logits are the same bits whatever else is in the batch. Rows that ask for nothing are left
out. Logits are float32 and are normalised in float64.

Precision: float32 on a CPU. On an accelerator the matrix products take float16 operands and
accumulate in float32 (`precision="float32"` switches that off); the residual stream, norms, softmax
and logits are float32. Ties survive this: see `kernels.attention`. `logits="bfloat16"` rounds the
logits and the logarithms of their softmax to bfloat16, which is how public code's autocast leaves
them; what is then answered is normalised again, in float64.

`asked_only` leaves out, behind the last attention, the places that nobody asks about: there no
place looks at another any more, and a third of the arithmetic is behind it. `asked_only=None` does
so on an accelerator where few are asked for, if the first such question gets the same bits both
ways.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from maskwalk.denoiser import masked_positions
from maskwalk.denoisers.network.captured import Answer, Captured
from maskwalk.denoisers.network.ddit import (
    Modulation,
    before_last,
    hidden_states,
    last_states,
    logits,
    modulations,
)
from maskwalk.denoisers.network.noise import sigma
from maskwalk.denoisers.network.outputs import PLAIN
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.errors import MaskwalkError, one_of, whole

ROWS = 32  # on a CPU: enough for an efficient product, and padding is still cheap
ACCELERATOR_ROWS = 4096  # fastest for the paper's model on an H200 (benchmarks/sampling.py)
PLACES = 256  # a call behind the last attention, with asked_only
ACCELERATOR_PLACES = 16_384  # one for each of as many walks
FEW = 4  # one place in so many is few


class NetworkDenoiser:
    """One model's weights behind the `Denoiser` protocol."""

    score_grid = 1e-4
    doubts = False  # whether it was trained to answer at revealed tokens, too
    source: str | None = None  # the name it was loaded by, where that says all of it

    def __init__(
        self,
        config: DDiTConfig,
        weights: Float[Tensor, " size"],
        *,
        device: str | torch.device = "cpu",
        rows: int | None = None,
        precision: str | None = None,
        logits: str = "float32",
        compiled: bool = False,
        asked_only: bool | None = False,
    ) -> None:
        self.config, self.device = config, torch.device(device)
        self.vocab_size, self.mask_id = config.vocab_size, config.mask_id
        accelerated = self.device.type != "cpu"
        self.rows = whole("rows", rows or (ACCELERATOR_ROWS if accelerated else ROWS), 1)
        self.precision = precision or ("float16" if accelerated else "float32")
        one_of("precision", self.precision, ("float32", "float16", "bfloat16"))
        self.logits = one_of("logits", logits, ("float32", "bfloat16"))
        self._layout, self._head = layout(config), config.head
        self._plain = config.output == PLAIN  # what is answered are logits, else log-marginals
        matrices, singles = self._layout.parts(weights[None].to(self.device, torch.float32))
        self._matrices = matrices.to(getattr(torch, self.precision)).clone()
        self._singles = singles.clone()
        self._constant: Modulation | None = None
        self._settle()
        self._forward: Any = self._eager
        if compiled:
            self._forward = torch.compile(self._eager, fullgraph=True, dynamic=False)
        self._turns: dict[int, Tensor] = {}
        self._whole, self._before, self._after = Captured(), Captured(), Captured()
        plain = self._plain and not config.time_conditioning and not config.ends
        if asked_only and not plain:
            raise MaskwalkError(
                "asked_only is for networks without time and without end tokens and with "
                f"output=softmax, not {config.output}."
            )
        self.asked_only = asked_only if accelerated and plain else bool(asked_only)
        self.places = ACCELERATOR_PLACES if accelerated else PLACES
        self._alike: bool | None = None  # whether both ways give the same bits here

    def __repr__(self) -> str:
        size = f"{self.config.parameters:,} parameters, {self.vocab_size:,} tokens"
        return f"<NetworkDenoiser: {size}, {self.precision} on {self.device}>"

    def load(self, weights: Float[Tensor, " size"]) -> None:
        """Takes over another model's weights of the same configuration."""
        matrices, singles = self._layout.parts(weights[None])
        self._matrices.copy_(matrices)
        self._singles.copy_(singles)
        self._settle()

    @torch.no_grad()
    def _settle(self) -> None:
        """Without time conditioning the modulation is a constant of the model: computed once."""
        if self.config.time_conditioning:
            return
        weights = self._layout.grouped(self._matrices, self._singles)
        new = modulations(self.config, weights)
        if self._constant is None:
            self._constant = new
        for mine, values in zip(self._constant, new):
            for old, value in zip(mine, values):
                old.copy_(value)  # in place: a captured graph knows the address

    @property
    def notes(self) -> tuple[str, ...]:
        """What a record should say of the answers."""
        rounded = ", logits in bfloat16" if self.logits == "bfloat16" else ""
        return (f"network in {self.precision}{rounded}, {self.rows} sequences per call",)

    def _eager(
        self, tokens: Int[Tensor, "batch length"], angles: Float[Tensor, "2 span half"]
    ) -> Answer:
        weights = self._layout.grouped(self._matrices, self._singles)
        modulation = self._constant
        if modulation is None:
            # The time at which this share of tokens is expected to be masked.
            share = (tokens == self.mask_id).float().mean(1)
            modulation = modulations(self.config, weights, sigma(share)[None])
        hidden = hidden_states(self.config, weights, tokens[None], angles, modulation)
        out, bias = logits(self.config, weights, hidden, single=True)
        if not self._plain:
            marginals = self._head.log_marginals(self.config, weights, (out, bias), tokens[None])
            return marginals[0].flatten(0, 1), torch.zeros_like(marginals[0, 0, 0])
        return out[0], bias[0]

    def _run(self, tokens: Int[Tensor, "batch length"]) -> Answer:
        """Logits and bias of exactly `rows` sequences; on an accelerator a captured graph.

        Of an output other than softmax these are its log-marginals already, with no bias.
        """
        return self._whole(self._forward, (tokens,), self._angles(tokens.shape[1]))

    def _trunk(
        self, tokens: Int[Tensor, "batch length"], angles: Float[Tensor, "2 span half"]
    ) -> tuple[Float[Tensor, "places hidden"], Float[Tensor, "places hidden"]]:
        """The residual stream before the last block, and what attention adds to it there."""
        weights = self._layout.grouped(self._matrices, self._singles)
        assert self._constant is not None
        x, mixed = before_last(self.config, weights, tokens[None], angles, self._constant)
        return x.view(-1, self.config.hidden), mixed[0]

    def _tail(
        self, x: Float[Tensor, "places hidden"], mixed: Float[Tensor, "places hidden"]
    ) -> Answer:
        """Logits and bias of places that have been through `_trunk`."""
        weights = self._layout.grouped(self._matrices, self._singles)
        assert self._constant is not None
        states = last_states(self.config, weights, x[None, :, None], mixed[None], self._constant)
        out, bias = logits(self.config, weights, states, single=True)
        return out[0], bias[0]

    def _angles(self, length: int) -> Float[Tensor, "2 span half"]:
        if length not in self._turns:
            self._turns[length] = self.config.angles(length, self.device)
        return self._turns[length]

    @torch.no_grad()
    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "rows vocab"]:
        """Normalised log-marginals at the positions named, packed."""
        if tokens.device.type != self.device.type:
            raise MaskwalkError(
                f"The sequences are on {tokens.device} and the network on {self.device}; "
                f"load the network with device='{tokens.device.type}'."
            )
        at = masked_positions(tokens, self.mask_id, at)
        asking = at.any(1).nonzero()[:, 0]
        wanted = at[asking].flatten().nonzero()[:, 0]
        table = tokens.new_empty((len(wanted), self.vocab_size), dtype=torch.float64)
        if self._few(tokens, asking, wanted):
            self._fill(table, tokens, asking, wanted)
            return table
        for given, places, part in self._groups(tokens, asking, wanted):
            self._normalise(*self._run(given), places, table[part])
        return table

    def _few(self, tokens: Tensor, asking: Tensor, wanted: Tensor) -> bool:
        """Whether to leave out what nobody asks about; the answer's bits do not depend on it."""
        if self.asked_only is not None:
            return self.asked_only
        if not 0 < len(wanted) * FEW <= len(asking) * tokens.shape[1]:
            return False
        if self._alike is None:
            given, places, _ = next(self._groups(tokens, asking, wanted))
            places = places[: self.places]
            padded = torch.zeros(self.places, dtype=torch.int64, device=self.device)
            padded[: len(places)] = places
            x, mixed = self._before(self._trunk, (given,), self._angles(tokens.shape[1]))
            tail = self._after(self._tail, (x[padded], mixed[padded]))[0][: len(places)]
            self._alike = torch.equal(tail, self._run(given)[0][places])
        return self._alike

    def _groups(
        self, tokens: Tensor, asking: Tensor, wanted: Tensor
    ) -> Iterator[tuple[Tensor, Tensor, slice]]:
        """Exactly `rows` sequences at a time; the places asked for there, and in the answer."""
        length, begin = tokens.shape[1], 0
        first = torch.arange(0, len(asking) + self.rows, self.rows, device=tokens.device)
        ends = torch.searchsorted(wanted, first[1:] * length).tolist()
        for number, (rows, end) in enumerate(zip(asking.split(self.rows), ends)):
            given = tokens.new_full((self.rows, length), self.mask_id)
            given[: len(rows)] = tokens[rows]
            yield given, wanted[begin:end] - number * self.rows * length, slice(begin, end)
            begin = end

    def _fill(self, table: Tensor, tokens: Tensor, asking: Tensor, wanted: Tensor) -> None:
        """Behind the last attention only what is asked for, always as many places at a time."""
        hidden, dtype, count = self.config.hidden, self._matrices.dtype, self.places
        padded = -(-len(wanted) // count) * count
        stream = torch.zeros((padded, hidden), device=self.device)
        mixed = torch.zeros((padded, hidden), dtype=dtype, device=self.device)
        for given, places, part in self._groups(tokens, asking, wanted):
            x, y = self._before(self._trunk, (given,), self._angles(tokens.shape[1]))
            torch.index_select(x, 0, places, out=stream[part])
            torch.index_select(y, 0, places, out=mixed[part])
        every = torch.arange(count, device=self.device)
        for begin in range(0, len(wanted), count):
            end = min(begin + count, len(wanted))
            states = stream[begin : begin + count], mixed[begin : begin + count]
            answer = self._after(self._tail, states)
            self._normalise(*answer, every[: end - begin], table[begin:end])

    def _normalise(
        self,
        answer: Float[Tensor, "places padded"],
        bias: Float[Tensor, " padded"],
        wanted: Int[Tensor, " rows"],
        out: Float64[Tensor, "rows vocab"],
    ) -> None:
        """Log-marginals of some of the places, into `out`."""
        if self.logits == "bfloat16":
            rounded = (answer[wanted] + bias)[:, : self.vocab_size].to(torch.bfloat16)
            rounded -= rounded.logsumexp(-1, keepdim=True)
            out.copy_(torch.log_softmax(rounded.to(torch.float64), -1))
        elif answer.is_cuda and self._plain:
            from maskwalk.kernels.marginals import log_marginals

            log_marginals(answer, bias, wanted, self.vocab_size, out)
        else:
            chosen = (answer[wanted] + bias)[:, : self.vocab_size]
            out.copy_(torch.log_softmax(chosen.to(torch.float64), -1))
