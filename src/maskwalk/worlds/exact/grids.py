"""Grids whose units (rows, columns, boxes) hold every value once: where they break, a picture."""

import numpy as np
import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

BLANK, BREAK = "·", "✗"


def uniques(
    tokens: Int[Tensor, "count length"], units: Int64[np.ndarray, "units cells"]
) -> Bool[Tensor, "count length"]:
    """False where a value repeats an earlier one of its unit."""
    fine = torch.ones(tokens.shape, dtype=torch.bool, device=tokens.device)
    for unit in torch.from_numpy(units).to(tokens.device):
        values = tokens[:, unit]
        same = values[:, :, None] == values[:, None, :]
        fine[:, unit] &= ~same.tril(-1).any(2)
    return fine


def show_grid(
    tokens: Int[Tensor, " length"],
    shape: tuple[int, int],
    units: Int64[np.ndarray, "units cells"],
    mask_id: int,
    box: int = 0,
) -> str:
    """The grid with values from 1; · is masked, ✗ marks a value that repeats an earlier one."""
    tokens = tokens.cpu()
    # Masked cells repeat nothing: each gets a value of its own.
    own = torch.where(tokens == mask_id, mask_id + torch.arange(len(tokens)), tokens)
    fine = uniques(own[None], units)[0].tolist()
    width = len(str(mask_id))
    cells = [
        f"{BLANK if token == mask_id else token + 1:>{width}}{' ' if right else BREAK}"
        for token, right in zip(tokens.tolist(), fine)
    ]
    lines = []
    for row in range(shape[0]):
        line = cells[row * shape[1] : (row + 1) * shape[1]]
        parts = [line] if not box else [line[i : i + box] for i in range(0, shape[1], box)]
        lines.append("│ ".join("".join(part) for part in parts).rstrip())
        if box and (row + 1) % box == 0 and row + 1 < shape[0]:
            lines.append("┼─".join("─" * (box * (width + 1)) for _ in parts))
    return "\n".join(lines)
