"""Training: the objective, the step, the loop, checkpoints and the zoo."""

from maskwalk.training.loop import train
from maskwalk.training.settings import Job, Settings

__all__ = ["Job", "Settings", "train"]
