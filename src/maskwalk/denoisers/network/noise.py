"""The log-linear noise schedule of MDLM: at time t a token is masked with probability (1 - ε) t."""

import torch
from jaxtyping import Float
from torch import Tensor

EPSILON = 1e-3


def sigma(times: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The log-linear noise level of a time: tokens survive with probability exp(-σ)."""
    return -torch.log1p(-(1 - EPSILON) * times)
