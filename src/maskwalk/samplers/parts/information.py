"""What a sequence learns, from its own calls, about the information between its positions.

When position j is revealed, KL(p_i after ‖ p_i before) at a position i that stays masked is an
unbiased estimate of the information j carries about i. Kept for each distance, with nothing
revealed in between, and, as a share of that, for each thickness of the wall of revealed neighbours.
"""

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from maskwalk.decoding.canvas import State
from maskwalk.decoding.view import View

WIDEST = 4  # walls of this many revealed neighbours or more are one kind
FAR = 1e3  # nats: stands for "not seen yet"


def walls(masked: Bool[Tensor, "batch length"]) -> Int[Tensor, "batch length length"]:
    """For i and j: the most neighbouring revealed positions between them, WIDEST at most."""
    place = torch.arange(masked.shape[1], device=masked.device)
    last_masked = torch.where(masked, place, -1).cummax(1).values
    run = place - last_masked  # revealed positions in a row that end here
    above = torch.where(place[None, :] > place[:, None], run[:, None, :], 0)
    widest = above.cummax(2).values
    widest = torch.where(place[None, :] > place[:, None], widest, 0)
    return (widest + widest.transpose(1, 2)).clamp(max=WIDEST)


def open_by_distance(state: State) -> Float64[Tensor, "batch length"]:
    """open(d): the mean seen at d, at most that at smaller distances; FAR if nothing was seen."""
    mean = torch.where(state["times"] > 0, state["seen"] / state["times"].clamp(min=1.0), FAR)
    return mean.cummin(1).values


def learn(view: View, state: State, probs: Tensor) -> State:
    """Adds what the tokens revealed last tell about the positions still masked to the state."""
    length, device = view.masked.shape[1], view.masked.device
    new = state["masked"] & ~view.masked
    log_ratio = probs.clamp(min=1e-300).log() - state["probs"].clamp(min=1e-300).log()
    gain = torch.where(probs > 0, probs * log_ratio, 0.0).sum(2).clamp(0.0, FAR)
    gain = torch.round(gain / 1e-9) * 1e-9
    # Each position is told by the newly revealed one with the thinnest wall, then the nearest.
    place = torch.arange(length, device=device)
    apart = (place[None, :] - place[:, None]).abs()
    wall = walls(state["masked"])
    key = torch.where(new[:, None, :], wall * length + apart, WIDEST * length + length)
    teller = key.argmin(2)
    thick = wall.gather(2, teller[:, :, None])[:, :, 0]
    distance = (teller - place).abs()
    masked = view.masked.to(torch.float64)
    near = masked * (thick == 0)
    seen = state["seen"].scatter_add(1, distance, near * gain)
    times = state["times"].scatter_add(1, distance, near)
    state = {**state, "probs": probs, "seen": seen, "times": times}
    usual = open_by_distance(state).gather(1, distance)
    past = masked * (thick > 0) * (usual < FAR)
    return {
        **state,
        "passed": state["passed"].scatter_add(1, thick, past * gain),
        "expected": state["expected"].scatter_add(1, thick, past * usual),
    }


def information(view: View, state: State) -> Float64[Tensor, "batch length length"]:
    """The estimate of I(i, j) for every pair."""
    entropy = view.score("entropy")
    length = entropy.shape[1]
    place = torch.arange(length, device=entropy.device)
    apart = (place[None, :] - place[:, None]).abs().expand(len(entropy), -1, -1)
    usual = open_by_distance(state).gather(1, apart.flatten(1)).view_as(apart)
    share = torch.where(
        state["expected"] > 0, state["passed"] / state["expected"].clamp(min=1e-12), 1.0
    )
    share = share.clamp(max=1.0).cummin(1).values  # a thicker wall never lets more through
    through = share.gather(1, walls(view.masked).flatten(1)).view_as(apart)
    bound = torch.minimum(entropy[:, :, None], entropy[:, None, :])
    return torch.minimum(bound, usual * through)
