"""A decoder on its stand: the laws it is tried on, its calls with their seeds, and its samples.

Nothing here judges. A decoder that takes one sequence at a time only is called once for each; the
samples are then fewer.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.testing.calling import Decoder, Failed, Outcome
from maskwalk.testing.laws import Law
from maskwalk.testing.model import OracleModel
from maskwalk.worlds.exact.listing import support_of
from maskwalk.worlds.world import World

FALSE_ALARM = 1e-6  # of one statistical check: ten of them stay far below 1e-4
SAMPLES, SINGLE = 4000, 400  # sequences in one batch; where each is a call of its own
Table = Tensor  # whole numbers, (rows, width)


@dataclass
class Trial:
    """What the checks ask a decoder with."""

    decoder: Decoder
    world: World
    ranks: str | None  # what it says it ranks positions by
    remasks: bool  # whether it says it takes tokens back
    printed: str = ""  # the first thing it printed
    changed: set[str] = field(default_factory=set)  # settings of the process it changed
    _models: dict[tuple[Any, torch.dtype], OracleModel] = field(default_factory=dict)
    _laws: list[Law] = field(default_factory=list)  # kept, so that their ids stay their own

    def ask(
        self,
        law: Law,
        canvas: Table,
        *,
        temperature: float = 0.0,
        steps: int | None = None,
        seed: int = 1,
        pads: Int[Tensor, " batch"] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Outcome:
        """One call; as many steps as the fullest row has masks, unless said otherwise."""
        model = self.model(law, dtype)
        most = max(1, int((canvas == model.mask_id).sum(1).max()))
        outcome = self.decoder.call(
            model,
            canvas,
            steps=most if steps is None else steps,
            temperature=temperature,
            seed=seed,
            pads=pads,
        )
        self.printed = self.printed or outcome.printed.strip()
        self.changed.update(outcome.changed)
        return outcome

    def model(self, law: Law, dtype: torch.dtype = torch.float32) -> OracleModel:
        """The model of a law, made once."""
        if (id(law), dtype) not in self._models:
            self._models[id(law), dtype] = self.decoder.model(law, dtype)
            self._laws.append(law)
        return self._models[id(law), dtype]

    def blank(self, law: Law, rows: int) -> Table:
        """Everything masked."""
        return torch.full((rows, law.length), law.vocab_size)

    def prompted(self, rows: int, given: int = 1) -> Table:
        """Beginnings of the world's own sequences, different ones, and masks."""
        sequences, probs = self.support
        order = probs.argsort(descending=True)
        heads: dict[tuple[int, ...], Tensor] = {}
        for row in sequences[order]:
            heads.setdefault(tuple(row[:given].tolist()), row)
        some = list(heads.values())
        canvas = torch.stack([some[i % len(some)] for i in range(rows)])
        canvas[:, given:] = self.world.vocab_size
        return canvas

    @cached_property
    def support(self) -> tuple[Tensor, Tensor]:
        """The world's sequences and their probabilities."""
        known = support_of(self.world)
        assert known is not None
        return known

    @cached_property
    def batched(self) -> str:
        """Empty if several sequences can be decoded at once; otherwise what happens."""
        try:
            self.ask(self.world, self.blank(self.world, 3), temperature=self.warm)
        except Failed as problem:
            return str(problem)
        return ""

    @property
    def cold(self) -> bool:
        """Whether temperature 0 can be asked for."""
        return self.decoder.signature.takes("temperature")

    @property
    def warm(self) -> float:
        """The temperature at which tokens are drawn from the model's own law."""
        return 1.0

    @cached_property
    def settled(self) -> bool:
        """Whether at temperature 0 result and order do not depend on the seed."""
        if not self.cold:
            return False
        canvas = self.prompted(1) if self.decoder.prompts else self.blank(self.world, 1)
        runs = [self.ask(self.world, canvas, seed=seed) for seed in (1, 2, 3, 4)]
        return all(same_course(runs[0], other) for other in runs[1:])

    def sample(
        self,
        law: Law,
        count: int = SAMPLES,
        *,
        steps: int | None = None,
        seed: int = 11,
        **more: Any,
    ) -> tuple[Table, float]:
        """Sequences drawn at temperature 1 from nothing, and the forward passes of one call."""
        if not self.batched:
            canvas = self.blank(law, count)
            found = self.ask(law, canvas, temperature=self.warm, steps=steps, seed=seed, **more)
            return found.tokens, float(found.calls)
        one, rows, calls = self.blank(law, 1), [], 0
        for i in range(count * SINGLE // SAMPLES):
            found = self.ask(
                law, one, temperature=self.warm, steps=steps, seed=seed * 100_003 + i, **more
            )
            rows.append(found.tokens)
            calls += found.calls
        return torch.cat(rows), calls / len(rows)


def reveal_rounds(outcome: Outcome, mask_id: int) -> Int[Tensor, "batch length"] | None:
    """The pass after which each position was no longer masked; −1: it never was."""
    if outcome.canvases is None:
        return None
    rounds = torch.full_like(outcome.tokens, -1)
    for number, canvas in enumerate(outcome.canvases):
        rounds = torch.where(canvas == mask_id, number, rounds)
    return rounds


def same_course(one: Outcome, other: Outcome) -> bool:
    """Whether tokens, passes and everything the model was shown are the same."""
    if not torch.equal(one.tokens, other.tokens) or one.calls != other.calls:
        return False
    return all(torch.equal(a.tokens, b.tokens) for a, b in zip(one.asked, other.asked))
