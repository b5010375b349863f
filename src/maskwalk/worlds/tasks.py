"""Tasks: the prompts a sampler starts from, made from held-out sequences of a world.

    unconditional    everything masked
    endpoints        the first and last token of a held-out sequence revealed
    given            a share of its positions, at random places
    prefix           its first positions

Worlds have tasks of their own beside them: `bottleneck` (walks), `clues` (grids), `operands` and
`sum` (addition), `frame` (strips). Sequences are numbered; training takes numbers from 0 up and
tasks from HELD_OUT up, so no prompt comes from a training sequence.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from maskwalk.errors import MaskwalkError, misbehaved, real, shown, whole
from maskwalk.specs import Registry, parse
from maskwalk.streams import Purpose, block_uniforms
from maskwalk.worlds.sizes import check_sequences
from maskwalk.worlds.world import World

HELD_OUT = 1_000_000_000
PLACES = 7  # the stream of uniforms that says where a random prompt is revealed


@dataclass(frozen=True, eq=False)
class Prompts:
    """Tokens with the mask token (= vocabulary size) where unknown, and where they came from."""

    tokens: Int64[Tensor, "n length"]
    conditional: bool  # whether anything is revealed
    answers: Int64[Tensor, "n length"] | None = None  # a sequence that fits each prompt
    labels: dict[str, Tensor] = field(default_factory=dict)  # a number per prompt, to break down by

    def __repr__(self) -> str:
        count, length = self.tokens.shape
        kind = "that reveal tokens" if self.conditional else "all masked"
        return f"<Prompts: {count} of {length} positions, {kind}>"


TASKS: Registry[Prompts] = Registry(
    "task", context=("world", "prompts", "seed"), home="maskwalk.worlds.table", makes=Prompts
)


def build_prompts(task: str, world: World, count: int, seed: int) -> Prompts:
    """The prompts of a task; what a user's own one makes is looked at."""
    prompts = TASKS.build(task, world=world, prompts=count, seed=seed)
    tokens, shape = prompts.tokens, (count, world.length)
    fine = isinstance(tokens, Tensor) and tokens.shape == shape and tokens.dtype == torch.int64
    if not fine or not 0 <= int(tokens.min()) <= int(tokens.max()) <= world.vocab_size:
        what = (
            f"{tokens.dtype} {tuple(tokens.shape)}" if isinstance(tokens, Tensor) else shown(tokens)
        )
        raise misbehaved(
            TASKS[parse(task).name],
            f"must make {count} prompts as int64 {shape} of tokens 0..{world.vocab_size} (the "
            f"mask), not {what}.",
        )
    return prompts


def masked_rows(world: World, count: int) -> Int64[Tensor, "n length"]:
    """Fully masked sequences."""
    check_sequences(count, world.length)
    return torch.full((count, world.length), world.vocab_size, dtype=torch.int64)


def reveal(
    world: World,
    answers: Int64[Tensor, "n length"],
    at: Bool[Tensor, " length"] | Bool[Tensor, "n length"],
    labels: dict[str, Tensor] | None = None,
) -> Prompts:
    """The prompts that reveal these positions of the answers."""
    tokens = torch.where(at, answers, masked_rows(world, len(answers)))
    return Prompts(tokens, bool(at.any()), answers, labels or {})


def ends(world: World) -> Bool[Tensor, " length"]:
    """The first and the last position."""
    at = torch.zeros(world.length, dtype=torch.bool)
    at[[0, -1]] = True
    return at


def reveal_held_out(world: World, prompts: int, seed: int, positions: list[int]) -> Prompts:
    """The prompts that reveal these positions of held-out sequences."""
    at = torch.zeros(world.length, dtype=torch.bool)
    at[positions] = True
    return reveal(world, world.sample(whole("prompts", prompts, 1), seed, HELD_OUT), at)


def reveal_some(world: World, prompts: int, seed: int, count: int) -> Prompts:
    """The prompts that reveal `count` positions of held-out sequences, at random places."""
    answers = world.sample(whole("prompts", prompts, 1), seed, HELD_OUT)
    u = block_uniforms(seed, Purpose.PROMPT, 0, prompts, world.length, PLACES)
    rank = torch.from_numpy(u.argsort(1, kind="stable").argsort(1))
    return reveal(world, answers, rank < count)


def share_of(world: World, share: float) -> int:
    """How many positions a share of them is; some must be left to fill in."""
    count = round(real("share", share, 0.0, 1.0) * world.length)
    if count == world.length:
        raise MaskwalkError(
            f"share={share} gives all {world.length} positions and leaves nothing to fill in."
        )
    return count


@TASKS.register("unconditional")
def unconditional(world: World, prompts: int, seed: int) -> Prompts:
    """Generate whole sequences: everything is masked."""
    count = whole("count", prompts, 1)
    return Prompts(masked_rows(world, count), False, world.sample(count, seed, HELD_OUT))


@TASKS.register("given")
def given(world: World, prompts: int, seed: int, share: float = 0.5) -> Prompts:
    """Fill in the rest where a share of the positions is given, at random places."""
    return reveal_some(world, prompts, seed, share_of(world, share))


@TASKS.register("prefix")
def prefix(world: World, prompts: int, seed: int, share: float = 0.5) -> Prompts:
    """Go on from the first positions of held-out sequences."""
    return reveal_held_out(world, prompts, seed, list(range(share_of(world, share))))


@TASKS.register("endpoints")
def endpoints(
    world: World, prompts: int, seed: int, start: int | None = None, end: int | None = None
) -> Prompts:
    """Fill in between the endpoints of held-out sequences, or between one given pair of tokens."""
    count = whole("count", prompts, 1)
    if start is None and end is None:
        return reveal_held_out(world, count, seed, [0, world.length - 1])
    if start is None or end is None:
        raise MaskwalkError("Give both start and end, or neither (endpoints of held-out walks).")
    for name, token in (("start", start), ("end", end)):
        if token == world.vocab_size:
            raise MaskwalkError(
                f"{name}={token} is the mask token, not a node; nodes are 0 to {token - 1}."
            )
        whole(name, token, 0, world.vocab_size - 1)
    reach = getattr(world, "reach", None)  # walks know where one can get
    if reach is not None and not bool(reach(start)[end]):
        raise MaskwalkError(
            f"No walk of length {world.length} leads from node {start} to node {end}; choose other "
            "endpoints or another length."
        )
    tokens = masked_rows(world, count)
    tokens[:, 0], tokens[:, -1] = start, end
    return Prompts(tokens, True)
