"""Small tensors on a CPU: numpy's view of them, whose operations cost a fraction of torch's calls.

The checks and counts of a decoding round are a dozen comparisons of a canvas. At batch 1 calling
torch for each is most of the round. Written in operators that both know (`&`, `!=`, `.any(1)`),
they run on either.
"""

from typing import Any

import torch
from torch import Tensor

SMALL = 1 << 15  # numbers; beyond, the work outweighs the calls


KINDS = (torch.bool, torch.int64, torch.float32, torch.float64)


def small(tensor: Tensor) -> Any:
    """The same memory as a numpy array, if that is cheaper; the tensor itself if not."""
    cheaper = tensor.numel() <= SMALL and tensor.device.type == "cpu" and tensor.dtype in KINDS
    return tensor.detach().numpy() if cheaper else tensor
