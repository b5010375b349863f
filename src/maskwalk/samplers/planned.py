"""A plan fixed in advance: position i is revealed in its turn, whatever the tokens.

`analysis/plans` computes the plan that loses least for a number of rounds; its sets written as
turns, one number for each position, are a spec: `planned(turns=(2, 1, 2, 0, 2, 1, 2))` is bisection
of seven positions. Turns without masked positions are skipped, so given tokens cost nothing.

Source: this project (analysis/plans).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import RoundStreams, State
from maskwalk.decoding.policy import SAMPLERS, UnmaskingPolicy
from maskwalk.decoding.view import View
from maskwalk.errors import MaskwalkError, whole


@SAMPLERS.register("planned")
@dataclass(frozen=True)
class Planned(UnmaskingPolicy):
    """A fixed plan: position i in turn `turns[i]`; repeated along longer canvases."""

    turns: tuple[int, ...] = (2, 1, 2, 0, 2, 1, 2)
    placed: ClassVar[bool] = True
    sweep: ClassVar[tuple[dict[str, Any], ...]] = (
        {"turns": (2, 1, 2, 0, 2, 1, 2)},
        {"turns": (0, 1)},
        {"turns": (0,)},
    )

    def __post_init__(self) -> None:
        if not isinstance(self.turns, tuple) or not self.turns:
            raise MaskwalkError(
                f"turns must be a tuple of whole numbers, such as (1, 0, 1), not {self.turns!r}."
            )
        for turn in self.turns:
            whole("every turn", turn, 0)

    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The masked positions whose turn comes first."""
        turns = torch.tensor(self.turns, device=view.masked.device)
        place = torch.arange(view.masked.shape[1], device=view.masked.device)
        turn = torch.where(view.masked, turns[place % len(turns)], max(self.turns) + 1)
        return turn == turn.amin(1, keepdim=True), state
