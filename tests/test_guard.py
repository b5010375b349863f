"""Tokens are drawn from what the denoiser answered, whatever a policy does to what it is shown."""

from pathlib import Path

import pytest
import torch

from maskwalk.analysis.contract.redraw import chooses_blindly, redrawn_share
from maskwalk.bench.verdict.outcomes import traced_outcome
from maskwalk.bench.verdict.run import _draws_as_told
from maskwalk.bench.verdict.suite import Scene
from maskwalk.decoding.canvas import Canvas, RoundStreams
from maskwalk.decoding.decode import decode
from maskwalk.decoding.guard import believed_kind, is_foreign
from maskwalk.decoding.policy import Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.errors import MaskwalkError, UserCodeError
from maskwalk.samplers import SAMPLERS
from maskwalk.samplers.blocks import Blocks
from tests.conftest import STANDS
from tests.mutants import cheats

LAW = STANDS["chain"]
ORACLE = LAW.oracle()
EMPTY = torch.full((24, LAW.length), ORACLE.mask_id)
MODEL = Scene("tree", "st_er_p0", "unconditional", True, 6, ("left_to_right",), 4)
CROWD = Scene("degree 7", "st_er_deg7", "endpoints", False, 48, ("left_to_right",), 4)


class Halves(Sampler):
    """Asks for the even rows, then for the odd ones."""

    def step(self, canvas: Canvas, denoise: Denoiser, rng: RoundStreams) -> Canvas:
        for odd in (0, 1):
            turn = (torch.arange(len(canvas.tokens)) % 2 == odd)[:, None]
            at = turn & canvas.masked & (canvas.masked.cumsum(1) == 1)
            canvas = canvas.reveal(at, rng.draw(denoise(canvas.tokens, at), at))
        return canvas


@pytest.mark.parametrize("inside", [False, True])
def test_a_policy_that_changes_the_marginals_is_refused(inside: bool) -> None:
    cheat = cheats.SharpensUnseen()
    with pytest.raises(UserCodeError, match=r"changed the marginals that it was shown, in round 0"):
        decode(Blocks(2, cheat) if inside else cheat, ORACLE, EMPTY, seed=1)


def test_a_rule_of_the_package_is_watched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is shown the table itself, which counts what is written to it."""
    assert is_foreign(cheats.SharpensUnseen()) and not is_foreign(SAMPLERS.build("bisection"))
    monkeypatch.setattr("maskwalk.decoding.policy.is_foreign", lambda sampler: False)
    with pytest.raises(UserCodeError, match="changed the marginals"):
        decode(cheats.SharpensUnseen(), ORACLE, EMPTY, seed=1)


@pytest.mark.parametrize("cheat", [cheats.SharpensData(), cheats.SharpensNumpy()])
def test_what_goes_around_the_count_changes_a_copy(cheat: Sampler) -> None:
    assert redrawn_share(cheat, ORACLE, EMPTY, seed=3) == 1.0
    assert redrawn_share(Blocks(2, cheat), ORACLE, EMPTY, seed=3) == 1.0


@pytest.mark.parametrize(
    ("cheat", "what"), [(cheats.Writes(), "view.tokens"), (cheats.Greedy(), "rng.drawing")]
)
def test_the_canvas_and_the_draw_are_not_a_policys_to_change(cheat: Sampler, what: str) -> None:
    with pytest.raises(UserCodeError, match=f"changed {what} that it was shown"):
        decode(cheat, ORACLE, EMPTY, seed=1)


def test_the_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from maskwalk import SAMPLERS, UnmaskingPolicy\n\n\n"
        "@SAMPLERS.register('halves')\n"
        "class Halves(UnmaskingPolicy):\n"
        "    def choose(self, view, state, rng):\n"
        "        view.log_marginals.mul_(0.5)\n"
        "        return view.masked, state\n"
    )
    from maskwalk.bench.verdict.policy import candidate

    (sampler,) = candidate(f"{file}:Halves").settings.values()
    with pytest.raises(MaskwalkError, match=r"Halves in .*mine\.py changed the marginals"):
        decode(sampler, ORACLE, EMPTY, seed=1)


@pytest.mark.parametrize(
    ("cheat", "scene"), [(cheats.SharpensModels(), MODEL), (cheats.SharpensCrowds(), CROWD)]
)
def test_a_cheat_that_waits_is_refused_in_the_run_that_is_scored(
    cheat: Sampler, scene: Scene
) -> None:
    assert redrawn_share(cheat, ORACLE, EMPTY, seed=3) == 1.0  # nothing to be seen on a small law
    with pytest.raises(UserCodeError, match="changed the marginals"):
        traced_outcome(scene.cell(), cheat)


@pytest.mark.parametrize(
    ("cheat", "scene"), [(cheats.ReachesModels(), MODEL), (cheats.ReachesCrowds(), CROWD)]
)
def test_the_run_that_is_scored_is_drawn_again(cheat: Sampler, scene: Scene) -> None:
    """Models included, and in the batch it was run in."""
    assert redrawn_share(cheat, ORACLE, EMPTY, seed=3) == 1.0
    cell = scene.cell()
    assert not _draws_as_told(cell, cheat, traced_outcome(cell, cheat)[1])


@pytest.mark.parametrize("cheat", [cheats.Hidden(), cheats.Forgets()])
def test_calls_past_the_count_are_seen(cheat: Sampler) -> None:
    """Wherever a cell is run, and not by the contract alone, whose canvases are short."""
    for scene in (MODEL, CROWD):
        with pytest.raises(UserCodeError, match=r"had the denoiser read .* calls were counted"):
            traced_outcome(scene.cell(), cheat)


def test_another_meter_agrees_with_honest_ones() -> None:
    for rule in (cheats.Sharpens(), Halves()):  # foreign, whatever else they are
        traced_outcome(MODEL.cell(), rule)


@pytest.mark.parametrize("cheat", [cheats.PeeksLater(), cheats.Recomputes(), cheats.DrawsTwice()])
def test_a_look_at_tokens_to_come_is_seen_in_every_round(cheat: Sampler) -> None:
    assert not chooses_blindly(cheat, ORACLE, EMPTY, seed=3)
    cell = CROWD.cell()
    assert not _draws_as_told(cell, cheat, traced_outcome(cell, cheat)[1])


def test_a_class_from_elsewhere_is_not_exact_because_it_says_so() -> None:
    assert believed_kind(cheats.SharpensALittle()) == "shaped"
    assert believed_kind(Blocks(2, cheats.SharpensUnseen())) == "factorised"
    assert believed_kind(SAMPLERS.build("speculative(k=2)")) == "exact"
    record = traced_outcome(MODEL.cell(), cheats.SharpensALittle())[0].record
    assert record["kind"] == "shaped"


def test_a_class_is_the_packages_if_the_package_has_it() -> None:
    """Whatever module it names as its own."""
    assert is_foreign(cheats.Pretends()) and believed_kind(cheats.Pretends()) == "shaped"
    assert not [name for name in SAMPLERS if is_foreign(SAMPLERS.build(name))]


def test_a_law_that_nobody_knows_is_a_sentence() -> None:
    with pytest.raises(UserCodeError, match="has law_kind = 'wonderful'; a law is 'exact', "):
        traced_outcome(MODEL.cell(), cheats.SaysWonderful())


@pytest.mark.parametrize("scene", [MODEL, CROWD])
def test_an_honest_run_is_believed(scene: Scene) -> None:
    cell, rule = scene.cell(), SAMPLERS.build("entropy(block=2)")
    assert _draws_as_told(cell, rule, traced_outcome(cell, rule)[1])
