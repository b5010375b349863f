"""The exact oracle of a first-order law of many nodes: sparse messages along each gap, no tables.

As in chain.py and schedule.py, with a revealed at position s, b at position e and s < i < e,

    p_i(x) ∝ P_{s→i}[a, x] · P_{i→e}[x, b],    P_{s→t} = P_{s+1} P_{s+2} ⋯ P_t,

but no power is held. A vector walks on from a, one sparse product per step, and is written down
wherever somebody asks; another walks back from b and is multiplied in (steps.py). Places with the
same a (and, where kernels change with time, the same s) share one walk. So besides the answer there
are O(nodes + edges) numbers, and the time is at most that of (steps of all walks) × edges.

Nothing depends on the batch a question is in. Evidence that no walk agrees with: chain_leaks.py.
"""

from functools import cached_property
from math import log

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Int64
from torch import Tensor

from maskwalk.denoiser import normalise
from maskwalk.errors import MaskwalkError
from maskwalk.worlds.sizes import CALLS, check_messages, fits
from maskwalk.worlds.walks.laws import ChainLaw, ScheduleLaw
from maskwalk.worlds.walks.oracles.base import TOO_SMALL, Oracle, chunks
from maskwalk.worlds.walks.oracles.chain_leaks import ChainLeaks
from maskwalk.worlds.walks.oracles.gaps import CACHE, Gap, gaps
from maskwalk.worlds.walks.oracles.steps import LARGE, WORKING, Steps, Walkers

# A vector loses what is below 1e-458. Against evidence of 1e-440 or more, 1e-139 where both sides
# are held 2^500 times, that is nothing; evidence that seems impossible may still be, below 1e-430.
LEAST, LOST = 1e-139, -430 * log(10)
NOTICED = 10**9  # bytes of an answer from which it is asked whether they fit


class SparseOracle(Oracle):
    """Exact marginals of a first-order law by sparse messages along each gap."""

    def __init__(self, law: ChainLaw | ScheduleLaw) -> None:
        super().__init__(law)
        self.law = law
        self._steps: dict[torch.device, Steps] = {}
        self._leaks: dict[torch.device, ChainLeaks] = {}

    def check_rows(self, rows: int, calls: int = CALLS) -> None:
        """Refuses more sequences than can be answered for in a few hours."""
        check_messages(rows, self.length, self.vocab_size, self._entries, calls)

    @cached_property
    def _entries(self) -> int:
        laws = self.law.laws if isinstance(self.law, ScheduleLaw) else (self.law,)
        return max(law.kernel.nnz for law in laws)

    def steps(self, device: torch.device) -> Steps:
        """The kernels on a device, built when first asked for."""
        if device not in self._steps:
            self._steps[device] = Steps(self.law, device)
        return self._steps[device]

    def leaks(self, device: torch.device) -> ChainLeaks:
        """The kernels with leaks on a device, built when evidence is first impossible."""
        if device not in self._leaks:
            self._leaks[device] = ChainLeaks(self.law, device)
        return self._leaks[device]

    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "rows vocab"]:
        """Log-marginals of the places in `at`, packed."""
        rows, columns = self._places(tokens, at).nonzero(as_tuple=True)
        places, vocab = len(rows), self.vocab_size
        if 8.0 * places * vocab > NOTICED:
            fits(
                f"The marginals of {places:,} places over {vocab:,} nodes",
                1.3 * 8.0 * places * vocab,
                "Use a sampler that asks about few places at a time, such as bisection, random or "
                "left_to_right; or shorter sequences, or fewer nodes.",
            )
        answer = torch.empty((places, vocab), dtype=torch.float64, device=tokens.device)
        gap = gaps(tokens, rows, columns, self.mask_id)
        self._walk(answer, gap.left, gap.position - gap.steps_left, gap.steps_left, True)
        self._walk(answer, gap.right, gap.position + gap.steps_right, gap.steps_right, False)
        possible = torch.empty_like(rows, dtype=torch.bool)
        for part in chunks(places, CACHE // vocab):
            total = answer[part].sum(-1, keepdim=True)
            answer[part].div_(total).log_()
            possible[part] = total[:, 0] > 0
            if bool(((total > 0) & (total < LEAST)).any()):
                raise MaskwalkError(TOO_SMALL)
        (impossible,) = (~possible).nonzero(as_tuple=True)
        self.impossible += len(rows[impossible].unique())
        self._answer_impossible(answer, gap, impossible)
        return answer

    def _walk(
        self, answer: Tensor, token: Tensor, origin: Tensor, steps: Tensor, onward: bool
    ) -> None:
        """Writes the vectors from the left into the answer, or multiplies those from the right."""
        kernels = self.steps(answer.device)
        tokens, start, number = (x.cpu().numpy() for x in (token, origin, steps))
        if kernels.turns is None:  # wherever they begin, all walk together
            start = np.zeros_like(start)
        told = onward or not kernels.endless  # by what lies beyond the end
        for begin in np.unique(start).tolist():
            (here,) = np.nonzero((start == begin) & (told | (tokens < self.vocab_size)))
            walkers, owner = np.unique(tokens[here], return_inverse=True)
            for part in chunks(len(walkers), WORKING // self.vocab_size):
                (mine,) = np.nonzero((owner >= part.start) & (owner < part.stop))
                walk = Walkers(kernels, walkers[part], begin, onward)
                place = here[mine]
                self._visit(answer, walk, place, owner[mine] - part.start, number[place])

    def _visit(
        self,
        answer: Tensor,
        walk: Walkers,
        place: Int64[np.ndarray, " asked"],
        who: Int64[np.ndarray, " asked"],
        number: Int64[np.ndarray, " asked"],
    ) -> None:
        """Takes steps until every place, `number` steps from its walker's origin, is served."""
        last = np.zeros(len(walk.tokens), dtype=np.int64)
        np.maximum.at(last, who, number)
        order = np.argsort(number, kind="stable")
        place, who, number = place[order], who[order], number[order]
        for step in range(1, int(last.max(initial=0)) + 1):
            walk.advance(last >= step)
            now = slice(*np.searchsorted(number, (step, step + 1)))
            for some, block in walk.vectors(who[now]):
                rows = torch.from_numpy(place[now][some]).to(answer.device)
                if walk.onward:
                    answer[rows] = block
                elif self.vocab_size < LARGE:
                    answer[rows] *= block
                else:  # without a copy
                    for row, vector in zip(rows.tolist(), block):
                        answer[row].mul_(vector)

    def _answer_impossible(self, answer: Tensor, gap: Gap, impossible: Tensor) -> None:
        """The limit of a vanishing leak, gap by gap."""
        part = gap[impossible]
        begin, end = part.position - part.steps_left, part.position + part.steps_right
        ends = torch.stack([part.left, begin, part.right, end], 1)
        each, which = ends.unique(dim=0, return_inverse=True)
        steps = self.steps(answer.device)
        for number, (a, s, b, e) in enumerate(each.tolist()):
            if (e - s) * log(steps.smallest) < LOST and steps.joined(a, s, b, e):
                raise MaskwalkError(TOO_SMALL)  # it only seemed impossible
            (mine,) = (which == number).nonzero(as_tuple=True)
            first = max(s, 0)
            canvas = answer.new_full((1, min(e, self.length - 1) + 1 - first), self.mask_id).long()
            if s >= 0:
                canvas[0, 0] = a
            if e < self.length:
                canvas[0, -1] = b
            asked, back = part.position[mine].unique(return_inverse=True)
            wanted = torch.zeros_like(canvas, dtype=torch.bool)
            wanted[0, asked - first] = True
            weights = self.leaks(answer.device).at(canvas, wanted, first)
            answer[impossible[mine]] = normalise(weights)[back]
