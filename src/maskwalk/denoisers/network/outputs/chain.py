"""A chain: the masked positions together, neighbours in the line tied by one shared table.

With the network's logits u_i at masked positions, the evidence at revealed ones (u_i = 0 at the
token there and −inf elsewhere), and a table log K = U Wᵀ of (token, next token), shared by all
places and contexts:

    p(x | revealed) = exp(Σ_i u_i(x_i) + Σ_i log K(x_{i−1}, x_i)) / Z

A sampler gets the exact marginals of this law, by forward–backward:

    α_i(b) = u_i(b) + log Σ_a exp(α_{i−1}(a)) K(a, b)
    β_i(a) = log Σ_b K(a, b) exp(u_{i+1}(b) + β_{i+1}(b))
    log p(x_i = v | revealed) = α_i(v) + β_i(v) − log Z

At a revealed position that is certainty. What is minimised is −log p of *all* masked tokens of a
sequence together (log K between two revealed neighbours cancels), divided by the share of positions
masked like every other loss, so that every number of masks counts alike. This is no bound on
−log p(x): the bound that is reported is computed from the marginals.

It helps where a token depends on what is further away through its neighbours only: walks whose next
node depends on the last one. Long gaps then need not be learned, they are computed from one-step
factors. Elsewhere the chain is wrong, but the marginals need not be: the gradient at u_i(v) is
p(x_i = v | revealed) − 1[x_i = v], which vanishes on average only where the marginals are the true
ones. A network that can say any logits compensates for whatever the table says.

Messages are logarithms, and each sum is a product of matrices relative to the largest term: float32
holds them at any length. Loops have the length of the sequence, known when compiled.
Source: CoDD [arXiv 2603.00045], with a product of embeddings as log K instead of a mixture.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from maskwalk.denoisers.network.embed import embed
from maskwalk.denoisers.network.outputs.base import OUTPUTS, Extra, Output, Weights, scores
from maskwalk.errors import MaskwalkError, whole

TOKENS = 8192  # of the largest vocabulary: log K has its square in numbers
LEAST = 1e-37  # relative to the largest term of a sum: what float32 can still hold
LEFT, RIGHT = "chain.left", "chain.right"


@OUTPUTS.register("chain")
@dataclass(frozen=True, kw_only=True)
class Chain(Output):
    """Neighbouring positions together, with one shared table of rank `rank` between them."""

    rank: int = 32
    joint = True
    likelihood = False
    copies = 12

    def __post_init__(self) -> None:
        whole("rank", self.rank, 1, 4096)

    def check(self, config: Any) -> None:
        """A table between tokens must fit, and a causal network has no masks to join."""
        if config.causal:
            raise MaskwalkError("A causal network has no masked positions for output=chain(…).")
        if config.vocab_size > TOKENS:
            raise MaskwalkError(
                f"output=chain(…) keeps a table of token pairs and takes at most {TOKENS:,} "
                f"tokens, not {config.vocab_size:,}; use output=softmax."
            )

    def extra(self, vocab: int) -> Extra:
        """U, as rows of length about 1, and W, which begins at zero: no tie between neighbours."""
        return {LEFT: ((vocab, self.rank), self.rank**-0.5), RIGHT: ((vocab, self.rank), 0.0)}

    def losses(
        self, config: Any, weights: Weights, logits: Any, walks: Tensor, tokens: Tensor
    ) -> Float[Tensor, "models batch length"]:
        """−log p(masked | revealed), in equal parts on the masked positions."""
        masked = tokens == config.mask_id
        given = scores(config, logits, tokens)
        hot = walks[..., None] == torch.arange(config.vocab_size, device=walks.device)
        own = torch.where(hot & masked[..., None], given, 0.0).sum((-1, -2))
        total = log_partition(evidence(given, tokens, masked), _table(weights))
        nats = total - own - _ties(weights, walks)
        share = masked / masked.sum(-1, keepdim=True).clamp(min=1)
        spread: Tensor = nats[..., None] * share
        return spread

    def log_marginals(
        self, config: Any, weights: Weights, logits: Any, tokens: Tensor
    ) -> Float[Tensor, "models batch length vocab"]:
        """The chain's own marginals; certainty at revealed positions."""
        masked = tokens == config.mask_id
        unary = evidence(scores(config, logits, tokens), tokens, masked)
        return torch.log_softmax(forward_backward(unary, _table(weights)), -1)


def _table(weights: Weights) -> Float[Tensor, "models vocab vocab"]:
    """log K: (token, next token)."""
    return torch.bmm(weights[LEFT], weights[RIGHT].transpose(1, 2))


def _ties(weights: Weights, walks: Tensor) -> Float[Tensor, "models batch"]:
    """Σ_i log K(x_{i−1}, x_i) of every walk."""
    models, batch = walks.shape[:2]
    before, after = walks[..., :-1].reshape(models, -1), walks[..., 1:].reshape(models, -1)
    left = embed(weights[LEFT], before, torch.float32)
    right = embed(weights[RIGHT], after, torch.float32)
    return (left * right).view(models, batch, -1).sum(-1)


def evidence(
    given: Float[Tensor, "models batch length vocab"], tokens: Tensor, masked: Tensor
) -> Float[Tensor, "models batch length vocab"]:
    """What each position says by itself: its logits, or the token that is revealed there."""
    shown = tokens[..., None] == torch.arange(given.shape[-1], device=tokens.device)
    certain = torch.where(shown, 0.0, -torch.inf)
    return torch.where(masked[..., None], given, certain)


class Step(NamedTuple):
    """A table K to pass messages through, every row relative to its largest entry."""

    kernel: Float[Tensor, "models vocab vocab"]
    largest: Float[Tensor, "models 1 vocab"]

    @classmethod
    def of(cls, table: Float[Tensor, "models vocab vocab"]) -> "Step":
        """From log K; the largest entries only shift numbers to where float32 is fine."""
        largest = table.detach().amax(-1)
        return cls(torch.exp(table - largest[..., None]), largest[:, None])

    def __call__(self, message: Float[Tensor, "models batch vocab"]) -> Tensor:
        """b ↦ log Σ_a exp(message(a)) K(a, b)."""
        terms = message + self.largest
        top = terms.detach().amax(-1, keepdim=True)
        total = torch.bmm(torch.exp(terms - top), self.kernel)
        return total.clamp(min=LEAST).log() + top


def log_partition(
    unary: Float[Tensor, "models batch length vocab"], table: Float[Tensor, "models vocab vocab"]
) -> Float[Tensor, "models batch"]:
    """log Z = log Σ_x exp(Σ_i u_i(x_i) + Σ_i log K(x_{i−1}, x_i))."""
    step, places = Step.of(table), unary.unbind(2)
    message = places[0]
    for place in places[1:]:
        message = step(message) + place
    return torch.logsumexp(message, -1)


def forward_backward(
    unary: Float[Tensor, "models batch length vocab"], table: Float[Tensor, "models vocab vocab"]
) -> Float[Tensor, "models batch length vocab"]:
    """α_i(v) + β_i(v): the log-marginals, up to log Z."""
    ahead, back, places = Step.of(table), Step.of(table.transpose(1, 2)), unary.unbind(2)
    alphas, betas = [places[0]], [torch.zeros_like(places[0])]
    for place in places[1:]:
        alphas.append(ahead(alphas[-1]) + place)
    for place in places[:0:-1]:
        betas.append(back(betas[-1] + place))
    return torch.stack(alphas, 2) + torch.stack(betas[::-1], 2)
