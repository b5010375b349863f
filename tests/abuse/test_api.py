"""The Python API in wrong hands: accepted sensibly, or one sentence."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from maskwalk import GRAPHS, WORLDS, Streams, decode
from maskwalk.errors import MaskwalkError
from maskwalk.samplers import Bisection
from maskwalk.worlds.world import build_world
from tests.abuse.own import without_type_checks

world: Any = build_world("walk(graph=st_er(nodes=6, p=0.3), law=lazy(), length=6, seed=0)")
o = world.oracle()
M = o.mask_id
T = torch.full((3, 6), M)


class Answer:
    """A denoiser that answers as it is told."""

    vocab_size = mask_id = 6
    score_grid = 1e-9

    def __init__(self, answer: Callable[[Tensor], Any]) -> None:
        self.answer = answer

    def __call__(self, tokens: Tensor, at: Tensor | None = None) -> Any:
        asked = int(((tokens == 6) if at is None else at).sum())
        return self.answer(torch.full((asked, 6), 1 / 6, dtype=torch.float64).log())


def run(
    sampler: Any = "bisection", denoiser: Any = o, tokens: Any = T, streams: Any = 7, **more: Any
) -> tuple[int, ...]:
    given = Streams(0, 3) if streams == 7 else streams
    return tuple(decode(sampler, denoiser, tokens, streams=given, **more).tokens.shape)


NAMES = {"run": run, "Answer": Answer, "world": world, "M": M, "T": T, "torch": torch, "np": np}
NAMES |= {"Streams": Streams, "Bisection": Bisection, "WORLDS": WORLDS, "GRAPHS": GRAPHS}
FINE = {
    "a spec": "run('bisection(order=2)')",
    "a name": "run('entropy')",
    "a preset": "run(draw='exact')",
    "a preset with its ties": "run('entropy', draw='as_published')",
    "a draw's spec": "run(draw='draw(top_p=0.9)')",
    "lists": "run(tokens=[[M] * 6] * 3)",
    "tuples": "run(tokens=((M,) * 6,) * 3)",
    "numpy": "run(tokens=T.numpy())",
    "int32": "run(tokens=T.to(torch.int32))",
    "numpy int16": "run(tokens=T.numpy().astype(np.int16))",
    "a numpy seed": "run(streams=Streams(np.int64(3), 3))",
    "a trace of one": "run(trace=1)",
    "a trace of more than there are": "run(trace=99)",
    "the largest seed": "run(streams=Streams(2**64 - 1, 3))",
    "an answer in float32": "run(denoiser=Answer(lambda flat: flat.float()))",
}
SENTENCES = {
    "a class": ("run(Bisection)", "give an instance of it, Bisection()"),
    "no sampler": ("run(None)", "A sampler, or a spec"),
    "a number for a sampler": ("run(3)", "A sampler, or a spec"),
    "an unknown sampler": ("run('bisectoin')", "Did you mean 'bisection'?"),
    "no denoiser": ("run(denoiser=None)", "None is no denoiser: it lacks"),
    "a denoiser's name": ("run(denoiser='oracle')", "'oracle' answers about a world, and none"),
    "floats": ("run(tokens=T.double())", "Tokens are whole numbers (torch.int64), not"),
    "booleans": ("run(tokens=T > 0)", "not torch.bool"),
    "one dimension": ("run(tokens=T[0])", "one sequence is tokens[None]"),
    "three dimensions": ("run(tokens=T[None])", "shape (batch, length), not (1, 3, 6)"),
    "nothing": ("run(tokens=T[:0], streams=Streams(0, 0))", "nothing to decode"),
    "text for tokens": ("run(tokens='abc')", "The tokens are a tensor (batch, length)"),
    "ragged lists": ("run(tokens=[[1, 2], [3]])", "no table of whole numbers"),
    "sparse tokens": ("run(tokens=T.to_sparse())", "The tokens are sparse (torch.sparse_coo)"),
    "tokens without values": ("run(tokens=T.to('meta'))", "The tokens are on no device (meta)"),
    "a number for on_round": ("run(on_round=3)", "on_round is a function (rows, tokens), or None"),
    "words": ("run(tokens=[['a']])", "no table of whole numbers"),
    "None for tokens": ("run(tokens=None)", "The tokens are a tensor"),
    "negative ids": ("run(tokens=T.where(T < 0, -1))", "Token -1 is not in the vocabulary"),
    "ids beyond": ("run(tokens=T.where(T < 0, 99))", "Token 99 is not in the vocabulary"),
    "another length": ("run(tokens=T[:, :4])", "4 positions but the world's sequences have 6"),
    "a seed of None": ("run(streams=Streams(None, 3))", "A seed is a whole number"),
    "a seed below 0": ("run(streams=Streams(-1, 3))", "A seed is a whole number from 0"),
    "a seed of 2^64": ("run(streams=Streams(2**64, 3))", "from 0 to 2^64 - 1"),
    "a seed of 1.5": ("run(streams=Streams(1.5, 3))", "not 1.5"),
    "a seed of text": ("run(streams=Streams('1', 3))", "not '1'"),
    "no streams": ("run(streams=None)", "streams is Streams(seed, ids)"),
    "a number for streams": ("run(streams=0)", "streams is Streams(seed, ids)"),
    "too few ids": ("run(streams=Streams(0, 2))", "3 sequences need as many stream ids"),
    "float ids": ("run(streams=Streams(0, torch.arange(3.0)))", "a tensor of whole numbers"),
    "listed ids": ("run(streams=Streams(0, [0, 1, 2]))", "a tensor of whole numbers"),
    "ids below 0": ("run(streams=Streams(0, torch.tensor([-1, 0, 1])))", "from 0 to 2^48"),
    "an unknown draw": ("run(draw='exactly')", "Unknown preset 'exactly'"),
    "a number for a draw": ("run(draw=3)", "draw is a Draw, a preset"),
    "unknown ties": ("run(ties='even')", "Unknown ties 'even'"),
    "a number for ties": ("run(ties=1)", "ties must be one of uniform, index"),
    "a trace of -1": ("run(trace=-1)", "how many sequences to follow, not -1"),
    "a trace of text": ("run(trace='all')", "how many sequences to follow"),
    "an answer of None": ("run(denoiser=Answer(lambda f: None))", "Answer answers with None"),
    "an answer of NaN": ("run(denoiser=Answer(lambda f: f * torch.nan))", "that are NaN"),
    "an answer of -inf": ("run(denoiser=Answer(lambda f: f - torch.inf))", "(all -inf)"),
    "too few rows": ("run(denoiser=Answer(lambda f: f[1:]))", "a table of shape (2, 6)"),
    "too few columns": ("run(denoiser=Answer(lambda f: f[:, 1:]))", "a table of shape (3, 5)"),
    "a graph seed of -1": ("GRAPHS.build('st_er(nodes=5, p=0.1)', seed=-1)", "from 0 to 2^64"),
    "a graph seed of 2^70": ("GRAPHS.build('st_er(nodes=5, p=0.1)', seed=2**70)", "from 0 to"),
    "reach beyond": ("world.reach(99)", "from 0 to 5, not 99"),
    "reach below": ("world.reach(-1)", "from 0 to 5, not -1"),
    "a spec of bytes": ("WORLDS.build(b'walk')", "A spec is a string"),
    "a sample of -1": ("world.sample(-1, 0)", "count must be a whole number"),
    "a sample of text": ("world.sample('8', 0)", "count must be a whole number"),
    "a sample of 10^12": ("world.sample(10**12, 0)", "count must be a whole number"),
    "a sample of 2^31": ("world.sample(2**31 - 1, 0)", "of memory; this machine has"),
    "a seed of sample": ("world.sample(2, -3)", "A seed is a whole number"),
}


@pytest.fixture(autouse=True)
def as_users_have_it() -> Iterator[None]:
    with without_type_checks():
        yield


@pytest.mark.parametrize("name", FINE)
def test_it_is_taken_for_what_is_meant(name: str) -> None:
    assert eval(FINE[name], dict(NAMES)) == (3, 6)


@pytest.mark.parametrize("name", SENTENCES)
def test_it_is_a_sentence(name: str) -> None:
    text, says = SENTENCES[name]
    with pytest.raises(MaskwalkError) as refused:
        eval(text, dict(NAMES))
    assert says in str(refused.value)
