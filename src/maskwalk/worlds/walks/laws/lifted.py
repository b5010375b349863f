"""Forward passes over histories: exact answers for laws of any order.

An order-k law is a first-order chain on its last k tokens. Only histories that can really occur are
held, so the cost follows the support and not V^k.
"""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Bool
from torch import Tensor

from maskwalk.errors import MaskwalkError

LIMIT = 200_000  # histories held at one position
CELLS = 1 << 22  # numbers held at once by dense (histories, vocab) steps

StepProbs = Callable[[int, Tensor], Tensor]  # position, history ↦ the law of the token there


def _forward(
    step_probs: StepProbs, order: int, length: int, start: int | None
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """At every position: the next tokens, their joint probabilities with the history before them,
    and their conditional ones; all walks, or only those that begin at `start`."""
    histories = torch.zeros((1, 0), dtype=torch.int64)
    mass = torch.ones(1, dtype=torch.float64)
    rows = max(1, CELLS // step_probs(0, histories).shape[1])
    for t in range(length):
        longer, joint, given = [], [], []
        for some, weight in zip(torch.split(histories, rows), torch.split(mass, rows)):
            probs = step_probs(t, some)
            if t == 0 and start is not None:
                probs = torch.where(torch.arange(probs.shape[1]) == start, probs, 0.0)
            row, token = probs.nonzero(as_tuple=True)
            longer.append(torch.cat([some[row], token[:, None]], dim=1))
            given.append(probs[row, token])
            joint.append(weight[row] * given[-1])
        ends, masses = torch.cat(longer), torch.cat(joint)
        yield ends[:, -1], masses, torch.cat(given)
        histories, which = torch.unique(ends[:, -order:], dim=0, return_inverse=True)
        if len(histories) > LIMIT:
            raise MaskwalkError(
                f"More than {LIMIT:,} histories of {min(t + 1, order)} tokens can occur under this "
                "law, too many for an exact answer; take a smaller graph or order."
            )
        mass = torch.zeros(len(histories), dtype=torch.float64).index_add_(0, which, masses)


def entropy(step_probs: StepProbs, order: int, length: int) -> float:
    """-E[log nu(x)] in nats, summed position by position."""
    steps = _forward(step_probs, order, length, None)
    return sum(float(-(joint * given.log()).sum()) for _, joint, given in steps)


def reach(step_probs: StepProbs, order: int, length: int, start: int) -> Bool[Tensor, " vocab"]:
    """Which last tokens have positive probability after the first token `start`."""
    *_, (last, _, _) = _forward(step_probs, order, length, start)
    ends = torch.zeros(
        step_probs(0, torch.zeros((1, 0), dtype=torch.int64)).shape[1], dtype=torch.bool
    )
    ends[last] = True
    return ends
