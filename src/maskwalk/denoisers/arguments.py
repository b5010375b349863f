"""What a public function is given as a denoiser: an object, a name, a function; or a sentence."""

import inspect
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from maskwalk.denoiser import Denoiser, masked_positions
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.denoisers.resolve import (
    DENOISERS,
    build_denoiser,
    check_name,
    is_trained,
    trained_denoiser,
)
from maskwalk.errors import MaskwalkError, lacking, misbehaved, shown
from maskwalk.worlds.objects import OBJECT, digest, name_object, object_named
from maskwalk.worlds.world import World, as_world

ASKED = 4  # sequences whose answers tell denoisers apart


class FunctionDenoiser:
    """A function (tokens, at) -> log-marginals as a denoiser of a world, whose tokens it knows."""

    score_grid = 1e-9

    def __init__(self, function: Any, world: World) -> None:
        self.function = function
        self.vocab_size = self.mask_id = world.vocab_size

    def __repr__(self) -> str:
        return f"<FunctionDenoiser {getattr(self.function, '__name__', 'function')}>"

    def __call__(
        self, tokens: Int[Tensor, "batch length"], at: Bool[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "rows vocab"]:
        """What the function answers about the places in `at` (all masked if None)."""
        answer: Tensor = self.function(tokens, masked_positions(tokens, self.mask_id, at))
        return answer


def as_denoiser(given: Any, world: Any = None, device: str = "cpu") -> Denoiser:
    """A denoiser as it is, or the one a name stands for; anything else is a sentence.

    A name is "zoo:NAME", a trained directory, "hf:NAME", FILE.py:function, or, with a `world` (or a
    spec of one), "oracle" or another of `DENOISERS`. A language model is its denoiser. With a world
    a function (tokens, at) is one, too: it gives a row of log-probabilities for every place in
    `at`.
    """
    place = None if world is None else as_world(world)
    if isinstance(given, str):
        return _named(given, place, device)
    if inspect.isclass(given):
        raise MaskwalkError(
            f"{given.__name__} is a class; give an instance of it, {given.__name__}(…)."
        )
    lacks = lacking(given, Denoiser)
    if callable(given) and not lacks:
        denoiser: Denoiser = given
        check_numbers_of(denoiser)
        return denoiser
    if isinstance(given, LanguageModel):
        return given.denoiser
    if inspect.isroutine(given):
        return _of_function(given, place)
    raise MaskwalkError(
        f"{shown(given)} is no denoiser: it lacks {', '.join(lacks) or 'a __call__'}. Give an "
        "object that has them, or a name such as 'zoo:st_er_deg7'."
    )


def check_numbers_of(denoiser: Any) -> None:
    """What a denoiser says of itself in numbers, or a sentence that names it."""
    grid, passes = denoiser.score_grid, getattr(denoiser, "passes", 1)
    if not isinstance(grid, int | float) or not 0 < grid < torch.inf:
        raise misbehaved(
            denoiser,
            f"has score_grid {shown(grid)}; it is the spacing to which scores are rounded, a "
            "number above 0 such as 1e-9.",
        )
    if isinstance(passes, bool) or not isinstance(passes, int) or passes < 1:
        raise misbehaved(
            denoiser,
            f"has passes {shown(passes)}; it is how often it reads a sequence for an answer, a "
            "whole number of at least 1.",
        )


def _named(name: str, world: World | None, device: str) -> Denoiser:
    """The denoiser of a name; one of `DENOISERS` needs a world."""
    from maskwalk.denoisers.language.source import is_text_model, text_model

    if not is_trained(name) and is_text_model(name):
        return text_model(name, device=device).denoiser
    if world is not None:
        return build_denoiser(name, world, device)
    if is_trained(name):
        return trained_denoiser(name, device)
    check_name(name)
    raise MaskwalkError(
        f"{name!r} answers about a world, and none is known here. Make it with its world first: "
        f"maskwalk.as_denoiser({name!r}, world='walk(length=12)')."
    )


def _of_function(function: Any, world: World | None) -> Denoiser:
    """A function of (tokens, at), in a world that says which tokens there are."""
    name = getattr(function, "__name__", "It")
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):
        raise MaskwalkError(
            f"{name} is a function that does not take (tokens, at), so it is no denoiser; if it "
            f"makes one, give what it makes: {name}()."
        ) from None
    if world is None:
        raise MaskwalkError(
            f"{name} is a function, which does not say its tokens and its mask: give it with a "
            f"world, maskwalk.as_denoiser({name}, world=…), or as an object with vocab_size, "
            "mask_id and score_grid."
        )
    return FunctionDenoiser(function, world)


@DENOISERS.register(OBJECT, hidden=True)
def _given(kind: str, answers: str, world: World) -> Denoiser:
    """A denoiser that was given as an object."""
    denoiser: Denoiser = object_named(kind, answers)
    return _fitting(denoiser, kind, world)


def _fitting(denoiser: Denoiser, kind: str, world: World) -> Denoiser:
    if denoiser.vocab_size != world.vocab_size:
        raise MaskwalkError(
            f"{kind} knows {denoiser.vocab_size} tokens; the world has {world.vocab_size}. Say "
            "which world it knows: world=…."
        )
    return denoiser


def source_of(given: Any) -> str | None:
    """The name of a trained model that an object was loaded from, if it still answers alike."""
    name: str | None = getattr(given, "source", None)
    if name is None or not is_trained(name):
        return None
    tokens = torch.full((1, given.config.length), given.mask_id)
    fresh = trained_denoiser(name, str(given.device))
    same = torch.equal(given(tokens.to(given.device)), fresh(tokens.to(given.device)))
    return name if same else None


def denoiser_name(denoiser: Denoiser, world: World, device: str = "cpu") -> str:
    """What a record calls an object: oracle, if it is that, or by its class and its answers."""
    _fitting(denoiser, type(denoiser).__name__, world)
    answers = _answers(denoiser, world, device)
    if hasattr(denoiser, "law"):
        truth = world.oracle()
        if type(truth) is type(denoiser) and _answers(truth, world, device) == answers:
            return "oracle"
    return name_object(denoiser, answers)


def _answers(denoiser: Denoiser, world: World, device: str) -> str:
    """What tells denoisers apart: what they say of a few sequences, more and more of them shown."""
    tokens = world.sample(ASKED, 0)
    shares = torch.arange(ASKED)[:, None] / ASKED
    hidden = (torch.arange(world.length) * 0.618) % 1 >= shares
    tokens = torch.where(hidden, denoiser.mask_id, tokens).to(device)
    told = [denoiser.vocab_size, denoiser.mask_id, denoiser.score_grid]
    return digest([type(denoiser).__qualname__, *told, *(denoiser(row[None]) for row in tokens)])
