"""Decoders as other people write them, for LLaDA, Dream and MDLM: right ones, and one bug each.

All choose, then draw: a position is ranked by the model's answer, and its token drawn afterwards.
tests/test_audit.py says which have no fault, and which check tells of which bug.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

Draw = Callable[[Tensor, float], Tensor]
Score = Callable[[Tensor, Tensor], Tensor]


def draw_exactly(logits: Tensor, temperature: float) -> Tensor:
    if temperature == 0:
        return logits.argmax(-1)
    scaled = logits.double() / temperature
    gumbel = -torch.log(-torch.log(torch.rand_like(scaled).clamp(1e-300, 1 - 1e-16)))
    return (scaled + gumbel).argmax(-1)


def draw_in_eight_bits(logits: Tensor, temperature: float) -> Tensor:
    if temperature == 0:
        return logits.argmax(-1)
    probs = (logits / temperature).softmax(-1).to(torch.bfloat16)
    return (probs / (1e-10 - (torch.rand_like(probs) + 1e-10).log())).argmax(-1)


def by_confidence(probs: Tensor, masked: Tensor) -> Tensor:
    return probs.amax(-1)


def by_entropy(probs: Tensor, masked: Tensor) -> Tensor:
    return -torch.special.entr(probs).sum(-1)


def entropy_backwards(probs: Tensor, masked: Tensor) -> Tensor:
    return torch.special.entr(probs).sum(-1)


def cumulative_over_the_batch(probs: Tensor, masked: Tensor) -> Tensor:
    return probs.amax(-1).cummax(0).values


def standardised_over_the_batch(probs: Tensor, masked: Tensor) -> Tensor:
    scores = probs.amax(-1)
    return -(scores - scores[masked].mean()).abs()


def with_gumbel_noise(probs: Tensor, masked: Tensor) -> Tensor:
    noise = -torch.log(-torch.log(torch.rand_like(probs).clamp(1e-9, 1 - 1e-7)))
    return (probs.clamp(min=1e-9).log() + noise).amax(-1)


def fill(
    answers: Callable[[Tensor], Tensor],
    x: Tensor,
    mask_id: int,
    steps: int,
    temperature: float,
    score: Score = by_confidence,
    draw: Draw = draw_exactly,
    averaged: bool = False,
    within: Tensor | None = None,
) -> Tensor:
    """Reveals every row's masks over `steps` passes; `averaged`: as many as the batch's mean."""
    allowed = torch.ones_like(x, dtype=torch.bool) if within is None else within
    for step in range(steps):
        masked = (x == mask_id) & allowed
        if not bool(masked.any()):
            break
        logits = answers(x)
        scores = score(logits.double().softmax(-1), masked).masked_fill(~masked, -torch.inf)
        counts = -(-masked.sum(1) // (steps - step))
        if averaged:
            counts = torch.full_like(
                counts, round(float(masked.sum(1).float().mean()) / (steps - step))
            )
        rank = scores.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        chosen = (rank < counts[:, None]) & (masked | averaged)
        x = torch.where(chosen, draw(logits, temperature), x)
    return x


# ---------------------------------------------------------------- in the style of LLaDA


def llada(score: Score = by_confidence, draw: Draw = draw_exactly) -> Callable[..., Tensor]:
    """A decoder called as LLaDA's generate(), with this score and draw."""

    def generate(
        model: Any,
        prompt: Tensor,
        attention_mask: Tensor | None = None,
        steps: int = 128,
        gen_length: int = 128,
        block_length: int = 128,
        temperature: float = 0.0,
        remasking: str = "low_confidence",
        mask_id: int = 126336,
    ) -> Tensor:
        new = torch.full((len(prompt), gen_length), mask_id)
        x = torch.cat([prompt, new], 1).to(model.device)
        if attention_mask is not None:
            attention_mask = torch.cat([attention_mask, torch.ones_like(new)], 1)
        blocks = gen_length // block_length
        for block in range(blocks):
            here = torch.zeros_like(x, dtype=torch.bool)
            start = prompt.shape[1] + block * block_length
            here[:, start : start + block_length] = True
            x = fill(
                lambda x: model(x, attention_mask=attention_mask).logits, x, mask_id,
                max(1, steps // blocks), temperature, score, draw, within=here,
            )  # fmt: skip
        return x

    return generate


def one_sequence_only(model: Any, prompt: Tensor, steps: int, gen_length: int, temperature: float,
                      mask_id: int) -> Tensor:  # fmt: skip
    """Allocates one row, whatever the prompt: batches crash."""
    x = torch.full((1, prompt.shape[1] + gen_length), mask_id)
    x[:, : prompt.shape[1]] = prompt
    return fill(lambda x: model(x).logits, x, mask_id, steps, temperature)


def pads_leak(model: Any, prompt: Tensor, attention_mask: Tensor | None = None, *, steps: int,
              gen_length: int, temperature: float, mask_id: int) -> Tensor:  # fmt: skip
    """Takes an attention_mask and does not pass it on."""
    return llada()(model, prompt, None, steps, gen_length, gen_length, temperature, "", mask_id)


def overwrites_the_prompt(model: Any, prompt: Tensor, steps: int, gen_length: int,
                          temperature: float, mask_id: int) -> Tensor:  # fmt: skip
    """Draws the whole sequence anew in the last pass."""
    x = llada()(model, prompt, None, steps, gen_length, gen_length, temperature, "", mask_id)
    blank = torch.full_like(x, mask_id)
    blank[:, 0] = x[:, 0]
    drawn = draw_exactly(model(blank).logits, temperature)
    return torch.where((torch.arange(x.shape[1]) > 0) & (x != drawn), drawn, x)


def hidden_passes(model: Any, prompt: Tensor, steps: int, gen_length: int, temperature: float,
                  mask_id: int) -> Tensor:  # fmt: skip
    """Asks twice a step."""

    def twice(x: Tensor) -> Tensor:
        model(x)
        answer: Tensor = model(x).logits
        return answer

    x = torch.cat([prompt, torch.full((len(prompt), gen_length), mask_id)], 1)
    return fill(twice, x, mask_id, steps, temperature)


def seeds_itself(model: Any, prompt: Tensor, steps: int, gen_length: int, temperature: float,
                 mask_id: int) -> Tensor:  # fmt: skip
    """Sets the global seed, and prints."""
    torch.manual_seed(0)
    print("used steps:", steps)
    return llada()(model, prompt, None, steps, gen_length, gen_length, temperature, "", mask_id)


def wrong_shape(model: Any, prompt: Tensor, steps: int, gen_length: int, temperature: float,
                mask_id: int) -> Tensor:  # fmt: skip
    """Gives back one token too few."""
    x = llada()(model, prompt, None, steps, gen_length, gen_length, temperature, "", mask_id)
    return x[:, 2:]


def never_ends(model: Any, prompt: Tensor, steps: int, gen_length: int) -> Tensor:
    """Waits for a sequence that is never complete."""
    while True:
        steps += 1


def miscounts(model: Any, prompt: Tensor, steps: int, gen_length: int, temperature: float,
              mask_id: int) -> tuple[Tensor, int]:  # fmt: skip
    """Says it made one pass fewer than it made."""
    x = llada()(model, prompt, None, steps, gen_length, gen_length, temperature, "", mask_id)
    return x, steps - 1


def warm_at_zero(model: Any, prompt: Tensor, steps: int, gen_length: int, temperature: float,
                 mask_id: int) -> Tensor:  # fmt: skip
    """A temperature of 0 is taken for none given."""
    warm = temperature or 1.0
    return llada()(model, prompt, None, steps, gen_length, gen_length, warm, "", mask_id)


# ---------------------------------------------------------------- in the style of Dream


def dream(shifted: bool = True, averaged: bool = False, score: Score = by_entropy) -> type:
    """A class to mix into a model, with its diffusion_generate."""

    class Mixin:
        def diffusion_generate(self: Any, inputs: Tensor, **kwargs: Any) -> SimpleNamespace:
            new, mask_id = kwargs["max_new_tokens"], self.config.mask_token_id
            x = torch.nn.functional.pad(inputs, (0, new), value=mask_id)
            mask: Any = kwargs.get("attention_mask")
            if mask is None:
                mask = "full"
            else:
                whole = torch.nn.functional.pad(mask, (0, new), value=1).bool()
                mask = whole[:, None, None, :] & whole[:, None, :, None]

            def answers(x: Tensor) -> Tensor:
                logits: Tensor = self(x, mask, None).logits
                return torch.cat([logits[:, :1], logits[:, :-1]], 1) if shifted else logits

            steps, temperature = kwargs["steps"], kwargs["temperature"]
            x = fill(answers, x, mask_id, steps, temperature, score, averaged=averaged)
            return SimpleNamespace(sequences=x)

    return Mixin


# ---------------------------------------------------------------- in the style of MDLM


def ancestral(model: Any, batch_size: int, length: int, num_steps: int) -> Tensor:
    """The reverse process: a mask is revealed with probability (t − s)/t, all in the last step."""
    x = torch.full((batch_size, length), model.mask_index)
    for step in range(num_steps):
        probs = model(x, torch.zeros(batch_size)).double().exp()
        leave = torch.rand(x.shape, dtype=torch.float64) < 1 / (num_steps - step)
        drawn = torch.multinomial(probs.flatten(0, 1), 1).view_as(x)
        x = torch.where((x == model.mask_index) & leave, drawn, x)
    return x


def one_at_a_time(model: Any, batch_size: int, length: int, num_steps: int) -> Tensor:
    """A random order, in equal steps."""
    x = torch.full((batch_size, length), model.mask_index)
    order = torch.rand(x.shape).argsort(1)
    for step in range(num_steps):
        probs = model(x, torch.zeros(batch_size)).double().exp()
        drawn = torch.multinomial(probs.flatten(0, 1), 1).view_as(x)
        chosen = order * num_steps // length == step
        x = torch.where(chosen, drawn, x)
    return x


def copies_its_neighbour(model: Any, batch_size: int, length: int, num_steps: int) -> Tensor:
    """In a batch every row gets the first row's first token."""
    x = one_at_a_time(model, batch_size, length, num_steps)
    x[1:, 0] = x[0, 0]
    return x


# ---------------------------------------------------------------- a plain function


def plain(denoise: Any, tokens: Tensor, mask_id: int, steps: int, temperature: float) -> Tensor:
    return fill(denoise, tokens, mask_id, steps, temperature)


def backwards(denoise: Any, tokens: Tensor, mask_id: int, steps: int, temperature: float) -> Tensor:
    return fill(denoise, tokens, mask_id, steps, temperature, entropy_backwards)


def remasking(denoise: Any, tokens: Tensor, mask_id: int, steps: int, temperature: float) -> Tensor:
    """Takes one token back half-way, and fills it in again."""
    first = fill(denoise, tokens, mask_id, max(1, steps // 2), temperature)
    if steps < 2:
        return first
    place = (tokens == mask_id).float().argmax(1, keepdim=True)
    again = torch.where(
        (tokens == mask_id).any(1, keepdim=True), first.scatter(1, place, mask_id), first
    )
    return fill(denoise, again, mask_id, 1, temperature)


def never_remasks(
    denoise: Any, tokens: Tensor, mask_id: int, steps: int, temperature: float
) -> Tensor:
    """Meant to take poor tokens back; its probability of it is always 0."""
    x = fill(denoise, tokens, mask_id, steps, temperature)
    back = torch.rand(x.shape) < 0.0
    return torch.where(back & (tokens == mask_id), mask_id, x)


class KeepsState:
    """Remembers its last result, and hands it out again."""

    last: Tensor | None = None

    def __call__(self, denoise: Any, tokens: Tensor, mask_id: int, steps: int) -> Tensor:
        found = fill(denoise, tokens, mask_id, steps, 1.0)
        old, self.last = self.last, found
        return found if old is None or old.shape != found.shape else old
