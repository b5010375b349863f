"""Samplers, denoisers and worlds in any form: specs, objects, functions; mistakes are sentences."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import maskwalk
from maskwalk import MaskwalkError, Streams, as_denoiser, as_sampler, as_world
from maskwalk.bench.cell import Cell
from maskwalk.worlds.world import build_world
from tests.abuse.own import without_type_checks

SPEC = "walk(graph=st_er(nodes=12, p=0.2), length=5)"
ZOO = "zoo:st_er_p0"


@pytest.fixture
def world() -> Any:
    return as_world(SPEC)


@pytest.fixture
def blank(world: Any) -> torch.Tensor:
    return torch.full((4, 5), world.vocab_size)


# ---- specs wherever objects go


def test_every_function_takes_the_spec_of_a_sampler(world: Any, blank: torch.Tensor) -> None:
    oracle, rule = world.oracle(), as_sampler("random(block=2)")
    small = as_denoiser("oracle", world="walk(graph=st_er(nodes=4, p=0.3), length=4)")
    canvas = torch.full((4,), small.mask_id)
    by_name = maskwalk.sampler_law("bisection", small, canvas)
    by_object = maskwalk.sampler_law(as_sampler("bisection"), small, canvas)
    assert maskwalk.total_variation(by_name, by_object) == 0.0
    assert maskwalk.broken_checks("random(block=2)") == maskwalk.broken_checks(rule) == {}
    sequences, streams = world.sample(4, 0), Streams(0, 4)
    given = maskwalk.replay(rule, oracle, sequences, streams=streams, world=world)
    named = maskwalk.replay("random(block=2)", "oracle", sequences, streams=streams, world=SPEC)
    assert torch.equal(given.log_prob, named.log_prob)
    rows = [
        maskwalk.diagnose(SPEC, "oracle", "random(block=2)", sequences),
        maskwalk.diagnose(world, oracle, rule, sequences),
    ]
    assert rows[0]["nll"] == rows[1]["nll"]


def test_decode_takes_the_name_of_a_model() -> None:
    denoiser = maskwalk.from_pretrained(ZOO)
    tokens = torch.full((2, 6), denoiser.mask_id)
    named = maskwalk.decode("random(block=3)", ZOO, tokens, seed=1)
    given = maskwalk.decode("random(block=3)", denoiser, tokens, seed=1)
    assert torch.equal(named.tokens, given.tokens)


def test_worlds_by_their_specs(world: Any) -> None:
    tokens = torch.full((1, 5), world.vocab_size)
    for oracle in (maskwalk.oracle_for(SPEC), as_denoiser("oracle", world=SPEC)):
        assert torch.equal(oracle(tokens), maskwalk.oracle_for(world)(tokens))
    assert maskwalk.broken_world("dyck(length=6)") == {}
    assert maskwalk.broken_denoiser(ZOO, torch.zeros((2, 6), dtype=torch.int64)) == {}
    prompts = maskwalk.TASKS.build("endpoints", world=world, prompts=4, seed=0)
    one, other = (maskwalk.exact_sequences(w, prompts)[0] for w in (SPEC, world))
    assert torch.equal(one, other)


def two(tokens: Any, at: Any) -> Any:
    """A function of the form that a denoiser has."""
    return torch.full((int(at.sum()), 12), 1 / 12, dtype=torch.float64).log()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda o, t: maskwalk.sampler_law("bisektion", o, t[0]), "Did you mean 'bisection'?"),
        (lambda o, t: maskwalk.sampler_law("remdm", o, t[0]), "its law cannot be listed"),
        (lambda o, t: maskwalk.sampler_law(5, o, t[0]), "A sampler, or a spec such as"),
        (lambda o, t: maskwalk.broken_checks("bisektion"), "Did you mean 'bisection'?"),
        (lambda o, t: maskwalk.broken_checks(5), "A sampler, or a spec such as"),
        (lambda o, t: maskwalk.generate("bisection"), "A model of text: a LanguageModel"),
        (lambda o, t: maskwalk.generate(ZOO), "A model of text: a LanguageModel"),
        (lambda o, t: maskwalk.oracle_for("valk(length=3)"), "Unknown world 'valk'"),
        (lambda o, t: maskwalk.oracle_for("dyck(length=6)"), "is no law of walks"),
        (lambda o, t: maskwalk.oracle_for(5), "world is a World, or a spec such as"),
        (lambda o, t: maskwalk.total_variation("x", "y"), "A law is (sequences, probabilities)"),
        (lambda o, t: maskwalk.decode("random", "oracle", t, seed=0), "as_denoiser('oracle', wor"),
        (lambda o, t: maskwalk.decode("random", "orakel", t, seed=0), "There is no denoiser 'ora"),
        (lambda o, t: maskwalk.decode("random", "zoo:no", t, seed=0), "Unknown zoo model 'no'"),
        (lambda o, t: maskwalk.decode("random", 5, t, seed=0), "Give an object that has them"),
        (lambda o, t: maskwalk.decode("random", two, t, seed=0), "as_denoiser(two, world=…)"),
        (lambda o, t: maskwalk.decode("random", maskwalk.Masked, t, seed=0), "Masked is a class"),
        (lambda o, t: as_denoiser(lambda: o, world=SPEC), "give what it makes"),
        (lambda o, t: maskwalk.load("zoo:st_er_deg7"), "from_pretrained('zoo:st_er_deg7')"),
        (lambda o, t: maskwalk.load("zoo:books_mdm"), "load_books('zoo:books_mdm')"),
        (lambda o, t: maskwalk.broken_world("valk"), "Unknown world 'valk'"),
        (lambda o, t: maskwalk.run(denoiser=two, count=2), "a table of shape"),
        (lambda o, t: maskwalk.run(denoiser=maskwalk.load), "give what it makes"),
        (lambda o, t: maskwalk.run(world=maskwalk.World), "World is a class"),
        (lambda o, t: maskwalk.run(world=SPEC, denoiser=ZOO), "was trained in the world"),
    ],
)
def test_a_mistake_is_a_sentence(call: Any, says: str, world: Any, blank: torch.Tensor) -> None:
    with without_type_checks(), pytest.raises(MaskwalkError, match=re.escape(says)):
        call(world.oracle(), blank)


# ---- objects in a run, and what a record calls them


def test_objects_that_a_spec_made_are_named_by_it(world: Any) -> None:
    plain = maskwalk.run("random(block=2)", world=SPEC, count=8)
    for settings in (
        {"world": world},
        {"world": maskwalk.WORLDS.build(SPEC), "denoiser": world.oracle()},
        {"denoiser": world.oracle()},
    ):
        given = maskwalk.run("random(block=2)", count=8, **settings)
        assert given.record["key"] == plain.record["key"]
        assert given.record["notes"] == plain.record["notes"]
        assert torch.equal(given.tokens, plain.tokens)
    model = maskwalk.run("random(block=8)", denoiser=maskwalk.from_pretrained(ZOO), count=2)
    assert model.record["denoiser"] == ZOO


def test_a_model_that_was_changed_is_not_called_by_the_name_it_was_loaded_by() -> None:
    model = maskwalk.from_pretrained(ZOO)
    model._singles.mul_(1.01)
    model._settle()
    world = maskwalk.run("random(block=8)", denoiser=ZOO, count=2).record["world"]
    changed = maskwalk.run("random(block=8)", denoiser=model, world=world, count=2)
    assert changed.record["denoiser"].startswith("object(kind='NetworkDenoiser', answers='")
    assert any("given as an object (NetworkD" in note for note in changed.record["notes"])


class Blurred:
    """The oracle mixed with the uniform law."""

    score_grid = 1e-9

    def __init__(self, world: Any, blur: float) -> None:
        self.oracle, self.blur, self.asked = world.oracle(), blur, 0
        self.vocab_size = self.mask_id = world.vocab_size

    def __call__(self, tokens: Any, at: Any = None) -> Any:
        self.asked += 1
        probs = self.oracle(tokens, at).exp()
        return ((1 - self.blur) * probs + self.blur / self.vocab_size).log()


def test_a_denoiser_object_is_named_by_its_class_and_its_answers(world: Any) -> None:
    settings: dict[str, Any] = {"world": SPEC, "count": 64}
    first, second = Blurred(world, 0.5), Blurred(world, 0.1)
    runs = maskwalk.run(
        [{"sampler": "random", "denoiser": one} for one in (first, second)], **settings
    )
    names = [run.record["denoiser"] for run in runs]
    assert all(name.startswith("object(kind='Blurred', answers='") for name in names)
    assert names[0] != names[1] and runs[0].coherence < runs[1].coherence
    assert "test_resolution.py" in runs[0].record["sources"]
    again = Blurred(world, 0.5)
    same = maskwalk.run("random", denoiser=again, **settings)
    assert same.record["key"] == runs[0].record["key"] and again.asked > 5
    by_hand = Cell.checked(task="unconditional", sampler="random", denoiser=names[0], **settings)
    assert by_hand.key == same.record["key"]
    del first, second, again, runs, same
    with pytest.raises(MaskwalkError, match="another Python process, or is gone"):
        maskwalk.run("random", denoiser=names[0], **settings)


def test_a_function_is_a_denoiser_of_a_world(world: Any) -> None:
    oracle = world.oracle()

    def exact(tokens: Any, at: Any) -> Any:
        return oracle(tokens, at)

    given = maskwalk.run("random(block=2)", world=SPEC, denoiser=exact, count=8)
    plain = maskwalk.run("random(block=2)", world=SPEC, count=8)
    assert torch.equal(given.tokens, plain.tokens)
    assert given.record["denoiser"].startswith("object(kind='exact', answers='")
    assert given.record["key"] != plain.record["key"]


class Coins:
    """Fair coins; with `lucky`, the first is always 1."""

    vocab_size, length = 2, 4

    def __init__(self, lucky: bool = False) -> None:
        self.lucky = lucky

    def sample(self, count: int, seed: int, first: int = 0) -> Any:
        numbers = torch.arange(first, first + count)[:, None] + seed
        tokens = (numbers >> torch.arange(4)) & 1
        tokens[:, 0] |= int(self.lucky)
        return tokens

    def valid(self, tokens: Any) -> Any:
        return (tokens > 0) | (torch.arange(4) > 0) | (not self.lucky)

    def log_prob(self, tokens: Any) -> Any:
        return None

    def oracle(self) -> Any:
        return as_denoiser(lambda t, at: two(t, at)[:, :2] * 0 + 0.5**0.5, world=self)

    def show(self, tokens: Any) -> str:
        return "".join(map(str, tokens.tolist()))


def halves(tokens: Any, at: Any) -> Any:
    return torch.full((int(at.sum()), 2), 0.5, dtype=torch.float64).log()


def test_a_world_object_is_named_by_its_class_and_its_answers() -> None:
    runs = [
        maskwalk.run("random", world=Coins(lucky), denoiser=halves, count=64)
        for lucky in (False, True)
    ]
    assert runs[0].coherence == 1.0 and 0.2 < float(runs[1].coherence) < 0.8
    names = [run.record["world"] for run in runs]
    assert all(name.startswith("object(kind='Coins', answers='") for name in names)
    assert names[0] != names[1] and len(runs[0].record["notes"]) == 2
    assert isinstance(runs[1].world, Coins) and "test_resolution.py" in runs[1].record["sources"]
    assert build_world(names[1]) is runs[1].world  # as long as somebody holds it
    assert "object" not in set(maskwalk.WORLDS) | set(maskwalk.DENOISERS)


def test_a_graph_in_a_file_says_how_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "edges.txt"
    file.write_text("0 1")
    with pytest.raises(MaskwalkError, match=r"is a file; a graph from a file is written file\(pa"):
        maskwalk.run(graph=str(file))
