"""Order-k laws from a kernel and an initial law, for small alphabets.

    nu(x) = rho_k(x_0 … x_{k-1}) · prod_{t >= k} P_k(x_t | x_{t-k} … x_{t-1})     [paper, section 2]

Nothing ties P_k to reversibility or rho_k to P_k. The first k tokens are drawn one by one from the
exact conditionals of rho_k.
"""

import numpy as np
import torch
from jaxtyping import Float64, Int
from torch import Tensor

from maskwalk.errors import MaskwalkError, seed_number, whole
from maskwalk.streams import Purpose, block_uniforms
from maskwalk.worlds.walks.graphs import Graph
from maskwalk.worlds.walks.laws.chain import ChainLaw, check_law
from maskwalk.worlds.walks.laws.law import WALKS, WalkLaw, walkable

ENTRIES = 50_000_000  # of a dense kernel: 400 MB


class MarkovLaw(WalkLaw):
    """Any kernel tensor (V,)*k + (V,), indexed oldest token first, and initial law (V,)*k."""

    def __init__(
        self,
        kernel: Float64[Tensor, "..."],
        initial: Float64[Tensor, "..."],
        length: int,
        graph: Graph | None = None,
    ) -> None:
        size, order = kernel.shape[-1] if kernel.ndim else 0, kernel.ndim - 1
        if order < 1 or set(kernel.shape) != {size} or initial.shape != kernel.shape[:-1]:
            raise MaskwalkError(
                "An order-k law over V tokens has a kernel of shape (V,)*k + (V,) and an initial "
                f"law of shape (V,)*k, not {tuple(kernel.shape)} and {tuple(initial.shape)}."
            )
        super().__init__(size, length, order, graph)
        if length < order:
            raise MaskwalkError(f"An order-{order} law needs walks of at least {order} tokens.")
        check_law("The initial law", initial.numpy())
        check_law("The kernel", kernel.numpy(), total=False)
        if (kernel.sum(-1) - 1.0).abs().max() > 1e-9:
            raise MaskwalkError(
                "The kernel must sum to 1 over the next token after every history, also after "
                "those that cannot occur."
            )
        self.kernel = kernel
        # Marginals of rho_k over its first j+1 tokens, normalised over the last of them.
        self._starts = []
        for past in range(order):
            joint = initial.sum(dim=tuple(range(past + 1, order))) if past + 1 < order else initial
            total = joint.sum(-1, keepdim=True)
            self._starts.append(torch.where(total > 0, joint / total, 0.0))

    def next_probs(self, history: Int[Tensor, "rows past"]) -> Float64[Tensor, "rows vocab"]:
        """The kernel's row, or the conditional of rho_k while there are fewer than k tokens."""
        past = history.shape[1]
        table = (self.kernel if past == self.order else self._starts[past]).to(history.device)
        if past == 0:
            return table.expand(len(history), -1)
        return table[tuple(history.to(torch.int64).unbind(1))]


def _weights(seed: int, rows: int, width: int, stream: int) -> Float64[np.ndarray, "rows width"]:
    """Uneven positive weights, by products only: the same on every machine."""
    return 0.05 + block_uniforms(seed, Purpose.GRAPH, 0, rows, width, 2**30 + stream) ** 2


@WALKS.register("markov")
def markov(graph: Graph, length: int, order: int = 1, seed: int = 0) -> WalkLaw:
    """A random order-k law on the graph: other weights after every history, so nonreversible.

    The next token is the current node or a neighbour. Small alphabets only: the kernel is dense.
    """
    walkable(graph, "Markov")
    order, size, seed = whole("order", order, 1, 64), graph.nodes, seed_number("seed", seed)
    if size ** (order + 1) > ENTRIES:
        raise MaskwalkError(
            f"markov(order={order}) on {size} nodes has a kernel of {size}^{order + 1} entries; "
            f"at most {ENTRIES:,} are held. Take fewer nodes or a smaller order."
        )
    near = (graph.adjacency.toarray() > 0) | np.eye(size, dtype=bool)
    rows = _weights(seed, size**order, size, 0).reshape((size,) * (order + 1)) * near
    kernel = rows / rows.sum(-1, keepdims=True)
    first = _weights(seed, 1, size**order, 1).reshape((size,) * order)
    for axis in range(order - 1):  # only histories that are walks
        shape = [1] * order
        shape[axis] = shape[axis + 1] = size
        first = first * near.reshape(shape)
    initial = first / first.sum()
    if order == 1:
        return ChainLaw(torch.from_numpy(initial), kernel, length, graph)
    return MarkovLaw(torch.from_numpy(kernel), torch.from_numpy(initial), length, graph)
