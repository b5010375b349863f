"""The two kinds of sampler, and the table of them.

An `UnmaskingPolicy` only says *where*: it names positions before anything is drawn there, and the
base class then draws. Choosing by what was drawn biases the law even with a perfect denoiser, so
rules that do so (or that remask) are written as a general `Sampler` instead.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

from jaxtyping import Bool
from torch import Tensor

from maskwalk.decoding.canvas import Canvas, RoundStreams, State
from maskwalk.decoding.checks import checked_choice
from maskwalk.decoding.guard import Shown, changed, is_foreign
from maskwalk.decoding.kinds import FACTORISED, SHAPED
from maskwalk.decoding.view import View
from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError
from maskwalk.kernels.small import any_of_each, large, small
from maskwalk.specs import Registry
from maskwalk.worlds.world import World


class Sampler(ABC):
    """A decoding rule: one `step` is one round; every denoiser call in it is counted.

    A dataclass that is to know the world it runs in has a field `world` with the default None.
    The class attributes tell the contract test and the benchmark what to expect; none is needed.
    """

    sweep: ClassVar[tuple[dict[str, Any], ...]] = ({},)  # settings that draw its whole curve
    ranks_by: ClassVar[str | None] = None  # the score whose lowest positions come first
    added_later: ClassVar[tuple[str, ...]] = ()  # parameters that older records do not name
    remasks: ClassVar[bool] = False  # whether it takes revealed tokens back
    placed: ClassVar[bool] = False  # whether it asks where on the canvas a position is
    lasting: ClassVar[tuple[str, ...]] = ()  # what it remembers from one block to the next
    block_size: int | None = None  # positions of a block, where it fills one after another

    @property
    def law_kind(self) -> str:
        """What law its tokens have with exact draws: exact, factorised or shaped (kinds.py)."""
        return SHAPED

    @property
    def reveals_one(self) -> bool:
        """Whether it reveals one token per round, chosen before it is drawn, on any canvas."""
        return False

    @property
    def reads_whole(self) -> bool:
        """Whether it reads `view.whole`: in a block, also what is masked outside of it."""
        return any(part.reads_whole for part in self._parts().values())

    @property
    def asks_elsewhere(self) -> bool:
        """Whether it asks about more than its canvas as it is: candidates, or tokens masked again.
        Such a rule cannot be run on answers at hand (`credit`, `lossless`)."""
        return any(part.asks_elsewhere for part in self._parts().values())

    def in_world(self, world: World) -> "Sampler":
        """The same sampler, told of its world (and so are the samplers it is made of)."""
        told: dict[str, Any] = {name: part.in_world(world) for name, part in self._parts().items()}
        if "world" in getattr(self, "__dataclass_fields__", ()):
            told["world"] = world
        return replace(self, **told) if told else self  # type: ignore[type-var]

    @property
    def needs_world(self) -> bool:
        """Whether it runs only where it has been told of its world."""
        return any(part.needs_world for part in self._parts().values())

    @property
    def by_place(self) -> bool:
        """Whether it, or a sampler it is made of, asks where on the canvas a position is."""
        return self.placed or any(part.by_place for part in self._parts().values())

    def _parts(self) -> dict[str, "Sampler"]:
        """The samplers it is made of, by field."""
        names = getattr(self, "__dataclass_fields__", ())
        values = {name: getattr(self, name, None) for name in names}
        return {name: value for name, value in values.items() if isinstance(value, Sampler)}

    def first_picks(self, length: int) -> range | None:
        """Where its first pick is uniform if all scores tie (None: not decided by ties)."""
        return None

    def init(self, canvas: Canvas) -> State:
        """What the sampler remembers before the first round."""
        return {}

    def finished(self, canvas: Canvas) -> Bool[Tensor, " batch"]:
        """Which rows are done: for a sampler that may still remask, not all complete ones are."""
        return large(~any_of_each(canvas.masked_few))

    def max_rounds(self, length: int) -> int:
        """More rounds than this on `length` positions is an endless loop, not a slow sampler."""
        return length

    @abstractmethod
    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """The canvas after one round."""


class UnmaskingPolicy(Sampler):
    """The common case: choose positions, then draw there, independently given the canvas."""

    @property
    def law_kind(self) -> str:
        """Factorised, unless it draws in a step of its own or takes tokens back."""
        return FACTORISED if chooses_first(self) else SHAPED

    @abstractmethod
    def choose(
        self, view: View, state: State, rng: RoundStreams
    ) -> tuple[Bool[Tensor, "batch length"], State]:
        """The masked positions to reveal now (at least one per row), and what to remember."""

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        """One round: choose, ask, draw, reveal."""
        foreign = is_foreign(self)
        view = View(canvas, denoise, rng, copies=foreign)
        shown = Shown(view, rng) if foreign else None
        choice: Any = self.choose(view, canvas.state, rng)
        if not view.kept:
            raise changed(self, "the marginals", canvas.round)
        if shown is not None:
            shown.check(self, canvas.round)
        chosen, state = checked_choice(self, choice, view.masked)
        self.check_choice(chosen, view)
        return canvas.reveal(chosen, rng.draw(view.take_marginals(chosen), chosen), state)

    def check_choice(self, chosen: Bool[Tensor, "batch length"], view: View) -> None:
        """Refuses a choice that reveals nothing in some row, or what is revealed already."""
        some, masked = small(chosen), small(view.masked)
        if not bool((some.any(1) & ~(some & ~masked).any(1)).all()):
            raise MaskwalkError(
                f"{self!r} must choose at least one masked position in every row and nothing else; "
                f"it did not in round {view.round}."
            )


def chooses_first(sampler: Sampler) -> bool:
    """Whether it is built so that it cannot see a token before it has chosen the position."""
    plain = isinstance(sampler, UnmaskingPolicy) and type(sampler).step is UnmaskingPolicy.step
    return plain and not sampler.remasks


SAMPLERS: Registry[Sampler] = Registry(
    "sampler", context=("world",), home="maskwalk.samplers", makes=Sampler
)
