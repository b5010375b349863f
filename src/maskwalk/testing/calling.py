"""One call of a foreign decoder: how it is asked, what it gave back, and what it did besides.

A canvas is a table of a law's tokens and masks. Each style lays it out as its own code expects
(a bos before it, pads to the left, the tokens to generate left out), and what comes back is laid
back into the law's own places.
"""

import contextlib
import io
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from maskwalk.bench.time_limit import time_limit
from maskwalk.errors import STOPS, MaskwalkError, memory_ran_out, shown, told_of
from maskwalk.testing.binding import Signature
from maskwalk.testing.model import Asked, OracleModel

Table = Tensor  # whole numbers, (rows, width)


class Failed(Exception):
    """What a decoder did instead of giving back tokens, as a sentence."""


@dataclass(frozen=True)
class Outcome:
    """What one call gave back, in the law's own places, and what it took."""

    tokens: Table
    calls: int
    rows: int
    asked: tuple[Asked, ...]
    canvases: list[Table] | None  # what the model was shown, pass by pass; None: rows are missing
    claimed: int | None  # forward passes, where the decoder gives back a number
    printed: str
    changed: tuple[str, ...]  # settings of the process
    generator: bytes  # the state of torch's generator afterwards


@dataclass(frozen=True)
class Decoder:
    """A foreign decoder: a function, or a method of a class that the model is mixed into."""

    name: str
    like: str
    function: Callable[..., Any]
    owner: type | None
    options: Mapping[str, Any]
    timeout: float

    @cached_property
    def signature(self) -> Signature:
        """What can be passed by name."""
        taken = {"llada": 2, "dream": 2, "mdlm": 1, "function": 3}[self.like]
        return Signature(self.function, taken, self.name)

    @property
    def prompts(self) -> bool:
        """Whether it can be given tokens to go on from."""
        return self.like != "mdlm" or self.signature.takes("canvas")

    @property
    def holes(self) -> bool:
        """Whether given tokens may stand anywhere."""
        return self.like in ("dream", "function") or (self.like == "mdlm" and self.prompts)

    def model(self, law: Any, dtype: torch.dtype) -> OracleModel:
        """The model it is pointed at; a mixin's method finds itself on it."""
        if self.owner is None:
            return OracleModel(law, self.like, dtype)
        own = {
            name: getattr(OracleModel, name) for name in ("__init__", "forward", "device", "dtype")
        }
        own["__call__"] = torch.nn.Module.__call__
        made: OracleModel = type(self.owner.__name__, (self.owner, OracleModel), own)(
            law, self.like, dtype
        )
        return made

    def call(
        self,
        model: OracleModel,
        canvas: Table,
        *,
        steps: int,
        temperature: float,
        seed: int,
        pads: Int[Tensor, " batch"] | None = None,
    ) -> Outcome:
        """Decodes a canvas, or raises `Failed`."""
        model.reset()
        layout = Layout(self, model, canvas, pads)
        first, values = layout.question(), layout.values(steps, temperature)
        given = [one.clone() for one in first if isinstance(one, Tensor)]
        named = self.signature.arguments(values, self.options, {})
        caller = model if self.like != "function" else _Denoise(model)
        with _watched(seed) as seen:
            found = self._guarded(caller, first, named)
        changed = list(seen.changed)
        if any(not torch.equal(a, b) for a, b in zip(given, _tensors(first))):
            changed.append("the prompt it was given")
        tokens, claimed = _tokens(found)
        canvases = layout.canvases(model.asked)
        return Outcome(
            layout.back(tokens), model.forward_passes, model.rows, tuple(model.asked), canvases,
            claimed, seen.printed, tuple(changed), seen.generator,
        )  # fmt: skip

    def _guarded(self, model: Any, first: tuple[Any, ...], named: dict[str, Any]) -> Any:
        try:
            with time_limit(self.timeout, self.name):
                return self.function(model, *first, **named)
        except STOPS:
            raise
        except BaseException as problem:
            if memory_ran_out(problem):
                raise
            if isinstance(problem, MaskwalkError):
                raise Failed(str(problem).split("\n")[0]) from None
            told = told_of(problem)
            what = f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"
            sentence = str(told).split("\n")[0] if told else f"{self.name} failed with {what}."
            raise Failed(sentence) from None


class Layout:
    """A canvas as a style's code wants it, and the way back."""

    def __init__(
        self, decoder: Decoder, model: OracleModel, canvas: Table, pads: Tensor | None
    ) -> None:
        self.decoder, self.model, self.canvas = decoder, model, canvas
        self.bos = decoder.like in ("llada", "dream")
        masked = canvas == model.mask_id
        some_open = torch.cat([masked.all(0), torch.ones(1, dtype=torch.bool)])
        # What follows the last column with anything given is to be generated.
        given_columns = (~some_open).nonzero()
        self.prefix = int(given_columns.max()) + 1 if len(given_columns) else 0
        self.prefix = min(self.prefix, canvas.shape[1] - 1) if self.bos else canvas.shape[1]
        self.new = canvas.shape[1] - self.prefix
        self.pads = torch.zeros(len(canvas), dtype=torch.int64) if pads is None else pads
        self.padded = pads is not None
        self.start = int(self.bos)

    def wide(self) -> Table:
        """All rows with their pads, their bos, and what is to be generated.

        A row with n pads has n tokens less: its first n places are nobody's.
        """
        if not self.bos:
            return self.canvas.clone()
        head = torch.full((len(self.canvas), 1), self.model.bos_id)
        wide = torch.cat([head, self.canvas], 1)
        column = torch.arange(wide.shape[1])
        wide = torch.where(column < self.pads[:, None], self.model.pad_id, wide)
        return torch.where(column == self.pads[:, None], self.model.bos_id, wide)

    def question(self) -> tuple[Any, ...]:
        """The arguments after the model."""
        if self.decoder.like == "mdlm":
            return ()
        if self.decoder.like == "function":
            return self.canvas.clone(), self.model.mask_id
        return (self.wide()[:, : self.start + self.prefix],)

    def values(self, steps: int, temperature: float) -> dict[str, Any]:
        """What can be passed by name."""
        width = self.start + self.prefix
        hidden = self.wide()[:, :width] == self.model.pad_id
        return {
            "steps": steps,
            "new": self.new,
            "length": self.canvas.shape[1] + self.start,
            "batch": len(self.canvas),
            "shape": tuple(self.canvas.shape),
            "block": self.new if self.bos else self.canvas.shape[1],
            "temperature": temperature,
            "mask": self.model.mask_id,
            "pad": self.model.pad_id,
            "attention": (~hidden).to(torch.int64) if self.padded else None,
            "guidance": 0.0,
            "canvas": self.canvas.clone(),
            "vocab": self.model.vocab_size,
            "device": self.model.device,
        }

    def back(self, tokens: Table) -> Table:
        """What was given back, in the law's own places."""
        rows, length = self.canvas.shape
        if tokens.shape == (rows, self.start + length):
            nobodys = torch.arange(length) < self.pads[:, None]
            return torch.where(nobodys, self.canvas, tokens[:, self.start :])
        if tokens.shape == (rows, length):
            return tokens
        if self.bos and tokens.shape == (rows, self.new):
            return torch.cat([self.canvas[:, : self.prefix], tokens], 1)
        raise Failed(
            f"It gave back tokens of shape {tuple(tokens.shape)} for {rows} sequences of "
            f"{self.start + length} tokens, {self.new} of them to be generated."
        )

    def canvases(self, asked: list[Asked]) -> list[Table] | None:
        """What the model was shown of every row, pass by pass; None if rows are missing."""
        rows, result = len(self.canvas), []
        for one in asked:
            if one.tokens.shape[1] != self.start + self.canvas.shape[1]:
                return None
            if len(one.tokens) % rows or len(one.tokens) == 0:
                return None
            result.append(one.tokens[:rows, self.start :])
        return result


class _Denoise:
    """The model as a plain function: (batch, length) tokens to log-probabilities."""

    def __init__(self, model: OracleModel) -> None:
        self._model = model

    def __call__(self, tokens: Tensor) -> Any:
        return self._model(tokens)[..., : self._model.clean]


@dataclass
class _Seen:
    changed: tuple[str, ...] = ()
    printed: str = ""
    generator: bytes = b""


@contextlib.contextmanager
def _watched(seed: int) -> Iterator[_Seen]:
    """The three generators seeded, output kept, and every setting put back afterwards."""
    seen, said = _Seen(), io.StringIO()
    # Code that others wrote draws from the generators of the process.
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    before = _settings()
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    random.seed(seed)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            yield seen
    finally:
        after = _settings()
        seen.changed = tuple(name for name in before if before[name] != after[name])
        seen.printed, seen.generator = said.getvalue(), torch.get_rng_state().numpy().tobytes()
        torch.set_default_dtype(before["torch's default dtype"])
        torch.set_grad_enabled(before["whether gradients are kept"])
        torch.set_num_threads(before["torch's number of threads"])
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        random.setstate(states[2])


def _settings() -> dict[str, Any]:
    return {
        "torch's default dtype": torch.get_default_dtype(),
        "whether gradients are kept": torch.is_grad_enabled(),
        "torch's number of threads": torch.get_num_threads(),
        "the threads that run": threading.active_count(),
    }


def _tensors(values: tuple[Any, ...]) -> list[Tensor]:
    return [one for one in values if isinstance(one, Tensor)]


def _tokens(found: Any) -> tuple[Table, int | None]:
    """The tokens in what was given back, and the number of passes where it has one."""
    claimed = None
    if isinstance(found, tuple) and found:
        numbers = [one for one in found[1:] if isinstance(one, int) and not isinstance(one, bool)]
        claimed = numbers[0] if len(numbers) == 1 else None
        found = found[0]
    for name in ("sequences", "tokens", "samples"):
        inside = found.get(name) if isinstance(found, dict) else getattr(found, name, None)
        found = inside if inside is not None and not isinstance(found, Tensor) else found
    if isinstance(found, np.ndarray | list):
        with contextlib.suppress(ValueError, TypeError, RuntimeError):
            found = torch.as_tensor(np.asarray(found))
    if not isinstance(found, Tensor) or found.is_floating_point() or found.ndim not in (1, 2):
        told = f"{found.dtype} {tuple(found.shape)}" if isinstance(found, Tensor) else shown(found)
        raise Failed(f"It gave back {told} instead of a table of tokens.")
    return found.detach().cpu().to(torch.int64).reshape(-1, found.shape[-1]), claimed
