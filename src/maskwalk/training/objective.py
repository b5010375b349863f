"""The continuous-time SUBS objective with log-linear noise [Sahoo et al., NeurIPS 2024].

A walk x of length L at time t has every token masked independently with probability (1 - ε)t; with
log-linear noise the weight of the cross-entropy is exactly 1/t:

    loss = 1/(n·L) Σ_walks 1/t Σ_{i masked} -log p(x_i | the rest),   ε = 1e-3

and t is drawn once from each of n equal slices of (ε, 1] (antithetic times). The loss is divided by
all tokens of the batch, not by the masked ones.

Other maskings (maskings.py) show a share of the batch in other contexts; what they count of a walk
is divided by a share of their own in place of t.

The *bound* has no noise in t: -log p(x) ≤ Σ_k (1/k) Σ_{i ∈ S_k} -log p(x_i | the rest), with S_k a
uniform subset of k positions. A perfect denoiser attains H(law)/L nats per token, the floor.

An output of another kind than softmax (denoisers/network/outputs) puts its own loss in place of the
sum over masked positions, and its own marginals into the bound.

A causal network is trained on, and judged by, -log p(x)/L itself: every token given those before.

All random numbers are Philox words of (sample, position, step, seed): a run resumed, split over
processes or batched with other models sees the same ones.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.denoisers.network.ddit import hidden_states, logits, modulations
from maskwalk.denoisers.network.dropout import Dropout
from maskwalk.denoisers.network.noise import EPSILON, sigma
from maskwalk.denoisers.network.outputs import cross_entropy
from maskwalk.denoisers.network.weights import DDiTConfig, Weights
from maskwalk.streams import WORD, Purpose, Streams, philox
from maskwalk.training.looks import Context, Looks
from maskwalk.training.maskings import EXTRA, WHICH, Coarse, Looking, Masking

KEY = (0x6D61736B, 0x77616C6B)  # separates these words from every other stream
DROPOUT, ORDER, MASKING = 1 << 20, 1 << 21, 1 << 22  # "places" beyond every position of a walk
LOGITS, ACCELERATOR_LOGITS = 1 << 26, 1 << 30  # numbers the bound computes at a time


class Noise:
    """The random numbers of a run's steps. The counters are kept as tensors: the compiler would
    turn ranges into 32-bit index arithmetic, which Philox's constants overflow."""

    def __init__(
        self,
        config: DDiTConfig,
        seeds: list[int],
        rates: list[float],
        length: int,
        total: int,
        first: int = 0,
        share: int | None = None,
        device: torch.device | str = "cpu",
        maskings: list[Masking] | None = None,
    ) -> None:
        self.config, self.total, self.first = config, total, first
        self.head = config.head  # built here: the compiler reads no specs
        words = [(seed ^ (seed >> 32)) & WORD for seed in seeds]
        self.seeds = torch.tensor(words, device=device)
        self.samples = torch.arange(first, first + (share or total), device=device)
        self.places = torch.arange(length + 1, device=device)
        self.branches = DROPOUT + torch.arange(2 * config.blocks, device=device)
        self.zero = torch.zeros((), dtype=torch.int64, device=device)
        self.rates = Dropout.of_rates(rates, torch.device(device)) if any(rates) else None
        self.maskings = dict(enumerate(maskings or ()))
        self.extra = MASKING + torch.arange(EXTRA, device=device)
        self.looks = {
            model: Looks(masking, length, device)
            for model, masking in self.maskings.items()
            if isinstance(masking, Looking)
        }
        planners = [masking.planner for masking in maskings or ()]
        self.planner = torch.tensor(planners, device=device) if any(planners) else None

    def corrupt(
        self, walks: Int[Tensor, "models batch length"], step: Int[Tensor, ""]
    ) -> tuple[
        Int[Tensor, "models batch length"],
        Bool[Tensor, "models batch length"],
        Float[Tensor, "models batch"],
    ]:
        """(tokens with masks, where they are, times) of this process's samples."""
        counter = (self.samples[:, None], self.places, step, self.seeds[:, None, None])
        uniform = (_word(*counter) >> 8).to(torch.float32) * 2.0**-24
        # One more "position" than the walk has carries the time.
        slices = (uniform[..., -1] + self.samples) / self.total
        times = slices.remainder(1.0) * (1 - EPSILON) + EPSILON
        masked = uniform[..., :-1] < (1 - EPSILON) * times[..., None]
        return torch.where(masked, self.config.mask_id, walks), masked, times

    def context(self, walks: Int[Tensor, "models batch length"], step: Int[Tensor, ""]) -> Context:
        """What this process's samples look like in this step, each model's by its own masking."""
        tokens, masked, times = self.corrupt(walks, step)
        plain = Context(walks, tokens, masked, times, times)
        if not any(masking.share for masking in self.maskings.values()):
            return plain
        counter = (self.samples[:, None], self.extra, step, self.seeds[:, None, None])
        extra = (_word(*counter) >> 8).to(torch.float32) * 2.0**-24
        models = [self._masked(model, plain, extra[model]) for model in range(len(walks))]
        return Context(*(torch.stack(parts) for parts in zip(*models)))

    def _masked(self, model: int, plain: Context, extra: Float[Tensor, "batch extra"]) -> Context:
        """One model's context: part of the batch by its own masking, the rest uniform."""
        mine = Context(*(part[model] for part in plain))
        masking, which = self.maskings[model], extra[:, WHICH]
        if not isinstance(masking, Looking):
            return self._stateless(masking, mine, extra, which)
        if masking.rest == "coarse":
            again = (which - masking.share) / max(1 - masking.share, 1e-6)
            mine = self._stateless(Coarse(), mine, extra, again)
        return _either(which < masking.share, self.looks[model].gather(extra), mine)

    def _stateless(self, masking: Masking, mine: Context, extra: Tensor, which: Tensor) -> Context:
        """The same with `share` of the samples masked by a masking that needs no table."""
        if masking.share == 0:
            return mine
        walks = mine.walks
        masked = masking.masked(extra, walks.shape[1])
        share = masked.float().mean(1).clamp(min=1 / walks.shape[1])
        tokens = walks.masked_fill(masked, self.config.mask_id)
        return _either(which < masking.share, Context(walks, tokens, masked, share, share), mine)

    def dropout(self, step: Int[Tensor, ""]) -> Dropout | None:
        """This step's dropout, or None where no model has any."""
        if self.rates is None:
            return None
        word = _word(self.zero, self.branches, step, self.seeds[:, None])
        keys = torch.where(word > WORD >> 1, word - (WORD + 1), word).to(torch.int32)
        return Dropout(keys, *self.rates, self.first)


def _either(chosen: Bool[Tensor, " batch"], a: Context, b: Context) -> Context:
    """The first where chosen, the second elsewhere."""
    return Context(
        *(torch.where(chosen[:, None] if x.ndim == 2 else chosen, x, y) for x, y in zip(a, b))
    )


def _word(*counter: Tensor) -> Int[Tensor, "..."]:
    """One 32-bit word for every (sample, place, step, seed), broadcast together."""
    return philox(list(torch.broadcast_tensors(*counter)), KEY)[0]


def epoch_order(count: int, epoch: int, seed: Int[Tensor, ""]) -> Int[Tensor, " count"]:
    """A random order of `count` walks, for one epoch of one model, on the seed's device."""
    samples = torch.arange(count, device=seed.device)
    counter = torch.broadcast_tensors(
        samples, torch.full_like(samples, ORDER), torch.full_like(samples, epoch), seed
    )
    high, low, _, _ = philox(list(counter), KEY)
    return ((high << 31) | (low >> 1)).argsort(stable=True)


def loss(
    config: DDiTConfig,
    weights: Weights,
    walks: Int[Tensor, "models batch length"],
    angles: Float[Tensor, "2 span half"],
    noise: Noise,
    step: Int[Tensor, ""],
) -> Float[Tensor, " models"]:
    """Each model's loss (this process's share of it)."""
    models, _, length = walks.shape
    if config.causal:
        modulation = modulations(config, weights)
        hidden = hidden_states(config, weights, walks, angles, modulation, noise.dropout(step))
        nats = cross_entropy(config, *logits(config, weights, hidden), walks.reshape(models, -1))
        return nats.sum(1) / (noise.total * length)
    walks, tokens, counted, times, share = noise.context(walks, step)
    modulation = modulations(config, weights, sigma(times) if config.time_conditioning else None)
    hidden = hidden_states(config, weights, tokens, angles, modulation, noise.dropout(step))
    out = logits(config, weights, hidden)
    nats = noise.head.losses(config, weights, out, walks, tokens)
    weighted = torch.where(counted, nats / share[..., None], 0.0)
    if noise.planner is not None:
        weighted = weighted * planned(nats.detach(), counted, noise.planner)
    return weighted.sum((1, 2)) / (noise.total * length)


def planned(
    nats: Float[Tensor, "models batch length"],
    counted: Bool[Tensor, "models batch length"],
    planner: Float[Tensor, " models"],
) -> Float[Tensor, "models batch length"]:
    """How often each counted position counts: 1 + planner · n · softmax(log p(x)) over them."""
    sure = torch.softmax(torch.where(counted, -nats, -1e9), -1)
    return 1 + planner[:, None, None] * counted.sum(-1, keepdim=True) * sure


@torch.no_grad()
def bound(
    config: DDiTConfig,
    weights: Weights,
    walks: Int[Tensor, "models count length"],
    angles: Float[Tensor, "2 span half"],
    seed: int = 0,
    rows: int | None = None,
) -> Float[Tensor, "models count"]:
    """The bound on -log p(x)/L of every walk, nats per token; random only in which subsets S_k.

    One random order per walk gives all its S_k, as growing prefixes. Of a causal network it is
    -log p(x)/L. `rows` walks are read at a time, by default as many as have logits in little
    memory. Infinite where an output says that a token of the walk cannot be.
    """
    nats, lost = split_bound(config, weights, walks, angles, seed, rows)
    return torch.where(lost > 0, torch.inf, nats)


@torch.no_grad()
def split_bound(
    config: DDiTConfig,
    weights: Weights,
    walks: Int[Tensor, "models count length"],
    angles: Float[Tensor, "2 span half"],
    seed: int = 0,
    rows: int | None = None,
) -> tuple[Float[Tensor, "models count"], Float[Tensor, "models count"]]:
    """(the bound's sum over tokens with p > 0, the share of tokens with p = 0), of every walk.

    A token's share is its weight in the bound: 1/k of each S_k, together 1 a walk after division by
    its length.
    """
    models, count, length = walks.shape
    if rows is None:
        room = LOGITS if walks.device.type == "cpu" else ACCELERATOR_LOGITS
        rows = min(1024, max(1, room // (length * config.vocab_size)))
    result = torch.zeros(models, count, dtype=torch.float64, device=walks.device)
    lost = torch.zeros_like(result)
    if config.causal:
        modulation = modulations(config, weights)
        for start in range(0, count, rows):
            part = walks[:, start : start + rows]
            hidden = hidden_states(config, weights, part, angles, modulation)
            out = logits(config, weights, hidden, single=True)
            nats = cross_entropy(config, *out, part.reshape(models, -1)).view(part.shape)
            result[:, start : start + rows] = nats.sum(-1).to(torch.float64)
        return result / length, lost
    order = Streams(seed, torch.arange(count)).uniform(Purpose.TRAIN, 0, length).argsort(1)
    rank = order.argsort(1).to(walks.device)
    for k in range(1, length + 1):
        times = torch.full((models, 1), k / length, device=walks.device)
        given = sigma(times) if config.time_conditioning else None
        modulation = modulations(config, weights, given)
        for start in range(0, count, rows):
            part = walks[:, start : start + rows]
            masked = (rank[start : start + rows] < k).expand(part.shape)
            tokens = torch.where(masked, config.mask_id, part)
            hidden = hidden_states(config, weights, tokens, angles, modulation)
            out = logits(config, weights, hidden, single=True)
            nats = config.head.nats(config, weights, out, part, tokens)
            never = masked & nats.isposinf()
            nats = torch.where(masked & ~never, nats, 0.0)
            result[:, start : start + rows] += nats.sum(-1).to(torch.float64) / k
            lost[:, start : start + rows] += never.sum(-1).to(torch.float64) / k
    return result / length, lost / length
