"""What the oracles share: the checks of a question, and the sentences for the record.

An oracle answers with the exact conditional p_i(x) = ν(X_i = x | revealed tokens) of a walk law ν,
in float64 and with true zeros. Evidence no walk agrees with has no conditional; there, and only
there, an oracle answers with the limit of a vanishing uniform leak: every step's law p(x | past)
becomes p(x | past) + ε, and ε goes to zero. What remains in the limit are the sequences with the
fewest impossible steps, each weighted by the product of its possible ones.
"""

from abc import ABC, abstractmethod

from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.worlds.exact.world import check_question
from maskwalk.worlds.walks.laws import WalkLaw

LEAK = "impossible evidence, if any: limit of a vanishing uniform leak"
TOO_SMALL = (
    "Some evidence that is possible has a probability too small for float64 (below 1e-290), so its "
    "conditionals would be wrong. Take shorter walks, or a kernel without such rare steps."
)


class Oracle(ABC):
    """A `Denoiser` that knows the law."""

    score_grid = 1e-9
    exact = True  # its marginals are the law's own

    def __init__(self, law: WalkLaw) -> None:
        self.vocab_size = self.mask_id = law.vocab_size
        self.length, self.order = law.length, law.order
        self.impossible = 0  # canvases asked about so far that no walk agrees with

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: exact, {self.vocab_size:,} tokens>"

    @abstractmethod
    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "rows vocab"]:
        """Exact log-marginals of the masked positions named by `at`, packed."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the record: conventions the answers depend on."""
        return (LEAK,)

    def _places(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None
    ) -> Bool[Tensor, "batch length"]:
        """The places to answer for, after checking that the question makes sense."""
        return check_question(tokens, at, self.length, self.mask_id)


def chunks(count: int, size: int) -> list[slice]:
    """0..count-1 in slices of at most `size` (at least 1)."""
    size = max(1, size)
    return [slice(i, min(i + size, count)) for i in range(0, count, size)]
