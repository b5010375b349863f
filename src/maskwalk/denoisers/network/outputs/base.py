"""Outputs: how the logits of the network become marginals, and what it learns from.

    softmax      every masked position for itself, p = softmax(logits); minimised: the
                 cross-entropy −log p(x_i). The paper's, and the default.
    chain        neighbouring positions together (chain.py).
    entmax       every position for itself, with tails of exactly zero (entmax.py).

An output is part of the network's configuration: its weights lie beside the others, and models of
one configuration are trained together.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from maskwalk.specs import Registry

if TYPE_CHECKING:
    from maskwalk.denoisers.network.weights import DDiTConfig

Weights = dict[str, Tensor]
Extra = dict[str, tuple[tuple[int, ...], float]]  # name -> (shape, initial bound)


@dataclass(frozen=True, kw_only=True)
class Output:
    """What stands behind the last linear map, for all models at once.

    Logits come as `ddit.logits` gives them: rows = batch·length, columns padded, bias apart.
    """

    joint = False  # whether the loss is of all masked positions together
    likelihood = True  # whether the loss at a position is its −log p
    copies = 4  # of a table of logits that a training step keeps, about

    def check(self, config: "DDiTConfig") -> None:
        """Refuses a network that this output cannot stand behind."""

    def extra(self, vocab: int) -> Extra:
        """Weights of its own; float32, and uniform on (−bound, bound) at first."""
        return {}

    def losses(
        self,
        config: "DDiTConfig",
        weights: Weights,
        logits: tuple[Float[Tensor, "models rows padded"], Float[Tensor, "models padded"]],
        walks: Int[Tensor, "models batch length"],
        tokens: Int[Tensor, "models batch length"],
    ) -> Float[Tensor, "models batch length"]:
        """What is minimised, at every position; only masked ones need to count."""
        return self.nats(config, weights, logits, walks, tokens)

    def nats(
        self,
        config: "DDiTConfig",
        weights: Weights,
        logits: tuple[Float[Tensor, "models rows padded"], Float[Tensor, "models padded"]],
        walks: Int[Tensor, "models batch length"],
        tokens: Int[Tensor, "models batch length"],
    ) -> Float[Tensor, "models batch length"]:
        """−log p(x_i | what is revealed) at every position; infinite where p is 0."""
        logs = self.log_marginals(config, weights, logits, tokens)
        return -logs.gather(-1, walks[..., None])[..., 0]

    def log_marginals(
        self,
        config: "DDiTConfig",
        weights: Weights,
        logits: tuple[Float[Tensor, "models rows padded"], Float[Tensor, "models padded"]],
        tokens: Int[Tensor, "models batch length"],
    ) -> Float[Tensor, "models batch length vocab"]:
        """log p(x_i = v | what is revealed), float32; −inf where p is 0."""
        raise NotImplementedError(f"{type(self).__name__} has no marginals.")


OUTPUTS: Registry[Output] = Registry(
    "output", home="maskwalk.denoisers.network.outputs", makes=Output
)


def cross_entropy(
    config: "DDiTConfig",
    out: Float[Tensor, "models rows padded"],
    bias: Float[Tensor, "models padded"],
    walks: Int[Tensor, "models rows"],
) -> Float[Tensor, "models rows"]:
    """-log p(x_i) at every position, in float32.

    The target's logit is picked by comparison, not by index, so that forward and gradient are each
    one pass over the logits.
    """
    column = torch.arange(out.shape[-1], device=out.device)
    out = out.to(torch.float32) + bias[:, None].to(torch.float32)
    out = torch.where(column < config.vocab_size, out, -torch.inf)
    target = torch.where(column == walks[..., None], out, 0.0).sum(-1)
    return torch.logsumexp(out, -1) - target


def scores(
    config: "DDiTConfig", logits: tuple[Tensor, Tensor], tokens: Int[Tensor, "models batch length"]
) -> Float[Tensor, "models batch length vocab"]:
    """The logits of the clean tokens with their bias, float32."""
    out, bias = (part[..., : config.vocab_size].to(torch.float32) for part in logits)
    return (out + bias[:, None]).view(*tokens.shape, config.vocab_size)


@OUTPUTS.register("softmax")
@dataclass(frozen=True, kw_only=True)
class Softmax(Output):
    """Every masked position for itself: softmax of its logits, learned by cross-entropy."""

    def nats(
        self, config: Any, weights: Weights, logits: Any, walks: Tensor, tokens: Tensor
    ) -> Float[Tensor, "models batch length"]:
        """The cross-entropy, in one pass over the logits."""
        out, bias = logits
        nats = cross_entropy(config, out, bias, walks.reshape(len(walks), -1))
        return nats.view(walks.shape)

    def log_marginals(
        self, config: Any, weights: Weights, logits: Any, tokens: Tensor
    ) -> Float[Tensor, "models batch length vocab"]:
        """log softmax of the logits."""
        return torch.log_softmax(scores(config, logits, tokens), -1)


PLAIN = "softmax()"  # the output that files need not name, as a canonical spec
