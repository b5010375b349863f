"""What a world is: a law of sequences whose truth can be asked for.

A world draws sequences, says where one breaks, how likely one is, and (through its oracle) what a
masked position may be given the revealed ones. Whatever it cannot say is None: text has no `valid`,
a large law no oracle. Every world of the project, and one of your own, is a member of `WORLDS`:

    @WORLDS.register("coins")
    class Coins: ...                  # then: maskwalk sample --world 'coins(length=8)' --include …

`checks.py` holds what every world keeps.
"""

import inspect
from contextlib import suppress
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError, lacking, misbehaved, own_source, shown, user_code
from maskwalk.specs import Registry, Spec, parse
from maskwalk.specs.sources import versions
from maskwalk.worlds.objects import OBJECT, digest, is_object, name_object, object_named


@runtime_checkable
class World(Protocol):
    """A law of sequences of `length` tokens 0..vocab_size-1; `vocab_size` stands for the mask.

    Optional: `entropy()` in nats, `support()` (all sequences and their log-probabilities, where
    they can be listed), `order` (the width of a block that separates left from right),
    `separators()` (separators.py: what bisection along the world reveals), `pairs()` (positions
    whose joint law is compared), `pictured` (True: `show` draws partly masked sequences, too, so
    that traces hold a picture of every round).
    """

    vocab_size: int
    length: int

    def sample(self, count: int, seed: int, first: int = 0) -> Int64[Tensor, "count length"]:
        """Sequences number first..first+count-1 of this seed; each depends on its number only."""
        ...

    def valid(self, tokens: Int64[Tensor, "count length"]) -> Bool[Tensor, "count length"] | None:
        """False where a sequence breaks, all true if it is possible; None: nobody can check."""
        ...

    def log_prob(self, tokens: Int64[Tensor, "count length"]) -> Float64[Tensor, " count"] | None:
        """log ν(x) in nats, -inf outside the support; None: not known."""
        ...

    def oracle(self) -> Denoiser | None:
        """Exact one-coordinate conditionals; None if there are none, a sentence if too large."""
        ...

    def show(self, tokens: Int64[Tensor, " length"]) -> str:
        """A sequence as a person reads it: a path, a grid, a sum, a sentence."""
        ...


@runtime_checkable
class Listed(World, Protocol):
    """A world small enough to list all its sequences."""

    def support(self) -> tuple[Int64[Tensor, "n length"], Float64[Tensor, " n"]]:
        """All sequences of positive probability, with their log-probabilities."""
        ...


LONGEST = 65_535  # positions: a random stream addresses them by 16 bits
SPEC = "_maskwalk_spec"  # of a world that a spec made
ASKED = 32  # sequences whose answers tell worlds apart


class Worlds(Registry[World]):
    """The table of worlds; one that it makes knows its spec, where it can hold an attribute."""

    def build(self, spec: str | Spec, **context: Any) -> World:
        """The world a spec names."""
        world = super().build(spec, **context)
        with suppress(AttributeError, TypeError):
            object.__setattr__(world, SPEC, self.canonical(str(spec)))
        return world


WORLDS: Registry[World] = Worlds("world", home="maskwalk.worlds.table", makes=World)


@WORLDS.register(OBJECT, hidden=True)
def _given(kind: str, answers: str) -> World:
    """A world that was given as an object."""
    world: World = object_named(kind, answers)
    return world


def build_world(spec: str) -> World:
    """The world of a canonical spec (kept: the cells of one world come after each other)."""
    if is_object(spec):
        return _given(**parse(spec).kwargs)
    return _built(spec, versions(spec))


def as_world(given: Any) -> World:
    """A world as it is, or the world of a spec; anything else is a sentence.

    Example: as_world("walk(graph=st_er(nodes=60, p=0.05), length=12)").oracle()
    """
    if isinstance(given, str):
        return build_world(WORLDS.canonical(given))
    if inspect.isclass(given):
        raise MaskwalkError(
            f"{given.__name__} is a class; give an instance of it, {given.__name__}(…)."
        )
    lacks = lacking(given, World)
    if lacks:
        raise MaskwalkError(
            f"world is a World, or a spec such as 'walk(length=12)', not {shown(given)}: it lacks "
            f"{', '.join(lacks)}."
        )
    world: World = given
    return world


def world_spec(given: Any) -> str:
    """What a record calls a world: its spec, or a name for an object whose spec is not known."""
    if isinstance(given, str):
        return WORLDS.canonical(given)
    world = as_world(given)
    with user_code():
        _check_own(world)
        answers = _answers(world)
    spec = getattr(world, SPEC, None)
    if spec is not None:
        with suppress(MaskwalkError):  # what made it may be gone, or changed
            if _answers(build_world(spec)) == answers:
                return str(spec)
    return name_object(world, answers)


def _answers(world: World) -> str:
    """What tells worlds apart: their sequences, which are possible, and how likely."""
    tokens = world.sample(ASKED, 0)
    mixed = tokens.roll(1, 0).where(torch.arange(world.length) % 3 == 1, tokens)
    told = [type(world).__qualname__, world.length, world.vocab_size, tokens]
    return digest([*told, world.valid(mixed), world.log_prob(tokens)])


@lru_cache(maxsize=4)
def _built(spec: str, version: tuple[str, ...]) -> World:
    """The world while the files it comes from are the same."""
    world = WORLDS.build(spec)
    if own_source(world) is not None:
        with user_code():
            _check_own(world)
    if world.length > LONGEST:
        raise MaskwalkError(
            f"{spec} has {world.length:,} positions; a sequence has at most {LONGEST:,}."
        )
    if world.length < 1 or world.vocab_size < 1:
        raise MaskwalkError(
            f"{spec} has {world.length} positions and {world.vocab_size} tokens; a world needs at "
            "least one of each."
        )
    return world


def neighbours(world: World) -> list[tuple[int, int]]:
    """The pairs of positions whose joint law is compared: those the world names, or neighbours."""
    named = getattr(world, "pairs", None)
    return [(i, i + 1) for i in range(world.length - 1)] if named is None else list(named())


def _check_own(world: World) -> None:
    """Two sequences of a user's world, looked at: what it gives back is what others count on."""
    for name in ("length", "vocab_size"):
        if type(getattr(world, name)) is not int:
            raise misbehaved(world, f"has {name} {shown(getattr(world, name))}, no whole number.")
    if world.length < 1 or world.vocab_size < 1:
        return  # which is said of any world
    tokens: object = world.sample(2, 0)
    shape = (2, world.length)
    if not isinstance(tokens, Tensor) or tokens.shape != shape or tokens.dtype != torch.int64:
        raise misbehaved(world, f"must sample 2 sequences as int64 {shape}, not {_told(tokens)}.")
    if not 0 <= int(tokens.min()) <= int(tokens.max()) < world.vocab_size:
        raise misbehaved(world, f"samples tokens outside its vocabulary 0..{world.vocab_size - 1}.")
    valid: object = world.valid(tokens)
    if valid is not None and not (
        isinstance(valid, Tensor) and valid.shape == shape and valid.dtype == torch.bool
    ):
        raise misbehaved(world, f"must say from valid() by bool {shape}, not {_told(valid)}.")
    likely: object = world.log_prob(tokens)
    if likely is not None and not (isinstance(likely, Tensor) and likely.shape == (2,)):
        raise misbehaved(world, f"must give two numbers from log_prob(), not {_told(likely)}.")
    if not isinstance(world.show(tokens[0]), str):
        raise misbehaved(world, "must give text from show().")


def _told(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    return shown(value)
