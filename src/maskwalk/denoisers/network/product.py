"""Products without gradients on a CPU: by oneDNN, where PyTorch has it.

PyTorch leaves float32 products to MKL, which on processors that are not Intel's stays at half of
the registers' width: 118 GFLOP/s on a core of an AMD EPYC where oneDNN, which comes with PyTorch
too, does 260. What `torch.compile` calls on a CPU is called here.
"""

import platform
from functools import lru_cache

import torch
from torch import Tensor


def on_a_cpu(x: Tensor) -> bool:
    """Whether a product with this needs no gradient and can be done by oneDNN."""
    plain = x.is_cpu and x.dtype == torch.float32 and not torch.is_grad_enabled()
    return plain and not torch.compiler.is_compiling() and _has_onednn()


@lru_cache(maxsize=1)
def _has_onednn() -> bool:
    """Whether this build of PyTorch has the operation, on a processor it was tried on."""
    known = platform.machine() in ("x86_64", "AMD64") and torch.backends.mkldnn.is_available()
    return bool(known) and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def product_on_a_cpu(x: Tensor, weight: Tensor) -> Tensor:
    """x·Wᵀ of each model."""
    product = torch.ops.mkldnn._linear_pointwise
    if len(x) == 1:
        one: Tensor = product(x[0], weight[0], None, "none", [], "")[None]
        return one
    return torch.stack([product(a, w, None, "none", [], "") for a, w in zip(x, weight)])
