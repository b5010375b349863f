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
"""

import gc
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.denoiser import masked_positions
from maskwalk.denoisers.network.ddit import Modulation, hidden_states, logits, modulations
from maskwalk.denoisers.network.noise import sigma
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.errors import MaskwalkError, one_of, whole

ROWS = 32  # on a CPU: enough for an efficient product, and padding is still cheap
ACCELERATOR_ROWS = 4096  # fastest for the paper's model on an H200 (benchmarks/sampling.py)

Answer = tuple[Tensor, Tensor]  # logits (places, padded) and their bias (padded)


class NetworkDenoiser:
    """One model's weights behind the `Denoiser` protocol."""

    score_grid = 1e-4
    doubts = False  # whether it was trained to answer at revealed tokens, too

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
    ) -> None:
        self.config, self.device = config, torch.device(device)
        self.vocab_size, self.mask_id = config.vocab_size, config.mask_id
        accelerated = self.device.type != "cpu"
        self.rows = whole("rows", rows or (ACCELERATOR_ROWS if accelerated else ROWS), 1)
        self.precision = precision or ("float16" if accelerated else "float32")
        one_of("precision", self.precision, ("float32", "float16", "bfloat16"))
        self.logits = one_of("logits", logits, ("float32", "bfloat16"))
        self._layout = layout(config)
        matrices, singles = self._layout.parts(weights[None].to(self.device, torch.float32))
        self._matrices = matrices.to(getattr(torch, self.precision)).clone()
        self._singles = singles.clone()
        self._constant: Modulation | None = None
        self._settle()
        self._forward: Any = self._eager
        if compiled:
            self._forward = torch.compile(self._eager, fullgraph=True, dynamic=False)
        self._graphs: dict[int, tuple[Any, Tensor, Answer, Tensor]] = {}

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
        return (f"network in {self.precision}{rounded}, {self.rows} sequences a call",)

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
        return out[0], bias[0]

    def _run(self, tokens: Int[Tensor, "batch length"]) -> Answer:
        """Logits and bias of exactly `rows` sequences; on an accelerator a captured graph."""
        length = tokens.shape[1]
        if not tokens.is_cuda:
            answer: Answer = self._forward(tokens, self.config.angles(length, self.device))
            return answer
        if length not in self._graphs:
            self._graphs[length] = self._capture(tokens)
        graph, given, answer, _ = self._graphs[length]
        given.copy_(tokens)
        graph.replay()
        return answer

    def _capture(self, tokens: Tensor) -> tuple[Any, Tensor, Answer, Tensor]:
        # A graph reads the memory its inputs had when captured: all of them must be kept alive.
        angles, given = self.config.angles(tokens.shape[1], self.device), tokens.clone()
        side = torch.cuda.Stream(self.device)
        side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(side):
            for _ in range(2):
                self._forward(given, angles)
        torch.cuda.current_stream(self.device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # A graph of a forgotten network that is freed during the capture would spoil it.
        gc.collect()
        gc.disable()
        try:
            with torch.cuda.graph(graph):
                answer = self._forward(given, angles)
        finally:
            gc.enable()
        return graph, given, answer, angles

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
        parts = [tokens.new_empty((0, self.vocab_size), dtype=torch.float64)]
        for rows in asking.split(self.rows):
            given = tokens.new_full((self.rows, tokens.shape[1]), self.mask_id)
            given[: len(rows)] = tokens[rows]
            wanted = at[rows].flatten().nonzero()[:, 0]
            parts.append(self._normalised(*self._run(given), wanted))
        return torch.cat(parts)

    def _normalised(
        self,
        answer: Float[Tensor, "places padded"],
        bias: Float[Tensor, " padded"],
        wanted: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocab"]:
        if self.logits == "bfloat16":
            rounded = (answer[wanted] + bias)[:, : self.vocab_size].to(torch.bfloat16)
            rounded -= rounded.logsumexp(-1, keepdim=True)
            return torch.log_softmax(rounded.to(torch.float64), -1)
        if answer.is_cuda:
            from maskwalk.kernels.marginals import log_marginals

            return log_marginals(answer, bias, wanted, self.vocab_size)
        chosen = (answer[wanted] + bias)[:, : self.vocab_size]
        return torch.log_softmax(chosen.to(torch.float64), -1)
