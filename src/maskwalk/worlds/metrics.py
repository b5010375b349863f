"""What is measured of decoded sequences. A metric describes itself; readers need nothing else.

    @METRICS.register("coherence", title="coherence", better=+1, limits=(0, 1))
    def coherence(sample: Sample) -> Estimate | None: ...    # None: this world has no such number

The record, the terminal's table, the CSV and the page take a metric's title, meaning, direction,
digits and limits from here; for a metric of a user's own they are written into the record too.

    coherence        share of sequences the world can produce (paper, §5.1)
    first_invalid    position of the first break, among the broken ones
    calls            denoiser calls per sequence;  tokens_per_call  masked positions over calls

Walks, text and worlds of a known law have more (walks/, text/ and exact/metrics.py).
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from maskwalk.errors import MaskwalkError, misbehaved, shown
from maskwalk.specs import F, Registry, parse
from maskwalk.stats import Estimate, mean, plain_mean
from maskwalk.worlds.tasks import Prompts
from maskwalk.worlds.world import World

# Roles: the x axis, what one leads by, and how far the sequences are from the law's.
COST, QUALITY, LAW = "cost", "quality", "law"
REPLAY = "likelihood"  # the reading that exact sequences forced through a sampler give


@dataclass(frozen=True)
class Metric:
    """What a reader has to know of a number."""

    key: str
    title: str  # a few words: a column, an axis
    meaning: str = ""  # a sentence
    heading: str = ""  # over a figure; the title if empty
    better: int = 0  # 1: higher, -1: lower, 0: neither (near to a reference)
    digits: int = 3
    limits: tuple[float | None, float | None] = (None, None)
    role: str = ""
    drawn: bool = True  # whether it has figures and tables of its own

    @property
    def share(self) -> bool:
        """Whether it is a share: of exactly 0 or 1 the error has a rule (stats.settled_se)."""
        return self.limits == (0, 1)

    def as_dict(self) -> dict[str, Any]:
        """As a record carries it."""
        return asdict(self) | {"limits": list(self.limits)}

    @classmethod
    def from_dict(cls, key: str, said: dict[str, Any]) -> "Metric":
        """What `as_dict` wrote; anything unreadable falls back to the key alone."""
        try:
            return cls(**{**said, "key": key, "limits": tuple(said["limits"])})
        except (TypeError, KeyError):
            return cls(key, key.replace("_", " "))


class Metrics(Registry[Estimate | None]):
    """The table of metrics, with their descriptions."""

    def __init__(self) -> None:
        made = Estimate | None
        super().__init__("metric", context=("sample",), home="maskwalk.worlds.table", makes=made)
        self._described: dict[str, Metric] = {}
        self._worlds: dict[str, str | tuple[str, ...] | None] = {}
        self._reads: dict[str, str] = {}

    def register(  # type: ignore[override]
        self,
        name: str,
        *,
        title: str | None = None,
        heading: str = "",
        better: int = 0,
        digits: int = 3,
        limits: tuple[float | None, float | None] = (None, None),
        role: str = "",
        drawn: bool = True,
        world: str | tuple[str, ...] | None = "",
        reads: str = "",
    ) -> Callable[[F], F]:
        """Decorator: adds a metric; its meaning is the first line of the docstring.

        `world` names the world or worlds it is measured in by default ("": any; None: only if asked
        for), `reads` the one of `Sample.readings` it depends on.
        """
        if better not in (-1, 0, 1):
            raise MaskwalkError(f"better is 1, -1 or 0, not {better!r}, for metric {name!r}.")

        def add(maker: F) -> F:
            super(Metrics, self).register(name)(maker)
            meaning = (inspect.getdoc(maker) or "").split("\n")[0].rstrip(".")
            words = title or name.replace("_", " ")
            self._described[name] = Metric(
                name, words, meaning, heading, better, digits, limits, role, drawn
            )
            self._worlds[name], self._reads[name] = world, reads
            return maker

        return add

    def default(self, world: str) -> tuple[str, ...]:
        """What is measured in a world (its spec) if nobody says otherwise."""
        name = parse(world).name
        return tuple(key for key in self if self._measured_in(key, name))

    def _measured_in(self, key: str, world: str) -> bool:
        where = self._worlds[key]
        return where == "" or where == world or (isinstance(where, tuple) and world in where)

    @staticmethod
    def name_of(key: str) -> str:
        """The name in a key: `tvk` of tvk(k=2)."""
        return parse(key).name if "(" in key else key

    def reading(self, reads: str) -> tuple[str, ...]:
        """The metrics that depend on this reading."""
        return tuple(key for key in self if self._reads[key] == reads)

    def describe(self, key: str, described: dict[str, Any] | None = None) -> Metric:
        """The description of a metric by its key in a record (a name, or a spec like tvk(k=2)).

        `described` is what the record itself says of metrics that are not in this table.
        """
        name = self.name_of(key)
        if name in self._makers:
            known = self._described[name]
            return known if key == name else Metric(**{**vars(known), "key": key, "title": key})
        return Metric.from_dict(key, (described or {}).get(key) or {})

    def described(self, keys: Iterable[str]) -> dict[str, Any]:
        """What a record must say itself: descriptions of metrics that come from a user."""
        own = {key: self[parse(key).name] for key in keys}
        return {
            key: self.describe(key).as_dict()
            for key, maker in own.items()
            if not maker.__module__.startswith("maskwalk.")
        }

    @property
    def cost(self) -> Metric:
        """What figures have on their x axis."""
        return next(self._described[key] for key in self if self._described[key].role == COST)


METRICS = Metrics()


@dataclass(frozen=True)
class Sample:
    """What a metric looks at: decoded sequences, where they came from, and the world."""

    world: World | None  # None: nobody asks it, only what models say (readings)
    tokens: Int[Tensor, "batch length"]
    calls: Int[Tensor, " batch"] | None  # of the denoiser; None: nobody decoded them
    prompts: Int[Tensor, " batch"]  # which prompt each sequence answers
    masked: Int[Tensor, " batch"]  # how many positions it had to fill
    task: Prompts | None = None
    seed: int = 0
    readings: dict[str, Any] = field(default_factory=dict)  # what models say of the sequences

    def __repr__(self) -> str:
        return f"<Sample: {len(self.tokens)} sequences of {self.world!r}>"

    @property
    def conditional(self) -> bool:
        """Whether the prompts reveal something."""
        return self.task is not None and self.task.conditional

    @cached_property
    def valid(self) -> Bool[Tensor, "batch length"] | None:
        """Where each sequence breaks; None: nobody can check."""
        return None if self.world is None else self.world.valid(self.tokens)


def measure(sample: Sample, names: Iterable[str]) -> dict[str, dict[str, Any] | None]:
    """The named metrics of a sample, as they stand in a record."""
    estimates = {name: METRICS.build(name, sample=sample) for name in names}
    for name, value in estimates.items():
        numbers = () if value is None else (value.value, value.se, value.n)
        if not all(isinstance(number, int | float) for number in numbers):
            raise misbehaved(METRICS[METRICS.name_of(name)], f"gives {shown(value)}, no numbers.")
    return {name: None if value is None else value.as_dict() for name, value in estimates.items()}


@METRICS.register("coherence", title="coherence", better=1, limits=(0, 1), role=QUALITY)
def coherence(sample: Sample) -> Estimate | None:
    """Share of sequences that the world can produce."""
    if getattr(sample.world, "full_support", False):  # it can produce every sequence
        return None
    return None if sample.valid is None else mean(sample.valid.all(1), sample.prompts)


@METRICS.register("first_invalid", title="first invalid position", digits=1, drawn=False)
def first_invalid(sample: Sample) -> Estimate | None:
    """Position of the first break, among the sequences that break."""
    if sample.valid is None or getattr(sample.world, "full_support", False):
        return None
    broken = ~sample.valid.all(1)
    first = (~sample.valid[broken]).to(torch.uint8).argmax(1)
    return mean(first, sample.prompts[broken.to(sample.prompts.device)])


@METRICS.register("calls", title="calls", better=-1, digits=1, role=COST, drawn=False)
def calls(sample: Sample) -> Estimate | None:
    """Denoiser calls per sequence: mean and maximum."""
    if sample.calls is None:
        return None
    estimate = plain_mean(sample.calls, sample.prompts)
    return Estimate(estimate.value, estimate.se, estimate.n, {"max": int(sample.calls.max())})


@METRICS.register("tokens_per_call", title="tokens per call", better=1, digits=2, drawn=False)
def tokens_per_call(sample: Sample) -> Estimate | None:
    """Masked positions filled for each denoiser call."""
    if sample.calls is None:
        return None
    return plain_mean(sample.masked / sample.calls.clamp(min=1), sample.prompts)
