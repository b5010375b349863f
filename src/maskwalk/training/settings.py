"""What a training run is asked to do. The defaults are the paper's (appendix, Configurations)."""

from dataclasses import asdict, dataclass
from typing import Any

from jaxtyping import Int
from torch import Tensor

from maskwalk.errors import MaskwalkError, real, whole
from maskwalk.training.maskings import MASKINGS


@dataclass(frozen=True)
class Settings:
    """Optimisation, the same for all models of a run."""

    steps: int = 50_000
    batch: int = 256
    lr: float = 3e-4
    lr_min: float = 1e-6
    warmup: float = 0.1  # share of the steps
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    clip: float = 1.0
    ema: float = 0.9999
    every: int = 2_000  # steps between checkpoints

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "every"):
            whole(name, getattr(self, name), 1)
        real("lr", self.lr, 0.0)
        real("lr_min", self.lr_min, 0.0, self.lr)
        real("warmup", self.warmup, 0.0, 1.0)
        real("weight_decay", self.weight_decay, 0.0)
        real("clip", self.clip, 0.0)
        for name in ("beta1", "beta2", "ema"):
            real(name, getattr(self, name), 0.0, 1.0)

    def to_json(self) -> dict[str, Any]:
        """The settings as plain values."""
        return asdict(self)


PLAIN = MASKINGS.canonical("uniform")  # the masking that files and runs need not name


@dataclass(frozen=True)
class Job:
    """One model of a run: its data and its randomness; everything else is shared."""

    name: str
    walks: Int[Tensor, "count length"]
    seed: int = 0
    dropout: float = 0.1
    held: Int[Tensor, "held length"] | None = None  # held-out walks for the bound
    floor: float | None = None  # the bound of a perfect denoiser, H(law)/length, nats per token
    masking: str = "uniform"  # in which contexts it learns (maskings.py)

    def __post_init__(self) -> None:
        real("dropout", self.dropout, 0.0, 0.99)
        object.__setattr__(self, "masking", MASKINGS.canonical(self.masking))
        if self.walks.ndim != 2 or len(self.walks) == 0:
            raise MaskwalkError(
                f"Training needs walks of shape (count, length), not {tuple(self.walks.shape)}."
            )
