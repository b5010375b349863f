"""An autoregressive model as a denoiser for `left_to_right`, with a key-value cache.

It knows p(x_i | x_<i) and nothing else, so it answers only at the first masked position of a
sequence, and what is given further right is not seen. Every other question gets a sentence.

`decode` asks again in every round with one more token in front. The keys and values of what was
read are kept for each sequence, found again by the tokens themselves (so it does not matter which
rows `decode` has let go meanwhile), and only the new tokens are read. `cache=False` reads all of it
anew and gives the same text. Sequences that have read and must read the same number of tokens run
together, `rows` at a time.
"""

from collections.abc import Iterable
from copy import copy
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from maskwalk.denoisers.language.base import LogMarginals, TextDenoiser, mapped
from maskwalk.denoisers.language.masked import (
    check_device,
    last_map,
    logits_of,
    place_of,
    states_before,
    width_of,
)
from maskwalk.errors import MaskwalkError
from maskwalk.resources import need

Past = list[tuple[Tensor, Tensor]]  # keys and values of one sequence, layer by layer


def only_next(
    tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"], mask_id: int
) -> None:
    """Refuses every question but the first masked position of a row."""
    first = (tokens == mask_id) & ((tokens == mask_id).cumsum(1) == 1)
    if not bool((at == (first & at.any(1, keepdim=True))).all()):
        raise MaskwalkError(
            "An autoregressive model only knows the next token: it was asked for other positions "
            "than the first masked one. Use the sampler left_to_right, or a masked model."
        )


class Causal(TextDenoiser):
    """A model of the next token; `begin` is read first and is not on the canvas.

    `adds`: whether the tokenizer puts it before a text; if not, `generate` reads it before an empty
    one only.
    """

    causal = True

    def __init__(
        self,
        model: nn.Module,
        *,
        begin: int | None = None,
        adds: bool = True,
        cache: bool = True,
        rows: int = 1,
        forbidden: Iterable[int] = (),
    ) -> None:
        model.eval()
        self.model, self.begin, self.adds, self.cache = model, begin, adds, cache
        self._map = last_map(model)
        vocab = width_of(model, self._map)
        super().__init__(vocab, vocab, rows, forbidden)  # the mask is no token of the model
        self._seen: dict[tuple[int, ...], Past] = {}
        if cache:
            self._require_plain_cache()

    def __repr__(self) -> str:
        return f"Causal({type(self.model).__name__}, cache={self.cache}, rows={self.rows})"

    def plain(self) -> "Causal":
        """The same model, which reads what is on the canvas and nothing before it."""
        other = copy(self)
        other.begin, other._seen = None, {}
        return other

    def forget(self) -> None:
        """Drops what was read: the cache holds the last batch until then."""
        self._seen = {}

    def fill(
        self,
        answer: LogMarginals,
        tokens: Int[Tensor, "batch length"],
        at: Bool[Tensor, "batch length"],
    ) -> None:
        """The next token's logits of every sequence that asks."""
        check_device(self.model, tokens)
        ends, ids = self._ends(tokens, at), tokens.tolist()
        first = [] if self.begin is None else [self.begin]
        texts = [tuple(first + ids[row][:end]) for row, end in ends]
        pasts: dict[tuple[int, ...], Past] = {}
        groups: dict[tuple[int, int], list[int]] = {}
        lengths = sorted({len(seen) for seen in self._seen}, reverse=True)
        for place, text in enumerate(texts):
            groups.setdefault((len(text), self._known(text, lengths)), []).append(place)
        for (_, known), places in groups.items():
            for start in range(0, len(places), self.rows):
                some = places[start : start + self.rows]
                padded = some + some[:1] * (self.rows - len(some))
                out, past = self._read([texts[p] for p in padded], known, tokens.device)
                index = torch.tensor(some, device=tokens.device)
                out = out[: len(some)]
                for logits in (
                    [out] if self._map is None else mapped(out, self._map, self.vocab_size)
                ):
                    answer.put(index[: len(logits)], logits)
                    index = index[len(logits) :]
                    del logits  # before the next slice is made
                pasts |= {texts[p]: one for p, one in zip(some, past)}
        self._seen = pasts

    def _ends(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"]
    ) -> list[tuple[int, int]]:
        """(row, position) of every question, each the first masked position of its row."""
        only_next(tokens, at, self.mask_id)
        questions = [(int(row), int(position)) for row, position in at.nonzero().tolist()]
        if self.begin is None and any(position == 0 for _, position in questions):
            raise MaskwalkError(
                "This model needs a token to begin with: give a prompt, or begin=… (its "
                "beginning-of-text token)."
            )
        return questions

    def _known(self, text: tuple[int, ...], lengths: list[int]) -> int:
        """How many tokens of the text need not be read again (never all: the last one answers)."""
        for length in lengths:
            if length <= len(text) and text[:length] in self._seen:
                return min(length, len(text) - 1)
        return 0

    def _past(self, text: tuple[int, ...], known: int) -> Past:
        layers = self._seen.get(text[:known]) or self._seen[text]
        return [(k[:, :known], v[:, :known]) for k, v in layers]

    def _read(
        self, texts: list[tuple[int, ...]], known: int, device: torch.device
    ) -> tuple[Tensor, list[Past]]:
        """What the last map reads (or the logits) after each text, and what to remember of it."""
        given = torch.tensor([text[known:] for text in texts], device=device)
        options: dict[str, Any] = {"use_cache": self.cache}
        if self.cache:
            past = need().DynamicCache()
            for layer in range(len(self._past(texts[0], known)) if known else 0):
                pairs = [self._past(text, known)[layer] for text in texts]
                past.update(
                    torch.stack([k for k, _ in pairs]), torch.stack([v for _, v in pairs]), layer
                )
            options["past_key_values"] = past
        if self._map is not None:
            out = states_before(self.model, self._map, given, **options)[:, -1]
        else:
            answer = self.model(given, **options)
            out = logits_of(answer, given, self.vocab_size)[:, -1]
        if not self.cache:
            return out, []
        layers = [(layer.keys, layer.values) for layer in past.layers]
        return out, [[(k[i], v[i]) for k, v in layers] for i in range(len(texts))]

    @torch.no_grad()
    def _require_plain_cache(self) -> None:
        """Refuses a cache that is more than keys and values, or that the model does not fill."""
        transformers = need()
        past = transformers.DynamicCache()
        tokens = torch.zeros((1, 2), dtype=torch.int64, device=place_of(self.model))
        self.model(tokens, past_key_values=past)
        shapes = [getattr(layer, "keys", None) for layer in past.layers]
        plain = shapes and all(isinstance(k, Tensor) and k.shape[2] == 2 for k in shapes)
        if not plain or any(getattr(layer, "is_sliding", False) for layer in past.layers):
            raise MaskwalkError(
                f"{type(self.model).__name__} keeps something other than plain keys and values "
                "of all tokens; load it with cache=False."
            )
