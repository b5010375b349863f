"""Learning rate and averaging weight as functions of the step, computed where the step lives.

warm-up:   lr_min + (lr - lr_min)·n/w                        for n < w = warmup·steps
cosine:    lr_min + (lr - lr_min)·(1 + cos π(n-w)/(steps-w))/2
average:   min(ema, (1 + k)/(10 + k)) after k updates: a constant .9999 from the start would
           keep 0.7 % of the initial weights after 50,000 steps.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from maskwalk.training.settings import Settings


def learning_rate(settings: Settings, step: Int[Tensor, ""]) -> Float[Tensor, ""]:
    """The rate of update number `step` (from 0), float64."""
    warm = round(settings.warmup * settings.steps)
    n, span = step.to(torch.float64), settings.lr - settings.lr_min
    rise = n / max(warm, 1)
    fall = 0.5 * (1 + torch.cos(math.pi * (n - warm) / max(settings.steps - warm, 1)))
    return settings.lr_min + span * torch.where(n < warm, rise, fall)


def averaging(settings: Settings, updates: Int[Tensor, ""]) -> Float[Tensor, ""]:
    """How much of the running average stays at update number `updates` (from 1), float64."""
    k = updates.to(torch.float64)
    return ((1 + k) / (10 + k)).clamp(max=settings.ema)
