"""Row look-up whose gradient is a product: the same bits every time, and fast."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


class _Embed(torch.autograd.Function):
    """Row look-up whose gradient is a product with the one-hot tokens.

    Half of a batch is the mask token: adding its gradients one by one means thousands of atomic
    additions to the same row. The product is faster, and gives the same bits every time.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, tokens: Tensor, dtype: torch.dtype) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.rows, ctx.dtype = table.shape[1], dtype
        models, rows, hidden = table.shape
        begin = torch.arange(models, device=table.device)[:, None] * rows
        return F.embedding(tokens + begin, table.reshape(models * rows, hidden))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (tokens,) = ctx.saved_tensors
        gradient = gradients[0]
        padded = -(-ctx.rows // 8) * 8
        ids = torch.arange(padded, device=tokens.device)
        hot = (tokens[..., None] == ids).to(ctx.dtype)
        product = torch.bmm(hot.transpose(1, 2), gradient.to(ctx.dtype))
        return product[:, : ctx.rows].to(gradient.dtype), None, None


def embed(table: Tensor, tokens: Tensor, dtype: torch.dtype) -> Tensor:
    """The rows (models, count, width) of each model's table; the gradient's product in `dtype`."""
    look_up: Any = _Embed.apply  # untyped in PyTorch
    rows: Tensor = look_up(table, tokens, dtype)
    return rows
