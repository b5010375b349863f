"""The exact likelihood of a walk under a sampler, by teacher forcing.

A policy that chooses before it draws reveals sets B_0, B_1, … that depend on what is revealed and
on its own random numbers ω, never on what it is about to draw. So run it on a given walk x with the
tokens forced from x, and the probability that it would have drawn x along that path is

    q_ω(x) = ∏_r ∏_{i∈B_r} p_i(x_i | x_{U_r}),        U_r = what is revealed before round r.

The sampler's law is q = E_ω q_ω. With x ~ ν and S = log ν(x) − log q_ω(x)

    E[e^{−S}] = q(support of ν) = coherence,          E[S] ≥ KL(ν ‖ q), with equality without ω.

With an oracle for ν, every round's share of E[S] splits in two, both non-negative:

    dependence   Σ_{i∈B} KL( ν(x_i | x_U, x_{B, before i}) ‖ ν(x_i | x_U) )   total correlation of B
    denoiser     Σ_{i∈B} KL( ν(x_i | x_U) ‖ p_i(· | x_U) )                    error of the marginals

These are conditional means of the pathwise terms log ν(x_i|x_U, x_B before i) − log ν(x_i|x_U) and
log ν(x_i|x_U) − log p_i(x_i|x_U), given what is revealed before x_i: the same expectation, less
noise. Both forms are kept. `p_i` is what is drawn from, so temperature and truncation count as
denoiser error. The loop is `decode`'s own: only the draw is replaced.

For a deterministic policy q is the likelihood of DUEL [arXiv 2603.01367], computed the same way,
for text. Here the policy may be randomised (ties count as randomness), the loss is split by round
and by cause, and e^{−S} gives coherence, because ν is known.
"""

from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from maskwalk.decoding.arguments import as_sampler
from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import Draw
from maskwalk.decoding.policy import Sampler, chooses_first
from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.arguments import as_denoiser
from maskwalk.errors import MaskwalkError
from maskwalk.samplers.bisection import Bisection
from maskwalk.samplers.left_to_right import LeftToRight
from maskwalk.streams import Streams
from maskwalk.worlds.world import World, as_world

TERMS = ("dependence", "denoiser", "dependence_path", "denoiser_path")


@dataclass(frozen=True, eq=False)
class Replayed:
    """Sequences replayed through a policy; position by position, 0 nats where given."""

    round: Int[Tensor, "batch length"]  # in which round each position is revealed; -1: given
    log_prob: Float64[Tensor, "batch length"]  # log p_i(x_i | x_U) as drawn from
    calls: Int[Tensor, " batch"]
    random: bool  # whether the policy consumed random numbers (random order, uniform ties)
    log_law: Float64[Tensor, " batch"] | None = None  # log ν(x | given)
    split: dict[str, Tensor] = field(default_factory=dict)  # TERMS, where ν has an oracle

    def __repr__(self) -> str:
        bits = "" if self.loss is None else f", {float(self.loss.mean()):.3g} nats lost each"
        return f"<Replayed: {len(self.calls)} sequences in {self.rounds} rounds{bits}>"

    @property
    def loss(self) -> Float64[Tensor, " batch"] | None:
        """S = log ν(x | given) − log q_ω(x | given), in nats."""
        return None if self.log_law is None else self.log_law - self.log_prob.sum(1)

    @property
    def rounds(self) -> int:
        """The most rounds any walk took."""
        return int(self.round.max()) + 1

    def per_round(
        self, values: Float64[Tensor, "batch length"], rounds: int | None = None
    ) -> Float64[Tensor, "batch rounds"]:
        """Sums over the positions revealed in each round."""
        sums = values.new_zeros((len(values), 1 + (self.rounds if rounds is None else rounds)))
        return sums.scatter_add(1, self.round + 1, values)[:, 1:]  # column 0 collects the given


class Watched(Streams):
    """Streams that notice whether anybody asked them for a number."""

    def __init__(self, streams: Streams, asked: list[bool] | None = None) -> None:
        super().__init__(streams.seed, streams.ids)
        self.asked = [] if asked is None else asked

    def select(self, rows: Tensor) -> "Watched":
        """The streams of some of the rows; they tell the same list."""
        return Watched(super().select(rows), self.asked)

    def _asking(self) -> None:
        self.asked.append(True)


@dataclass(frozen=True, eq=False, kw_only=True)
class Forced(Draw):
    """A draw whose outcome is decided: the walk's own token. Notes what it costs."""

    sequences: Int[Tensor, "batch length"]
    ids: Int[Tensor, " batch"]
    canvas: Int[Tensor, "batch length"]  # what is revealed, as the oracle sees it
    round: Int[Tensor, "batch length"]
    log_prob: Float64[Tensor, "batch length"]
    log_chain: Float64[Tensor, "batch length"]  # log ν(x_i | x_U, x_B before i)
    split: dict[str, Tensor]
    oracle: Denoiser | None
    own: bool  # the denoiser is the oracle itself, and nothing reshapes its answers
    drawn: list[int] = field(default_factory=list)  # rounds in which tokens were drawn

    def __call__(
        self,
        log_probs: Float[Tensor, "n vocab"],
        streams: Streams,
        round: int,
        rows: Int[Tensor, " n"],
        positions: Int[Tensor, " n"],
    ) -> Int[Tensor, " n"]:
        """The sequences' tokens at these places."""
        if round in self.drawn:
            raise MaskwalkError(
                "This policy draws tokens before it has chosen where to reveal: it looks at its "
                "own draws, so a walk cannot be forced through it. Replay needs a policy that "
                "chooses first; measure this one with `maskwalk sample`."
            )
        self.drawn.append(round)
        order = self.ids.argsort()
        batch = order[torch.searchsorted(self.ids[order], streams.ids)]
        where = (batch[rows], positions)
        tokens = self.sequences[where]
        shaped = self.shape(log_probs)
        self.round[where] = round
        self.log_prob[where] = shaped.gather(1, tokens[:, None])[:, 0].to(torch.float64)
        if self.oracle is not None:
            at = torch.zeros_like(self.sequences[batch], dtype=torch.bool)
            at[rows, positions] = True
            truth = log_probs if self.own else self.oracle(self.canvas[batch], at)
            chain = self._chain(self.oracle, truth, self.canvas[batch], at, self.sequences[batch])
            shaped = shaped[:, : truth.shape[1]].to(torch.float64)
            self._note(where, tokens, shaped, truth, chain)
            self.canvas[where] = tokens
        return tokens

    @staticmethod
    def _chain(
        oracle: Denoiser, truth: Tensor, canvas: Tensor, at: Tensor, sequences: Tensor
    ) -> Tensor:
        """ν(x_i | x_U and the block's positions left of i), for every place of the block."""
        row, position = at.nonzero(as_tuple=True)
        later = at.cumsum(1)[row, position] > 1  # the first of a block has nothing before it
        row, position = row[later], position[later]
        if len(row) == 0:
            return truth
        place = torch.arange(at.shape[1], device=at.device)
        before = at[row] & (place < position[:, None])
        canvases = torch.where(before, sequences[row], canvas[row])
        chain = truth.clone()
        chain[later] = oracle(canvases, place == position[:, None])
        return chain

    def _note(
        self,
        where: tuple[Tensor, Tensor],
        tokens: Tensor,
        shaped: Tensor,
        truth: Tensor,
        chain: Tensor,
    ) -> None:
        """The two parts of the loss at these places, pathwise and in conditional mean."""
        at_token = [x.gather(1, tokens[:, None])[:, 0].double() for x in (chain, truth, shaped)]
        self.log_chain[where] = at_token[0]
        self.split["dependence_path"][where] = at_token[0] - at_token[1]
        self.split["denoiser_path"][where] = at_token[1] - at_token[2]
        self.split["dependence"][where] = divergence(chain, truth)
        if not self.own:
            self.split["denoiser"][where] = divergence(truth, shaped)


def divergence(
    p: Float[Tensor, "rows vocab"], q: Float[Tensor, "rows vocab"]
) -> Float64[Tensor, " rows"]:
    """KL(p ‖ q) of log-probabilities, row by row; infinite where q lacks a token of p."""
    p, q = p.to(torch.float64), q.to(torch.float64)
    terms = torch.where(p == -torch.inf, 0.0, p.exp() * (p - q))
    return terms.sum(1).clamp(min=0.0)  # rounding may leave -1e-17


def replay(
    sampler: Sampler | str,
    denoiser: Denoiser | str,
    sequences: Int[Tensor, "batch length"],
    *,
    streams: Streams,
    draw: Draw | None = None,
    ties: str = "uniform",
    given: Bool[Tensor, "batch length"] | None = None,
    world: World | str | None = None,
    law: Denoiser | None = None,
) -> Replayed:
    """Forces `sequences` through `sampler`; `given` positions are revealed from the start.

    With a `world` the result knows log ν(x | given), and the split where it has an oracle. Where
    there is none, as for text, `law` is a denoiser to take for it: with the model itself the
    dependence is that of blocks under the model. The same streams as in `decode` give the same
    choices.
    """
    draw, sampler = draw or Draw(), as_sampler(sampler)
    world = None if world is None else as_world(world)
    denoiser = as_denoiser(denoiser, world)
    check_replayable(sampler, draw)
    _check_sequences(sequences, denoiser, streams)
    given = torch.zeros_like(sequences, dtype=torch.bool) if given is None else given
    oracle = law if world is None else truth_of(world, denoiser)
    blank = torch.zeros(sequences.shape, dtype=torch.float64, device=sequences.device)
    forced = Forced(
        **{f.name: getattr(draw, f.name) for f in fields(draw)},
        sequences=sequences,
        ids=streams.ids,
        canvas=torch.where(given, sequences, oracle.mask_id if oracle is not None else 0),
        round=torch.full_like(sequences, -1),
        log_prob=blank.clone(),
        log_chain=blank.clone(),
        split={name: blank.clone() for name in TERMS} if oracle is not None else {},
        oracle=oracle,
        own=oracle is denoiser and draw == Draw(),
    )
    watched = Watched(streams)
    start = torch.where(given, sequences, denoiser.mask_id)
    decoded = decode(sampler, denoiser, start, streams=watched, draw=forced, ties=ties)
    log_law = None if world is None else _log_law(world, sequences, given, forced)
    return Replayed(
        round=forced.round,
        log_prob=forced.log_prob,
        calls=decoded.calls,
        random=bool(watched.asked),
        log_law=log_law,
        split=forced.split,
    )


def check_replayable(sampler: Sampler, draw: Draw | None = None) -> None:
    """Refuses what has no likelihood by replay, and says why."""
    if not chooses_first(sampler):
        why = (
            "takes revealed tokens back, so many paths lead to one walk"
            if sampler.remasks
            else "draws in a step of its own and may choose by what it drew"
        )
        raise MaskwalkError(
            f"{sampler!r} cannot be replayed: it {why}. Replay needs an UnmaskingPolicy, which "
            "chooses positions before anything is drawn there; measure this one with "
            "`maskwalk sample`."
        )
    if draw is not None and draw.precision != "float64":
        raise MaskwalkError(
            f"Tokens drawn in {draw.precision} have no closed-form probabilities, so they cannot "
            "be replayed; use float64 draws (--preset exact)."
        )


def replayable(sampler: Sampler, draw: Draw | None = None) -> bool:
    """Whether a sampler has a likelihood by replay."""
    try:
        check_replayable(sampler, draw)
    except MaskwalkError:
        return False
    return True


def _check_sequences(sequences: Tensor, denoiser: Denoiser, streams: Streams) -> None:
    if sequences.numel() and not (
        int(sequences.min()) >= 0 and int(sequences.max()) < denoiser.vocab_size
    ):
        raise MaskwalkError(
            f"The sequences to replay hold tokens from {int(sequences.min())} to "
            f"{int(sequences.max())}; they must be complete, with tokens "
            f"0..{denoiser.vocab_size - 1}."
        )
    if len(streams.ids.unique()) != len(streams.ids):
        raise MaskwalkError("Replay needs a different stream id for every walk.")


def _log_law(world: World, sequences: Tensor, given: Tensor, forced: Forced) -> Tensor | None:
    """log ν(x | given): the law's own if nothing is given, else the oracle's chain of conditionals.

    Without an oracle the probability of what is given is not known, and neither is this.
    """
    known = world.log_prob(sequences.cpu())
    if known is None:
        return None
    joint = known.to(sequences.device)
    if bool((joint == -torch.inf).any()):
        worst = int((joint == -torch.inf).nonzero()[0, 0])
        raise MaskwalkError(
            f"Walk {worst} has probability zero under the law, so it says nothing about "
            "KL(law ‖ sampler); replay sequences drawn from the law."
        )
    if not bool(given.any()):
        return joint
    return forced.log_chain.sum(1) if forced.oracle is not None else None


def truth_of(world: World, denoiser: Denoiser | None = None) -> Denoiser | None:
    """The world's oracle (the denoiser itself if it is that), or None where none is possible."""
    if denoiser is not None and getattr(denoiser, "law", None) is world:
        return denoiser
    key: Any = world  # protocols are not known to be hashable
    return _oracle(key)


@lru_cache(maxsize=2)
def _oracle(world: World) -> Denoiser | None:
    try:
        oracle = world.oracle()
        if oracle is not None:  # some find their limit only when asked
            oracle(torch.full((1, world.length), oracle.mask_id))
    except MaskwalkError:
        return None
    return oracle


def bridges(
    world: World,
    prompts: Int[Tensor, "batch length"],
    seed: int = 0,
    oracle: Denoiser | None = None,
) -> Int[Tensor, "batch length"]:
    """Sequences drawn exactly from ν( · | what the prompts reveal), with the oracle.

    Prompts hold the world's mask token where unknown. Bisection of a walk law's own order is exact;
    in any other world one position at a time is.
    """
    oracle = truth_of(world) if oracle is None else oracle
    if oracle is None:
        raise MaskwalkError(
            "Drawing exact sequences between given tokens needs an oracle, and this law has none "
            "at this size: take fewer nodes, or a task whose prompts come from held-out sequences."
        )
    order = getattr(world, "order", None)
    sampler: Sampler = LeftToRight() if order is None else Bisection(order=order)
    streams = Streams(seed, torch.arange(len(prompts), device=prompts.device))
    return decode(sampler, oracle, prompts, streams=streams).tokens


__all__ = [
    "Forced",
    "Replayed",
    "bridges",
    "check_replayable",
    "divergence",
    "replay",
    "replayable",
    "truth_of",
]
