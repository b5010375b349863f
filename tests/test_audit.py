"""The audit names every bug of tests/mutants/foreign.py by its check, and passes the right ones.

Each statistical check fails a right decoder with probability 1e-6, and there are fewer than ten, so
one without faults has a finding with probability below 1e-4; the seeds are fixed besides.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from maskwalk import MaskwalkError, audit
from maskwalk.report.audit import audit_page
from maskwalk.testing.audit import CHECKS
from maskwalk.testing.draws import distances
from maskwalk.testing.laws import certain, fans, ladder
from maskwalk.testing.order import rankings
from maskwalk.testing.rows import two_samples
from tests.mutants import foreign

FUNCTION, DREAM, MDLM = {"like": "function"}, {"like": "dream"}, {"like": "mdlm"}
RIGHT: dict[str, tuple[Any, dict[str, Any]]] = {
    "llada": (foreign.llada(), {}),
    "dream": (foreign.dream(), DREAM | {"ranks": "entropy"}),
    "mdlm": (foreign.one_at_a_time, MDLM),
    "function": (foreign.plain, FUNCTION | {"ranks": "confidence"}),
}
# bug: (decoder, how it is called, the check that names it, what that says)
WRONG: dict[str, tuple[Any, dict[str, Any], str, str]] = {
    "entropy the wrong way round": (
        foreign.backwards, FUNCTION | {"ranks": "entropy"}, "confidence", "the wrong way round",
    ),
    "confidence, not entropy": (
        foreign.plain, FUNCTION | {"ranks": "entropy"}, "confidence", "it fits confidence",
    ),
    "cumulative maximum over the batch": (
        foreign.llada(foreign.cumulative_over_the_batch), {}, "batch", "another order than alone",
    ),
    "counts averaged over the batch": (
        foreign.dream(averaged=True), DREAM, "uneven_rows", "comes back with 2 masks",
    ),
    "scores that change with the batch": (
        foreign.llada(foreign.standardised_over_the_batch), {}, "batch", "another order than alone",
    ),
    "never remasks": (
        foreign.never_remasks, FUNCTION | {"remasks": True}, "remasks", "takes no token",
    ),
    "remasks in secret": (foreign.remasking, FUNCTION, "remasks", "without saying so"),
    "one sequence only": (foreign.one_sequence_only, {}, "batch", "failed with RuntimeError"),
    "noise in the confidence": (
        foreign.llada(foreign.with_gumbel_noise), {}, "noise", "is in the scores",
    ),
    "overwrites the prompt": (foreign.overwrites_the_prompt, {}, "given_tokens", "overwritten"),
    "pads leak": (foreign.pads_leak, {}, "padding", "6 pads as if they were text"),
    "logits one off": (foreign.dream(shifted=False), DREAM, "alignment", "one 1 to the right"),
    "draws in eight bits": (
        foreign.llada(draw=foreign.draw_in_eight_bits), {}, "precision", "numbers are bfloat16",
    ),
    "hidden passes": (foreign.hidden_passes, {}, "calls", "10 at steps=5, 4 at steps=2"),
    "miscounts its passes": (foreign.miscounts, {}, "calls", "says 4 at steps=5"),
    "seeds itself": (foreign.seeds_itself, {}, "manners", "sets the seed of torch itself"),
    "prints": (foreign.seeds_itself, {}, "manners", "prints ('used steps: 5"),
    "gives back another shape": (foreign.wrong_shape, {}, "runs", "shape (1, 4) for 1 sequences"),
    "never ends": (foreign.never_ends, {"timeout": 0.3}, "runs", "took longer than 0.3 s"),
    "warm at temperature 0": (foreign.warm_at_zero, {}, "temperature_0", "are not the likeliest"),
    "rows that copy each other": (foreign.copies_its_neighbour, MDLM, "batch", "Neighbours"),
    "many tokens per step": (foreign.ancestral, MDLM, "law", "does not reveal one token per step"),
    "keeps state": (foreign.KeepsState(), FUNCTION, "repeats", "keeps something between calls"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_decoder_passes(name: str) -> None:
    decoder, how = RIGHT[name]
    found = audit(decoder, **how)
    assert found.passed, str(found)
    assert [one.check for one in found.results] == [*CHECKS, "curve"]
    one_a_step, *_, all_at_once = found.curve
    assert one_a_step.coherence == 1.0 and all_at_once.coherence < 0.6
    assert one_a_step.kl < 2 * found.floor["kl"] < all_at_once.kl


@pytest.mark.parametrize("name", WRONG)
def test_a_bug_is_named(name: str) -> None:
    decoder, how, check, says = WRONG[name]
    found = audit(decoder, only=[check], **how)
    assert not found.passed and found[check].status == "finding", str(found)
    assert says in found[check].says


def test_an_order_the_wrong_way_round_is_not_noise() -> None:
    """One bug, one finding: at temperature 1 the order is as wrong as at 0, and no more."""
    checks = ["confidence", "noise"]
    found = audit(foreign.backwards, only=checks, like="function", ranks="entropy")
    assert [found[check].status for check in checks] == ["finding", "passes"]


def test_a_remasking_decoder_that_says_so_passes() -> None:
    some = ["runs", "given_tokens", "calls", "remasks"]
    found = audit(foreign.remasking, "function", remasks=True, only=some)
    assert found.passed and "tokens back" in found["remasks"].says, str(found)


def test_every_check_has_a_bug_that_it_names() -> None:
    """Ties are noted, not found: which position is first among equals is a choice."""
    assert set(CHECKS) - {check for _, _, check, _ in WRONG.values()} == {"ties"}


def test_what_cannot_be_checked_says_why() -> None:
    found = audit(foreign.one_at_a_time, "mdlm", only=["given_tokens", "temperature_0", "noise"])
    assert {one.status for one in found.results} == {"not applicable"} and found.passed
    assert found["temperature_0"].says == "It takes no temperature."
    crashed = audit(lambda model, prompt: 1 / 0, "llada", only=["law"])
    assert crashed["runs"].status == "finding" and "ZeroDivisionError" in crashed["runs"].says
    assert crashed["law"].says == "It does not get through one sequence."


def test_ties_are_noted() -> None:
    found = audit(foreign.llada(), only=["ties"])
    assert found["ties"].status == "noted" and "to position 0" in found["ties"].says


def test_draw_first_bends_the_law_though_every_token_is_drawn_rightly() -> None:
    """LLaDA's own rule: draw everywhere, keep the likeliest draw."""

    def generate(denoise: Any, tokens: Tensor, mask_id: int, steps: int) -> Tensor:
        for _ in range(steps):
            logits, masked = denoise(tokens), tokens == mask_id
            drawn = foreign.draw_exactly(logits, 1.0)
            sure = logits.gather(-1, drawn[..., None])[..., 0].masked_fill(~masked, -torch.inf)
            best = torch.zeros_like(masked).scatter(1, sure.argmax(1, keepdim=True), True)
            tokens = torch.where(best & masked, drawn, tokens)
        return tokens

    found = audit(generate, "function", only=["runs", "law", "precision"])
    assert [one.status for one in found.results if one.check != "runs"] == ["finding", "passes"]
    assert "reveals one token per step" in found["law"].says


def test_the_process_is_left_as_it_was() -> None:
    def untidy(denoise: Any, tokens: Tensor, mask_id: int, steps: int) -> Tensor:
        tokens[:, 0] = 0
        torch.set_default_dtype(torch.float64)
        torch.manual_seed(3)
        return torch.zeros_like(tokens)

    torch.manual_seed(17)
    before = torch.get_rng_state()
    found = audit(untidy, "function", only=["manners"])
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_default_dtype() == torch.float32
    assert "torch's default dtype" in found["manners"].says
    assert "the prompt it was given" in found["manners"].says


# ------------------------------------------------------------------------------- what it stands on


def test_the_laws_tell_what_they_are_made_for() -> None:
    orders = rankings(ladder())
    assert len({tuple(order) for order in orders.values()}) == len(orders) == 8
    assert orders["confidence"] == [2, 0, 1, 4, 3] and orders["margin"] == [0, 4, 3, 2, 1]
    assert rankings(fans())["confidence"] == rankings(fans())["entropy"] == [3, 1, 4, 0, 2]
    assert certain().log_probs.exp().argmax(-1).tolist() == [1, 2, 3, 4, 5]


def test_two_samples_of_one_law_are_not_told_apart_and_of_two_laws_are() -> None:
    rng = np.random.Generator(np.random.Philox(5))
    one, other = (torch.from_numpy(rng.integers(0, 3, (400, 2))) for _ in range(2))
    p, statistic, freedom = two_samples(one, other)
    assert p > 0.01 and freedom == 8 and statistic < 30
    assert two_samples(one, torch.from_numpy(rng.integers(0, 2, (400, 2))))[0] < 1e-12
    # By hand: 30 of 40 against 10 of 40 is (30 − 20)²/20 · 4 = 20 on 1.
    first = torch.tensor([[0]] * 30 + [[1]] * 10)
    assert two_samples(first, 1 - first)[1:] == (20.0, 1)


def test_distances_by_hand() -> None:
    sequences, probs = torch.tensor([[0], [1]]), torch.tensor([0.75, 0.25], dtype=torch.float64)
    kl, tv = distances(torch.tensor([[0]] * 2 + [[1]] + [[2]]), sequences, probs)
    # Shares ½, ¼ and ¼ outside; smoothed 2.5/5 and 1.5/5.
    assert tv == pytest.approx(0.25)
    assert kl == pytest.approx(0.75 * np.log(0.75 / 0.5) + 0.25 * np.log(0.25 / 0.3))


# ------------------------------------------------------------------------------- command and page

DECODERS = "from tests.mutants.foreign import *\nright, wrong = llada(), llada(with_gumbel_noise)\n"


def test_command(cli: Any, tmp_path: Path) -> None:
    """Exit codes, JSON, 80 columns, and a page that asks the network for nothing."""
    file, page = tmp_path / "mine.py", tmp_path / "audit.html"
    file.write_text(DECODERS)
    some = ("--only", "noise", "--only", "calls")
    code, out, err = cli("audit", f"{file}:right", *some, "--option", "block_length=5")
    assert code == 0 and "no findings; 2 passes" in " ".join(out.split()), err
    code, out, _ = cli("audit", f"{file}:wrong", *some, "--only", "curve", "--out", str(page))
    assert code == 1 and "finding" in out and "KL, nats" in out
    text = page.read_text("utf-8")
    assert "is in the scores" in text and "<svg" in text
    assert not re.search(r"(?:src|href)=\"(?!data:)", text)
    code, out, _ = cli("audit", f"{file}:wrong", *some, "--json")
    found = json.loads(out)
    assert code == 1 and found["format"] == "maskwalk-audit/1" and found["passed"] is False
    assert {one["check"]: one["status"] for one in found["results"]} == {
        "calls": "passes",
        "noise": "finding",
    }


def test_a_page_escapes_what_the_decoder_says() -> None:
    def generate(model: Any, prompt: Tensor) -> Tensor:
        raise ValueError("<script>alert(1)</script>")

    text = audit_page(audit(generate, only=["runs"]))
    assert "&lt;script&gt;" in text and "<script>" not in text


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"like": "bert"}, "Unknown like 'bert'"),
        ({"only": ["laws"]}, "Did you mean 'law'"),
        ({"ranks": "luck"}, "Unknown ranks 'luck'"),
        ({"options": {"alg": "entropy"}}, "has no option 'alg'; it takes: attention_mask, steps"),
        ({"timeout": -1}, "timeout must be at least 0.001"),
        ({"world": "walk(length=24)"}, "lists every sequence of its world"),
        ({"world": "walk(graph=st_er(nodes=4, p=0.3), law=lazy(), length=3)"}, "at least 4 pos"),
    ],
)
def test_bad_input_is_a_sentence(how: dict[str, Any], says: str) -> None:
    with pytest.raises(MaskwalkError, match=re.escape(says)):
        audit(foreign.llada(), **how)


def test_a_decoder_that_cannot_be_called_is_a_sentence() -> None:
    with pytest.raises(MaskwalkError, match="needs schedule, and the audit does not know"):
        audit(lambda model, prompt, schedule: prompt)
    with pytest.raises(MaskwalkError, match="takes 1 arguments"):
        audit(lambda model: model)
    with pytest.raises(MaskwalkError, match="class without diffusion_generate"):
        audit(dict)
