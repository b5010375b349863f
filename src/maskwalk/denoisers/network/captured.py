"""A function of tensors, recorded once for each shape and replayed, on an accelerator."""

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Answer = tuple[Tensor, Tensor]


class Captured:
    """On an accelerator a CUDA graph for each shape; on a CPU the function itself.

    A replay writes into the tensors of the one before. The function is given with each question,
    always the same one: kept here, the network it belongs to would keep itself alive.
    """

    def __init__(self) -> None:
        self._graphs: dict[Any, tuple[Any, list[Tensor], Answer, tuple[Tensor, ...]]] = {}

    def __call__(
        self, function: Callable[..., Answer], given: tuple[Tensor, ...], *fixed: Tensor
    ) -> Answer:
        """The function of `given` and of `fixed`, which is the same for the same shapes."""
        if not given[0].is_cuda:
            return function(*given, *fixed)
        shapes = tuple(tensor.shape for tensor in given)
        if shapes not in self._graphs:
            self._graphs[shapes] = self._capture(function, given, fixed)
        graph, mine, answer, _ = self._graphs[shapes]
        for old, new in zip(mine, given):
            old.copy_(new)
        graph.replay()
        return answer

    def _capture(
        self,
        function: Callable[..., Answer],
        given: tuple[Tensor, ...],
        fixed: tuple[Tensor, ...],
    ) -> tuple[Any, list[Tensor], Answer, tuple[Tensor, ...]]:
        # A graph reads the memory its inputs had when captured: all of them must be kept alive.
        mine, device = [tensor.clone() for tensor in given], given[0].device
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(2):
                function(*mine, *fixed)
        torch.cuda.current_stream(device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # A graph of a forgotten network that is freed during the capture would spoil it.
        gc.collect()
        gc.disable()
        try:
            with torch.cuda.graph(graph):
                answer = function(*mine, *fixed)
        finally:
            gc.enable()
        return graph, mine, answer, fixed
