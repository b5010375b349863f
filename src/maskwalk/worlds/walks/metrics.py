"""What is measured of walks.

coherence_by_separation   for prompts 1, 2, … communities apart
coherence_by_level        for prompts whose ends meet 1, 2, … levels up a hierarchy
transition_validity       share of single steps that are possible
tv1, tvk                  row-weighted transition TV of the paper beside its floor: the value
                          that as many exact walks get, which at 512 walks is most of it;
                          where the kernel changes with time, a row for every step and history
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float64, Int
from torch import Tensor

from maskwalk.errors import MaskwalkError, whole
from maskwalk.stats import (
    Estimate,
    half_split_se,
    half_splits,
    mean,
    plain_mean,
    split_groups,
    standard_error,
)
from maskwalk.worlds.metrics import METRICS, Sample
from maskwalk.worlds.walks.laws import WalkLaw

FLOOR_RUNS = 8
AT_ONCE = 2**23  # numbers in the counts of several sets of steps
FLOOR_IDS = 2_000_000_000  # exact walks for the floor: ids no training or held-out walk has


@METRICS.register(
    "coherence_by_separation", title="coherence", better=1, limits=(0, 1), drawn=False, world=None
)
def coherence_by_separation(sample: Sample) -> Estimate | None:
    """Coherence of the prompts whose ends are h communities apart, for every h that occurs."""
    return _coherence_by(sample, "separation")


@METRICS.register(
    "coherence_by_level", title="coherence", better=1, limits=(0, 1), drawn=False, world=None
)
def coherence_by_level(sample: Sample) -> Estimate | None:
    """Coherence of the prompts whose ends meet h levels up the hierarchy, for every h there is."""
    return _coherence_by(sample, "level")


def _coherence_by(sample: Sample, label: str) -> Estimate | None:
    """The coherence of all prompts, and of those of each number the task gave them."""
    number = None if sample.task is None else sample.task.labels.get(label)
    if number is None or sample.valid is None:
        return None
    whole_ones, here = sample.valid.all(1), number[sample.prompts]
    parts = []
    for h in here.unique().tolist():
        estimate = plain_mean(whole_ones[here == h], sample.prompts[here == h])
        parts.append({"at": h} | estimate.as_dict())
    every = plain_mean(whole_ones, sample.prompts)
    return Estimate(every.value, every.se, every.n, {"by": parts})


@METRICS.register(
    "transition_validity", title="valid steps", better=1, limits=(0, 1), drawn=False, world="walk"
)
def transition_validity(sample: Sample) -> Estimate | None:
    """Share of single transitions that are possible given the steps before them."""
    if sample.valid is None:
        return None
    return mean(sample.valid[:, 1:].to(torch.float64).mean(1), sample.prompts)


@METRICS.register("tv1", title="transition TV", better=-1, limits=(0, None), world="walk")
def tv1(sample: Sample) -> Estimate | None:
    """Total variation between the transitions sampled and those of the law.

    The paper's row-weighted TV_1 of a first-order law, beside its floor; none if conditional.
    """
    return None if _law(sample).order != 1 else tv(sample, 1)


@METRICS.register("tvk", title="transition TV", better=-1, limits=(0, None), world=None)
def tvk(sample: Sample, k: int | None = None) -> Estimate | None:
    """Total variation between the steps after k tokens and those of the law.

    Order k is the law's own if not given; the floor stands beside it.
    """
    order = _law(sample).order
    return tv(sample, order if k is None else whole("k", k, order))


def tv(sample: Sample, k: int) -> Estimate | None:
    """The paper's TV_k with its standard error, the floor at this sample size, the excess.

    Conditional tasks have none: a bridge's transitions are not those of the law.
    """
    if sample.conditional:
        return None
    law, walks = _law(sample), sample.tokens
    n = len(walks)
    value = transition_tv(law, walks, k)
    floor, floor_se = tv_floor(law, n, k, sample.seed)
    extra = {"floor": floor, "floor_se": floor_se, "excess": value - floor}
    return Estimate(value, tv_error(law, walks, k), n, extra)


def _law(sample: Sample) -> WalkLaw:
    """The world, if it is one of walks."""
    if isinstance(sample.world, WalkLaw):
        return sample.world
    raise MaskwalkError("Transition TV is a metric of walks; this world is not one of walks.")


@lru_cache(maxsize=32)
def tv_floor(law: WalkLaw, n: int, k: int, seed: int) -> tuple[float, float]:
    """The mean TV of several sets of `n` exact walks, and its standard error."""
    runs = [
        transition_tv(law, law.sample(n, seed, first=FLOOR_IDS + i * n), k)
        for i in range(FLOOR_RUNS)
    ]
    return float(np.mean(runs)), standard_error(runs)


def tv_error(law: WalkLaw, walks: Tensor, k: int) -> float:
    """Standard error of the TV, from balanced halves of the walks."""
    groups = split_groups(len(walks))
    if groups < 2:
        return float("nan")
    steps = Transitions.of(law, walks, k)
    part = (torch.arange(len(walks)) % groups).repeat_interleave(walks.shape[1] - k)
    events = len(steps.truth)
    by_group = torch.bincount(part * events + steps.inverse, minlength=groups * events)
    some = max(1, AT_ONCE // events)  # splits: many different steps, a few at a time
    parts = torch.from_numpy(half_splits(groups)).split(some)
    first, second = (
        torch.cat(
            [steps.tv((part == which).long() @ by_group.view(groups, events)) for part in parts]
        )
        for which in (1, -1)
    )
    return half_split_se(first.numpy(), second.numpy())


def transition_tv(law: WalkLaw, walks: Int[Tensor, "count length"], k: int) -> float:
    """½ Σ_h ω̂(h) Σ_v |P̂(v|h) - P(v|h)| over the histories h of length k that occur in `walks`."""
    steps = Transitions.of(law, walks, k)
    return float(steps.tv(torch.bincount(steps.inverse, minlength=len(steps.truth))[None])[0])


@dataclass(frozen=True)
class Transitions:
    """The different steps (history, next token) that occur in some walks, with their truth."""

    history: Int[Tensor, " events"]  # a number for the history of each
    truth: Float64[Tensor, " events"]  # P(next | history)
    inverse: Int[Tensor, " steps"]  # which of them each step of the walks is

    @classmethod
    def of(cls, law: WalkLaw, walks: Int[Tensor, "count length"], k: int) -> "Transitions":
        """The steps of these walks after histories of k tokens."""
        if walks.shape[1] <= k:
            raise MaskwalkError(
                f"Walks of {walks.shape[1]} tokens have no transition of order {k}."
            )
        windows = walks.unfold(1, k + 1, 1)
        if not law.homogeneous:  # the same step at another time is another event
            time = torch.arange(k, walks.shape[1]).view(1, -1, 1).expand(len(walks), -1, 1)
            windows = torch.cat([time, windows], 2)
        windows = windows.flatten(0, 1)
        events, inverse = _unique_rows(windows, max(law.vocab_size, law.length))
        histories, history = events[:, :-1].unique_consecutive(dim=0, return_inverse=True)
        return cls(history, _probabilities(law, histories, history, events[:, -1]), inverse)

    def tv(self, counts: Int[Tensor, "sets events"]) -> Float64[Tensor, " sets"]:
        """The TV of each set of counts of these steps."""
        number = int(self.history.max()) + 1
        blank = torch.zeros((len(counts), number), dtype=torch.float64)
        totals = blank.index_add(1, self.history, counts.double())
        seen = counts / totals[:, self.history].clamp(min=1)
        # Only seen events differ from |0 - P|: Σ_v |P̂ - P| = 1 + Σ_seen (|P̂ - P| - P).
        rows = 1 + blank.index_add(1, self.history, (seen - self.truth).abs() - self.truth)
        return 0.5 * (totals / totals.sum(1, keepdim=True) * rows).sum(1)


def _unique_rows(rows: Tensor, vocab: int) -> tuple[Tensor, Tensor]:
    """The different rows in order, and which of them each row is; by one number where it fits."""
    width = rows.shape[1]
    if vocab**width >= 2**62:
        events, inverse = rows.unique(dim=0, return_inverse=True)
        return events, inverse
    place = vocab ** torch.arange(width - 1, -1, -1)
    codes, inverse = (rows * place).sum(1).unique(return_inverse=True)
    return codes[:, None] // place % vocab, inverse


def _probabilities(law: WalkLaw, histories: Tensor, inverse: Tensor, nxt: Tensor) -> Tensor:
    """P(next | history) of each event; where time matters the position comes first."""
    before = histories[inverse]
    if law.homogeneous:
        return law.token_probs(before[:, -law.order :], nxt)
    probs = torch.empty(len(nxt), dtype=torch.float64)
    for t in histories[:, 0].unique().tolist():
        here = before[:, 0] == t
        probs[here] = law.step_token_probs(t, before[here, -law.order :], nxt[here])
    return probs
