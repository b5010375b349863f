"""`maskwalk evaluate`: the statistics against what is known, the pairing, the verdict."""

import json
import re
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import maskwalk
from maskwalk import stats
from maskwalk.bench.plan import Job
from maskwalk.bench.records import load_records
from maskwalk.bench.verdict import cache, outcomes, pairing, suite, verdict, words
from maskwalk.bench.verdict.outcomes import Outcome, outcome
from maskwalk.bench.verdict.policy import candidate
from maskwalk.bench.verdict.result import Evaluation, _knob
from maskwalk.bench.verdict.run import evaluate
from maskwalk.bench.workers import Workers
from maskwalk.decoding.draw import DRAWS
from maskwalk.decoding.policy import UnmaskingPolicy
from maskwalk.errors import MaskwalkError
from maskwalk.resources import PACKAGE
from maskwalk.samplers import SAMPLERS, Bisection, Entropy
from maskwalk.stats import Difference, holm

SPECS = ("random(block=24)", "random(block=4)", "bisection", "left_to_right")
SMALL = (
    suite.Scene("tree", "st_er_p0", "endpoints", False, 16, SPECS, 4),
    suite.Scene("degree 7", "st_er_deg7", "unconditional", False, 16, SPECS, 4),
)


# ---- the statistics ------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.integers(2, 48), st.integers(0, 20)), min_size=1, max_size=8, unique=True
    ),
    st.integers(2, 52),
)
def test_the_front_is_the_best_mixture(points: list[tuple[int, int]], at: int) -> None:
    """Against a linear program: the largest coherence with at most so many calls."""
    calls = np.array([c / 2 for c, _ in points])
    quality = np.array([q / 20 for _, q in points])
    weights = stats.best_mixture(calls, quality, at / 2)
    best = linprog(
        -quality, A_ub=[calls], b_ub=[at / 2], A_eq=[np.ones(len(calls))], b_eq=[1], bounds=(0, 1)
    )
    if weights is None:
        assert best.status == 2  # infeasible
        return
    assert weights.sum() == pytest.approx(1) and (weights >= 0).all()
    assert weights @ calls <= at / 2 + 1e-9
    assert weights @ quality == pytest.approx(-best.fun, abs=1e-9)
    one = stats.best_mixture(calls, quality, at / 2, single=True)
    assert one is not None and quality[one.argmax()] == quality[calls <= at / 2].max()
    fewest = stats.fewest_calls(calls, quality, float(weights @ quality))
    assert fewest is not None and fewest <= weights @ calls + 1e-9


def test_the_front_of_four_points() -> None:
    """(1, 0), (5, 1) and what lies under the line between them; (22, 1) is no better."""
    calls, quality = np.array([1.0, 3.0, 5.0, 22.0]), np.array([0.0, 0.4, 1.0, 1.0])
    assert stats.mixture_front(calls, quality) == [0, 2]
    assert stats.fewest_calls(calls, quality, 0.5) == 3.0
    assert stats.fewest_calls(calls, quality, 1.0) == 5.0


def test_the_interval_is_bonett_and_prices() -> None:
    """3 won, 9 lost, 88 tied: (3+1)/102 and (9+1)/102, worked out by hand."""
    each = np.array([1.0] * 3 + [-1.0] * 9 + [0.0] * 88)
    found = stats.paired_difference(each)
    won, lost = 4 / 102, 10 / 102
    error = ((won + lost - (won - lost) ** 2) / 102) ** 0.5
    assert found.value == -0.06
    assert found.low == pytest.approx(won - lost - 1.959964 * error, abs=1e-6)
    assert found.high == pytest.approx(won - lost + 1.959964 * error, abs=1e-6)
    ties = stats.paired_difference(np.zeros(64))
    assert ties.p == 1.0 and ties.low < -0.02 and ties.high > 0.02


def test_holm() -> None:
    found = holm(np.array([0.01, 0.04, 0.03, 0.005]))
    assert found == pytest.approx([0.03, 0.06, 0.06, 0.02])


def made(calls: float, coherent: np.ndarray) -> Outcome:
    return Outcome({"sampler": "s", "key": ""}, coherent, np.full(len(coherent), calls))


def test_equals_are_not_told_apart_and_the_better_one_is() -> None:
    """Twenty equal baselines: chosen on the same prompts the best of them would win by .1."""
    rng = np.random.Generator(np.random.Philox(1))
    differences, alarms = [], 0
    for _ in range(400):
        prompts = rng.random(64)
        draw = lambda p=prompts: (0.5 * rng.random(64) + 0.5 * p < 0.5).astype(float)  # noqa: E731
        baselines = [made(8.0, draw()) for _ in range(20)]
        met = pairing.opponents(baselines, 8.0)
        assert met is not None
        found = stats.paired_difference(draw() - met)
        differences.append(found.value)
        alarms += found.p < 0.05
    assert abs(np.mean(differences)) < 0.02
    assert alarms <= 34  # 24 expected (docstring of pairing); with four folds it is 40
    better = stats.paired_difference((rng.random(64) < 0.9) - met)
    assert better.p < 1e-3 and better.low > 0


def test_settings_are_corrected_for_their_number() -> None:
    """Twenty times the same small lead: each p-value counts twenty times."""
    half = np.arange(64) % 2.0
    better = np.where(np.arange(64) % 16 == 0, 1.0, half)
    rows = [
        verdict.compare(SMALL[0], str(i), made(5.0, better), [made(5.0, half)]) for i in range(20)
    ]
    (alone,), many = verdict.judge(rows[:1]), verdict.judge(rows[:3])
    assert 0.05 < alone.p < 0.2
    assert [c.p for c in many] == pytest.approx([3 * alone.p] * 3)
    assert all(c.p == 1.0 for c in verdict.judge(rows))


def test_positions() -> None:
    scene = SMALL[0]
    ones, none = np.ones(64), np.zeros(64)
    half = np.arange(64) % 2.0
    baselines = [made(1.0, none), made(5.0, half)]
    cases = {
        "beyond": made(5.0, ones),
        "inside": made(5.0, none),
        "on": made(5.0, half),
        "void": made(1.0, none),
    }
    judged = verdict.judge([verdict.compare(scene, k, v, baselines) for k, v in cases.items()])
    assert {c.setting: c.position for c in judged} == {k: k for k in cases}
    slow = verdict.judge(
        [verdict.compare(scene, "slow", made(5.2, ones), [*baselines, made(5.0, ones)])]
    )[0]
    assert slow.position == "dominated" and slow.cheaper.calls.mean() == slow.same == 5.0
    cheap = verdict.judge([verdict.compare(scene, "cheap", made(0.5, ones), baselines)])[0]
    assert cheap.front is None and cheap.best is None and cheap.position == "on"
    said = words.sentence("mine", judged[:1])
    assert "beyond the baselines' front on tree" in said and "0.50 more often" in said
    assert "5.2 calls where 5 do" in words.sentence("mine", [slow])
    on = words.sentence("mine", [c for c in judged if c.setting == "on"])
    assert re.search(r"on the front on tree \(no difference is shown; one of 0\.\d\d would", on)


def test_what_would_have_been_seen_belongs_to_on_alone() -> None:
    """A sentence for the oracle and one for the models; only "on" says what was not seen."""
    ones, none = np.ones(64), np.zeros(64)
    half = np.array([1.0, 0.0] * 32)
    tree, model = SMALL[0], replace(SMALL[0], structure="degree 7", model=True)
    rows = [
        verdict.compare(tree, "a", made(5.0, none), [made(5.0, ones)]),
        verdict.compare(model, "a", made(5.0, half), [made(5.0, half[::-1].copy())]),
    ]
    said = words.sentence("mine", verdict.judge(rows))
    oracle, models = said.split(" With the shipped models, it is ")
    assert oracle.startswith("With the oracle, mine is inside the front on tree. Even its best")
    assert "would have been" not in oracle and "difference" not in oracle
    assert models.startswith("on the front on degree 7 (no difference is shown; one of ")
    assert models.endswith("would have been).") and "Even" not in models


def test_a_lead_that_noise_could_hide_is_not_dominated() -> None:
    """A cheaper baseline is as coherent as measured, but 64 coins cannot tell a lead of .1."""
    rng = np.random.Generator(np.random.Philox(4))
    mine, other = ((rng.random(64) < 0.5).astype(float) for _ in range(2))
    other[mine.argmin()] = 1.0
    row = verdict.compare(SMALL[0], "mine", made(6.0, mine), [made(5.0, other)])
    assert verdict.judge([row])[0].position == "on"


def test_one_family_of_comparisons() -> None:
    """Twenty settings: what one test would show at .01, twenty and their departures do not."""
    scene, half = SMALL[0], np.arange(64) % 2.0
    better = half.copy()
    better[::16] = 1.0
    rows = [verdict.compare(scene, str(i), made(5.0, better), [made(5.0, half)]) for i in range(20)]
    alone = verdict.judge(rows[:1])[0]
    far = Difference(0.1, 0.05, 0.15, 0.003)
    judged = verdict.judge([replace(rows[0], departure=far), *rows[1:]])
    assert judged[1].p == pytest.approx(min(1.0, 20 * alone.p))
    assert judged[0].position != "off"  # .003 in 21 tests
    assert verdict.judge([replace(rows[0], departure=far)])[0].position == "off"
    assert judged[1].seen > alone.seen


def test_a_shaped_result_is_never_beyond() -> None:
    scene, ones, half = SMALL[0], np.ones(64), np.arange(64) % 2.0
    row = verdict.compare(scene, "mine", made(5.0, ones), [made(5.0, half)])
    away = Difference(0.3, 0.2, 0.4, 1e-9)
    near, wide = Difference(0.01, -0.02, 0.04, 0.3), Difference(0.01, -0.2, 0.2, 0.3)
    for departure, position in (
        (away, "off"),
        (near, "near"),
        (wide, "unclear"),
        (None, "unclear"),
    ):
        judged = verdict.judge([replace(row, kind="shaped", departure=departure)])[0]
        assert judged.position == position
    off = verdict.judge([replace(row, kind="shaped", departure=away)])
    said = words.sentence("mine", off)
    assert "off the law by 0.30" in said and "(coherence +0.50)" in said and "beyond" not in said
    # A rule that says it is exact, and is measured to be off, is shaped.
    assert verdict.judge([replace(row, kind="exact", departure=away)])[0].kind == "shaped"


def test_the_row_shown_is_the_best_by_its_own_rule() -> None:
    scene, ones = SMALL[0], np.ones(64)
    baselines = [made(1.0, np.zeros(64)), made(5.0, ones)]
    rows = [verdict.compare(scene, str(c), made(c, ones), baselines) for c in (23.0, 5.0)]
    assert verdict.best_of(verdict.judge(rows)).calls == 5.0


def test_of_two_ways_to_lose_the_smaller_loss_is_the_best() -> None:
    """A setting that is hardly ever coherent is not its best: another is level at more calls."""
    scene, ones, half = SMALL[0], np.ones(64), np.arange(64) % 2.0
    few = np.zeros(64)
    few[0] = 1.0
    baselines = [made(1.0, np.zeros(64)), made(2.4, half), made(5.0, ones)]
    mine = {"void": (1.0, np.zeros(64)), "cheap": (2.3, few), "slow": (22.0, ones)}
    rows = [verdict.compare(scene, k, made(*v), baselines) for k, v in mine.items()]
    judged = verdict.judge(rows)
    assert [c.position for c in judged] == ["void", "inside", "dominated"]
    assert verdict.best_of(judged).setting == "slow"
    assert verdict.standing(judged) == {("tree", False): "dominated"}
    said = words.sentence("mine", judged)
    assert "dominated on tree. Even its best takes 22 calls where 5 do" in said
    shown = "\n".join(Evaluation("mine", "own", (), {}, judged, {}, 0.0)._standing())
    assert re.search(r"tree · oracle +dominated 0 \[.*\] at 22 calls", shown)
    # Without the slow one, the same where both are inside: a front hardly above zero is no best.
    near = [made(2.3, few), made(8.0, np.where(np.arange(64) < 40, 1.0, 0.0))]
    low = [made(2.0, np.where(np.arange(64) % 10 == 3, 1.0, 0.0)), made(5.0, ones)]
    rows = [verdict.compare(scene, str(int(b.calls.mean())), b, low) for b in near]
    judged = [replace(c, position="inside") for c in rows]
    assert judged[0].gain > judged[1].gain and verdict.best_of(judged).setting == "8"
    # And one that is level far out loses less than one that is far below at few calls.
    below = [replace(c, position=p) for c, p in zip(rows, ("inside", "dominated"))]
    assert verdict.standing(below) == {("tree", False): "dominated"}
    # Also where the cheap one is coherent often enough to stand for the policy.
    some = made(2.3, np.where(np.arange(64) % 8 == 1, 1.0, 0.0))
    rows = [verdict.compare(scene, str(b.calls[0]), b, baselines) for b in (some, made(22.0, ones))]
    judged = verdict.judge(rows)
    assert [c.position for c in judged] == ["inside", "dominated"]
    assert verdict.best_of(judged).setting == "22.0"


def test_the_one_knob_of_a_sweep_heads_its_columns() -> None:
    assert _knob(["bound=3.0", "bound=0.3"]) == ("bound=", ["3.0", "0.3"])
    assert _knob(["a=1", "b=2"]) == ("", ["a=1", "b=2"])
    assert _knob(["f(a=1)", "f(a=2)"]) == ("", ["f(a=1)", "f(a=2)"])
    assert (words.signed(-0.001), words.signed(0.25), words.signed(-0.0004, 3)) == (
        *("0.00", "+0.25"),
        "0.000",
    )


# ---- the pairing ---------------------------------------------------------------------------------


def test_outcomes_are_the_records_own_and_the_same_in_another_process() -> None:
    cells = [SMALL[0].cell("random(block=4)"), SMALL[0].cell("entropy(block=4)")]
    here = [outcome(cell) for cell in cells]
    for one in here:
        assert one.coherent.mean() == one.record["metrics"]["coherence"]["value"]
        assert one.calls.mean() == one.record["metrics"]["calls"]["value"]
    assert 0 < here[0].coherent.mean() < 1
    jobs = [Job(cell.key, "outcome", {"cell": asdict(cell)}) for cell in cells]
    with Workers(jobs, 1) as team:
        there = {job.key: Outcome.from_json(row) for job, row in team}
    for cell, one in zip(cells, here):
        assert (there[cell.key].coherent == one.coherent).all()
        assert (there[cell.key].calls == one.calls).all()


def test_several_samples_of_a_prompt_are_one_cluster() -> None:
    found = outcome(replace(SMALL[0].cell("random(block=4)"), per_prompt=2))
    assert found.coherent.shape == (16,) and set(found.coherent) <= {0.0, 0.5, 1.0}
    assert 0.5 in found.coherent
    assert found.coherent.mean() == found.record["metrics"]["coherence"]["value"]


def test_a_baseline_is_exactly_on_the_front_with_itself(tmp_path: Path) -> None:
    """The same prompts and the same streams: every difference is zero, not merely small."""
    found = evaluate("bisection(order=1)", SMALL, out=tmp_path, workers=0, progress=False)
    for c in found.comparisons:
        assert c.coherence == 1.0 and c.calls == 5.0
        assert c.front is not None and c.front.value == 0.0
        assert c.best is not None and c.best.sampler == "bisection(order=1)"
        assert c.position == "on" and c.same == 5.0
        assert c.loss is not None and c.loss["dependence"] == pytest.approx(0, abs=1e-9)
    assert set(found.standing.values()) == {"on"}


def test_a_policy_with_truncated_draws_is_shaped_and_says_what_it_cannot_make(
    tmp_path: Path,
) -> None:
    """The baselines and the reference draw exactly; the policy loses sequences for good."""
    found = evaluate(
        "bisection(order=1)",
        SMALL,
        out=tmp_path,
        workers=0,
        progress=False,
        draw="draw(top_p=0.5)",
    )
    for c in found.comparisons:
        assert c.kind == "shaped" and c.departure is not None and c.position != "on"
        assert c.outcome.record["draw"] == DRAWS.canonical("draw(top_p=0.5)")
        assert c.loss is not None and c.loss["lost"] == 1.0 and c.loss["kl"] == float("inf")
    for outcomes_there in found.baselines.values():
        assert all(one.record["mode"] == "exact" for one in outcomes_there)
    lines = next(tmp_path.glob("baselines-*")).read_text().splitlines()
    kept = [json.loads(line) for line in lines]
    assert {entry["record"]["mode"] for entry in kept} == {"exact"}  # the reference, too
    assert "With draw(top_p=0.5) it can never make 100% of the law's sequences." in found.verdict
    assert found.as_dict()["draw"] == "draw(top_p=0.5)"


def test_a_truncation_that_no_drawn_token_shows_is_shaped_all_the_same(tmp_path: Path) -> None:
    """Its rows come out again without the policy, but its law is another one."""
    found = evaluate(
        "bisection(order=1)",
        SMALL[:1],
        out=tmp_path,
        workers=0,
        progress=False,
        draw="draw(top_p=0.999999)",
    )
    (c,) = found.comparisons
    assert c.kind == "shaped" and c.departure is not None


def test_baselines_are_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = evaluate("bisection()", SMALL[:1], out=tmp_path, workers=0, progress=False)

    def never(cell: object, device: str) -> dict:
        raise AssertionError("a baseline was run again")

    monkeypatch.setattr(outcomes, "outcome_row", never)
    file = next(tmp_path.glob("baselines-*.jsonl"))
    file.write_bytes(file.read_bytes() + b'{"key": "half a li')
    again = evaluate(Bisection(), SMALL[:1], out=tmp_path, workers=0, progress=False)
    assert again.comparisons[0].front == first.comparisons[0].front
    monkeypatch.setattr(cache, "code_hash", lambda: "other code")
    with pytest.raises(MaskwalkError, match="run again"):
        evaluate(Bisection(), SMALL[:1], out=tmp_path, workers=0, progress=False)


def test_an_edit_of_what_decides_an_outcome_empties_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By folder: whatever is not above the samplers counts, a new file too."""
    package = tmp_path / "maskwalk"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "templates"))
    monkeypatch.setattr(cache, "PACKAGE", package)

    def hashed() -> str:
        cache.code_hash.cache_clear()
        return cache.code_hash()

    first = hashed()
    for name in ("report/page.py", "cli/sample.py", "analysis/replay.py", "paper/new.py"):
        with (package / name).open("a") as file:
            file.write("# edited")
        assert hashed() == first, name
    for name in ("samplers/random.py", "worlds/new.py", "stats.py", "bench/verdict/outcomes.py"):
        before = hashed()
        with (package / name).open("a") as file:
            file.write("# edited")
        assert hashed() != before, name
    cache.code_hash.cache_clear()


def test_the_suites_are_sound() -> None:
    for name in suite.SUITES:
        for scene in suite.scenes(name):
            cells = [scene.cell(spec) for spec in scene.baselines]  # every spec is checked
            assert len({cell.key for cell in cells}) == len(cells)
            assert len({(c.task, c.seed, c.count, c.world) for c in cells}) == 1
            assert scene.count % pairing.FOLDS == 0 and "random(block=24)" in scene.baselines
    with pytest.raises(MaskwalkError, match="Did you mean 'quick'"):
        suite.scenes("quik")


# ---- what is handed over, and what comes out -----------------------------------------------------


class Stuck(UnmaskingPolicy):
    """Reveals nothing."""

    def choose(self, view, state, rng):
        return torch.zeros_like(view.masked), state


class Backwards(UnmaskingPolicy):
    """Ranks backwards."""

    ranks_by = "entropy"

    def choose(self, view, state, rng):
        return view.lowest(-view.score("entropy"), 1), state


def test_a_broken_contract_ends_it(tmp_path: Path) -> None:
    found = maskwalk.evaluate(Stuck, SMALL, out=tmp_path, workers=0, progress=False)
    assert not found.kept and found.comparisons == () and "terminates" in found.contract["Stuck"]
    assert "at least one masked position" in str(found) and "mend that first" in found.verdict
    anyway = evaluate(Backwards(), SMALL[:1], anyway=True, out=tmp_path, workers=0, progress=False)
    assert set(anyway.contract["Backwards"]) == {"ranks_as_stated"}
    assert anyway.comparisons[0].calls == 22.0 and "do not trust" in anyway.verdict
    with pytest.raises(MaskwalkError, match=r"Stuck failed|did not in round"):
        evaluate(Stuck, SMALL[:1], anyway=True, out=tmp_path, workers=0, progress=False)


def test_what_can_be_handed_over(tmp_path: Path) -> None:
    assert list(candidate(Entropy).settings) == [
        str(f"block={b['block']!r}") for b in Entropy.sweep
    ]
    assert candidate("entropy").settings.keys() == candidate(Entropy).settings.keys()
    assert list(candidate("entropy(block=2)").settings) == ["entropy(block=2)"]
    assert len(candidate("blocks").settings) == len(SAMPLERS["blocks"].sweep)
    two = tmp_path / "two.py"
    two.write_text(
        "from maskwalk import UnmaskingPolicy\nfrom maskwalk.samplers import Entropy\n"
        "class A(UnmaskingPolicy):\n    def choose(self, view, state, rng):\n"
        "        return view.random(1), state\n"
        "class B(A):\n    sweep = ({'missing': 1},)\nclass C(UnmaskingPolicy):\n    pass\n"
    )
    assert list(candidate(f"{two}:A").settings) == ["A"]
    for handed, says in (
        (str(two), "A, B, C"),
        (f"{two}:D", "Unknown sampler"),
        (f"{two}:Entropy", "Unknown sampler"),
        (f"{two}:B", "missing"),
        (f"{two}:C", "choose"),
        (f"{tmp_path}/none.py:A", "none.py"),
        ("entropi", "Did you mean 'entropy'"),
        ("entropy(blok=2)", "blok"),
    ):
        with pytest.raises(MaskwalkError, match=says):
            candidate(handed)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The quick suite cut to one small scene, with a cache of its own."""
    monkeypatch.setitem(suite.SUITES, "quick", SMALL)
    monkeypatch.setenv("MASKWALK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")


def test_the_command(small, cli, tmp_path: Path) -> None:
    """A whole sweep for a person: 80 columns, every part there, the records good for a report."""
    code, out, err = cli(
        "evaluate", "optimal_random", "--workers", "0", "--out", str(tmp_path / "o")
    )
    assert code == 0, err
    said = [line for line in out.splitlines() if str(tmp_path) not in line]  # paths are not folded
    assert all(len(line) <= 80 for line in said), out
    flat = " ".join(out.split())
    assert "Contract: kept (3 settings)" in out and "tree · endpoints · oracle" in out
    assert "Verdict: With the oracle, optimal_random is" in flat and "dependence" in out
    assert (tmp_path / "o" / "evaluation.json").exists()
    samplers = {record["sampler"] for record in load_records(tmp_path / "o")}
    mine = {spec for spec in samplers if spec.startswith("optimal_random(sizes=")}
    assert len(mine) == 3 and not any(spec.startswith("sizes") for spec in samplers)
    code, out, _ = cli("report", str(tmp_path / "o"), "--format", "html")
    assert code == 0 and (tmp_path / "o" / "report.html").stat().st_size > 1000


def test_the_command_for_machines_and_mistakes(small, cli, tmp_path: Path) -> None:
    code, out, _ = cli("evaluate", "low_confidence(steps=4)", "--json", "--workers", "0")
    found = json.loads(out)
    assert code == 0 and found["contract"] == {"kept": True, "broken": {}}
    scene = found["scenes"][0]
    assert [b["sampler"] for b in scene["baselines"] if b["on_front"]][-1] == "bisection(order=1)"
    mine = scene["policy"][0]
    assert (
        mine["loss"] is None
        and mine["position"] in ("off", "near", "unclear", "void")
        and mine["kind"] == "shaped"
    )
    low, high = (mine["front_difference"][k] for k in ("low", "high"))
    assert low < mine["front_difference"]["value"] < high
    assert list((tmp_path / "cache").glob("baselines-*.jsonl"))
    mutant = tmp_path / "mutant.py"
    mutant.write_text(
        "from maskwalk import UnmaskingPolicy\n"
        "class Greedy(UnmaskingPolicy):\n    ranks_by = 'entropy'\n"
        "    def choose(self, view, state, rng):\n"
        "        return view.lowest(-view.score('entropy'), 1), state\n"
    )
    code, out, _ = cli("evaluate", f"{mutant}:Greedy")
    assert code == 1 and "ranks_as_stated" in out and "lowest entropy first" in out
    for arguments in (["entropi"], ["entropy", "--suite", "slow"], ["entropy", "--workers", "-1"]):
        code, _, err = cli("evaluate", *arguments)
        assert code == 2 and "Traceback" not in err
