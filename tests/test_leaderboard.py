"""The leaderboard: its numbers by hand, who is ranked, the page, and records run again."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maskwalk.bench.cell import Cell, run_cell
from maskwalk.bench.records import RecordFile
from maskwalk.bench.replays import PLACE, load_replays, replay_row
from maskwalk.bench.verdict import suite
from maskwalk.bench.verdict.read import Point, Setting, Stage, Verdict, read_evaluations
from maskwalk.bench.verdict.run import evaluate
from maskwalk.bench.versions import load_newest
from maskwalk.errors import MaskwalkError
from maskwalk.report.leaderboard.board import tracks
from maskwalk.report.leaderboard.page import board_data, board_page
from maskwalk.report.leaderboard.replayed import with_replayed
from maskwalk.report.leaderboard.terminal import board_lines
from tests import fake_records

RESULTS = Path(__file__).parent.parent / "results"
WORLD = "walk(graph=st_er(nodes=12, p=0.2), law=lazy(stay=0.2, start='uniform'), length=24, seed=0)"


def record(sampler: str, calls: float, quality: float, title: str = "one", **more: Any) -> Any:
    made = fake_records.record()
    metrics = {
        "coherence": {"value": quality, "se": 0.01, "n": 512},
        "calls": {"value": calls, "se": 0.0, "n": 512},
    }
    about = {"sampler": sampler, "title": title, "metrics": metrics, "key": f"{sampler}{title}"}
    return made | about | {"kind": "factorised", "experiment": "mine", "world": WORLD} | more


def entries(records: list[Any]) -> dict[str, Any]:
    (track,) = tracks(records)
    return {entry.rule: entry for entry in track.entries}


def test_within_a_budget_a_rule_is_its_best_mixture() -> None:
    records = [
        record("random(block=8)", 3, 0.2),
        record("random(block=2)", 11, 0.6),
        record("random(block=1)", 24, 1.0),
        record("bisection(order=1)", 5, 0.9),
    ]
    found = entries(records)
    assert found["random"].within[4].value == pytest.approx(0.2 + 0.4 / 8)
    assert found["random"].within[12].value == pytest.approx(0.6 + 0.4 / 13)
    assert found["random"].within[24].value == 1.0
    assert found["bisection"].within[4] is None and found["bisection"].within[8].value == 0.9
    assert found["bisection"].area.value == pytest.approx(0.9 * 20 / 24)  # 5, 6, … 24 of 24
    by_hand = sum(
        0.0 if c < 3 else 0.2 + 0.05 * (c - 3) if c <= 11 else 0.6 + 0.4 * (c - 11) / 13
        for c in range(1, 25)
    )
    assert found["random"].area.value == pytest.approx(by_hand / 24)
    assert found["bisection"].within[8].half == pytest.approx(1.96 * 0.01, rel=1e-2)


def test_scenes_are_averaged_and_a_rule_without_all_is_not_ranked() -> None:
    records = [
        record("bisection(order=1)", 5, 1.0),
        record("bisection(order=1)", 5, 0.5, "two", world=WORLD.replace("seed=0", "seed=1")),
        record("entropy(block=2)", 12, 0.4),
        record("entropy(block=2)", 30, 0.8, "two", world=WORLD.replace("seed=0", "seed=1")),
        record("random(block=2)", 2, 1.0),
    ]
    (track,) = tracks(records)
    assert [entry.rule for entry in track.entries] == ["bisection", "entropy"]
    assert [(entry.rule, entry.scenes) for entry in track.partial] == [("random", 1)]
    assert len(track.scenes) == 2
    bisection, entropy = track.entries
    assert bisection.within[8].value == 0.75
    assert bisection.within[8].half == pytest.approx(1.96 * 0.01 / 2**0.5, rel=1e-2)
    assert entropy.within[12].value == pytest.approx(0.2)  # none is so cheap in the other scene


def test_shaped_rules_stand_below_and_kl_is_the_records_own() -> None:
    nats = {"value": 2.4, "se": 0.1, "n": 64}
    records = [
        record("p2()", 4, 1.0, kind="shaped"),
        record("left_to_right()", 24, 1.0, kind="exact"),
        record("random(block=4)", 6, 0.3),
        record("random(block=1)", 24, 1.0, kind="exact"),
    ]
    for one, lost in zip(records[1:], (0.0, 2.4, 0.0)):
        one["metrics"]["replay_kl"] = nats | {"value": lost}
    (track,) = tracks(records)
    assert [e.rule for e in track.entries] == ["random", "left_to_right", "p2"]
    found = {e.rule: e for e in track.entries}
    assert (found["random"].kind, found["p2"].kind) == ("factorised", "shaped")
    assert found["random"].kl.value == pytest.approx(2.4)  # of a token already
    assert found["left_to_right"].kl is None  # nothing within 12 calls
    page = board_page([track], "a command")
    assert "KL per token" in page and "shaped †" in page and page.index("random") < page.index("p2")
    data = board_data([track])["tracks"][0]["entries"]
    assert data[0]["kl_per_token"] == pytest.approx([2.4, 1.96 * 0.1], abs=1e-3)
    assert [row["place"] for row in data] == [1, 2, 3]
    for one in records:
        one["metrics"].pop("replay_kl", None)
    page = board_page(tracks(records), "")
    assert "no column of KL per token, for its records hold none" in page
    assert '<button type="button">KL per token' not in page
    assert "shaped rules (†) stand below" in page


def test_the_terminal_shows_the_first_five_and_ones_own() -> None:
    names = ["bisection(order=1)", "halton()", *(f"{w}(block=2)" for w in ("entropy", "margin"))]
    names += ["random(block=2)", "pc()", "klass()", "a_policy_with_a_name_too_long_for_a_line()"]
    records = [record(spec, 5 + i, 1 - i / 10) for i, spec in enumerate([*names, "dus(base=2)"])]
    records.append(record("p2()", 4, 1.0, kind="shaped"))
    title, head, *lines, end = board_lines(tracks(records))
    assert title == "Mine, oracle · exact: 1 scene, coherence" and end == ""
    assert max(map(len, [title, head, *lines])) <= 80
    assert [line.split()[0] for line in lines] == ["1", "2", "3", "4", "5", "…", "8", "…"]
    assert lines[0].split()[1:] == ["bisection", "0.833", "–", "1.000", "1.000", "1.000"]
    assert lines[5].strip() == lines[7].strip() == "… 2 other rules"
    assert lines[6].startswith("  8 a policy with a n (own)") and lines[6].endswith("0.300")
    assert head.index("area") + 4 == lines[0].index("0.833") + 5
    shaped = [record("p2()", 4, 1.0, kind="shaped"), record("pc()", 4, 0.1)]
    assert "p2†" in "\n".join(board_lines(tracks(shaped)))


def test_the_kl_of_a_run_is_what_its_record_says() -> None:
    """Nats per masked token, of 22 in a walk of 24 with given ends: from decoding to the page."""
    records = []
    for spec in ("random(block=4)", "random(block=8)", "bisection"):
        place = {"world": WORLD, "task": "endpoints", "count": 16}
        cell = Cell.checked(sampler=spec, metrics=("coherence", "calls", "replay_kl"), **place)
        records.append({**run_cell(cell, trace=False)[0], "experiment": "mine", "title": "walk"})
    lost = records[0]["metrics"]["replay_kl"]
    assert lost["nats"] == pytest.approx(22 * lost["value"]) and lost["value"] > 0.01
    best = min(one["metrics"]["replay_kl"]["value"] for one in records[:2])
    assert entries(records)["random"].kl.value == pytest.approx(best)
    (track,) = board_data(tracks(records))["tracks"]
    assert {row["rule"]: row["kl_per_token"][0] for row in track["entries"]} == {
        "random": pytest.approx(best, abs=1e-5),
        "bisection": pytest.approx(records[2]["metrics"]["replay_kl"]["value"], abs=1e-5),
    }


def test_an_evaluation_and_a_record_say_the_same_kl(tmp_path: Path) -> None:
    """One quantity: of a policy as evaluated, and of the same cell with `replay_kl` measured."""
    scene = suite.Scene("tree", "st_er_p0", "endpoints", False, 16, ("random(block=8)",), 16)
    evaluate("threshold(tau=0.3)", (scene,), out=tmp_path, workers=0, progress=False)
    records = with_replayed(load_newest(tmp_path)[0], read_evaluations(tmp_path))
    (own,) = [one for one in records if one["sampler"].startswith("threshold")]
    cell = replace(scene.cell("threshold(tau=0.3)"), metrics=("replay_kl",))
    wanted = run_cell(cell, trace=False)[0]["metrics"]["replay_kl"]
    assert own["metrics"]["replay_kl"]["value"] == pytest.approx(wanted["value"])
    assert own["metrics"]["replay_kl"]["se"] == pytest.approx(wanted["se"])


def test_own_rules_are_marked_and_names_stay_text() -> None:
    records = [record("Mine(x=1)", 5, 0.5), record("bisection(order=1)", 5, 1.0)]
    found = entries(records)
    assert found["Mine"].own and not found["bisection"].own
    evil = "<img src=x onerror=alert(1)>"
    text = board_page(tracks([r | {"experiment": evil, "title": evil} for r in records]), evil)
    assert "<img" not in text and "&lt;img" in text
    with pytest.raises(MaskwalkError, match="no two rules"):
        tracks(records[:1])


POLICY = """
from maskwalk import UnmaskingPolicy
class Mine(UnmaskingPolicy):
    def choose(self, view, state, rng):
        return view.lowest(view.score("entropy"), 2), state
"""


def test_records_are_run_again_and_a_wrong_number_is_found(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "my_policy.py"
    file.write_text(POLICY)
    run = tmp_path / "run"
    run.mkdir()
    from maskwalk.bench.verdict.policy import candidate

    (own,) = candidate(f"{file}:Mine").settings.values()
    made = []
    for spec in ("bisection", "random(block=4)"):
        cell = Cell.checked(world=WORLD, task="endpoints", sampler=spec, count=16)
        made.append(run_cell(cell, trace=False)[0])
    cell = Cell.from_json({**vars(cell), "sampler": "Mine()"})
    made.append(run_cell(cell, trace=False, sampler=own)[0])

    def write(records: list[Any]) -> None:
        (run / "records.jsonl").unlink(missing_ok=True)
        with RecordFile(run / "records.jsonl") as out:
            for i, one in enumerate(records):
                out.append({**one, "cell": i, "experiment": "mine", "title": "walk"})

    write(made)
    check = ("leaderboard", str(run), "--check", "--policy", f"{file}:Mine")
    code, out, err = cli(*check)
    assert code == 0 and "1 of 1 records came out again" in out, err
    code, out, err = cli("leaderboard", str(run))
    assert code == 0, err
    assert re.search(r"\n +\d Mine \(own\) +0\.\d{3} ", out) and "bisection" in out
    data = json.loads((run / "leaderboard.json").read_text())
    rules = {row["rule"]: row["own"] for row in data["tracks"][0]["entries"]}
    assert rules == {"bisection": False, "random": False, "Mine": True}
    assert "Leaderboard" in (run / "leaderboard.html").read_text("utf-8")
    made[2]["metrics"]["coherence"]["value"] = 0.123
    write(made)
    code, out, _ = cli(*check)
    assert code == 1 and "coherence 0.123 in the record" in out and "1 of 1" in out
    assert "Mine(), walk, endpoints, oracle: coherence" in out  # which of two scenes of one title
    code, _, err = cli("leaderboard", str(run), "--check")
    assert code == 2 and "--policy FILE.py:Mine" in err and "Unknown" not in err
    file.write_text(POLICY.replace("2)", "3)"))
    assert cli("leaderboard", str(run), "--policy", f"{file}:Mine")[0] == 2
    assert cli("leaderboard", str(tmp_path / "none"))[0] == 2


def test_headings_sort(visit: Any, tmp_path: Path) -> None:
    records = [
        record("random(block=4)", 4, 0.3),
        record("bisection(order=1)", 5, 1.0),
        record("left_to_right()", 24, 0.9),
    ]
    path = tmp_path / "leaderboard.html"
    path.write_text(board_page(tracks(records), "a command"))
    tab = visit(path)
    names = tab.locator(".board tbody th")
    assert names.all_inner_texts() == ["bisection", "random", "left to right"]
    tab.get_by_role("button", name="24 calls").click()
    assert names.all_inner_texts() == ["bisection", "left to right", "random"]
    tab.get_by_role("button", name="4 calls", exact=True).click()
    assert names.first.inner_text() == "random"  # what is not there comes last
    tab.get_by_role("button", name="rule").click()
    assert names.all_inner_texts() == ["bisection", "left to right", "random"]
    tab.set_viewport_size({"width": 390, "height": 844})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def evaluated(kl: float) -> Verdict:
    """An evaluation of Mine(x=1) in one scene, as it is read from its file."""
    point = Point("x=1", 5.0, 0.5, 0.1)
    loss = {"kl": kl, "kl_se": 0.5, "masked": 20.0}
    mine = Setting(point, "on", False, 1.0, None, None, None, None, None, None, loss)
    scene = Stage("one", "tree", "unconditional", [], [mine], WORLD, "oracle")
    return Verdict("Mine", "quick", "", ["x=1"], True, {}, [], [scene], 1.0)


def test_an_evaluated_policy_has_the_nats_of_its_replay() -> None:
    records = [record("Mine(x=1)", 5, 0.5), record("bisection(order=1)", 5, 1.0)]
    records = [one | {"task": "unconditional()", "denoiser": "oracle"} for one in records]
    found = entries(with_replayed(records, [evaluated(2.4)]))
    assert found["Mine"].kl is not None and found["bisection"].kl is None
    assert found["Mine"].kl.value == pytest.approx(0.12)  # 20 masked tokens
    assert found["Mine"].kl.half == pytest.approx(1.96 * 0.5 / 20, rel=1e-2)
    last = with_replayed(records, [evaluated(2.4), evaluated(9.9)])  # the first is the newest
    assert entries(last)["Mine"].kl.value == pytest.approx(0.12)
    (scene,) = evaluated(2.4).scenes
    scene.settings[0].loss.pop("masked")  # by an earlier version: nats of nobody knows how many
    older = Verdict("Mine", "quick", "", ["x=1"], True, {}, [], [scene], 1.0)
    assert entries(with_replayed(records, [older]))["Mine"].kl is None


def test_an_evaluation_is_checked_as_it_was_recorded(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documented chain: new, evaluate --out, leaderboard --check; honest numbers come out."""
    two = [
        suite.Scene("degree 7", "st_er_deg7", task, False, 8, ("random(block=8)", "bisection"), 4)
        for task in ("unconditional", "endpoints")
    ]
    monkeypatch.setitem(suite.SUITES, "quick", tuple(two))
    monkeypatch.chdir(tmp_path)
    assert cli("new", "sampler", "my_policy")[0] == 0
    policy = "my_policy.py:MyPolicy"
    code, _, err = cli("evaluate", policy, "--out", "ev", "--workers", "0")
    assert code == 0, err
    code, out, err = cli("leaderboard", "ev", "--check", "--policy", policy)
    assert code == 0 and "8 of 8 records came out again" in out, out + err
    code, out, err = cli("leaderboard", "ev", "--out", "board")
    assert code == 0, err
    page = (tmp_path / "board" / "leaderboard.html").read_text("utf-8")
    assert "<pre>maskwalk leaderboard ev --out board</pre>" in page


def test_shipped_records_are_found_in_an_empty_directory(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, here = tmp_path / "shelf", tmp_path / "here"
    here.mkdir()
    for name in ("atlas", "worlds"):
        (shelf / "results" / name).mkdir(parents=True)
        with RecordFile(shelf / "results" / name / "records.jsonl") as out:
            for i, spec in enumerate(("random(block=4)", "bisection(order=1)")):
                out.append(record(spec, 4 + i, 0.5) | {"cell": i, "experiment": name})
    monkeypatch.setattr("maskwalk.resources.shipped", lambda name: shelf / name)
    monkeypatch.chdir(here)
    assert cli("leaderboard")[0] == 0
    data = json.loads((here / "leaderboard" / "leaderboard.json").read_text())
    assert [track["experiment"] for track in data["tracks"]] == ["atlas", "worlds"]
    assert cli("leaderboard", "results/worlds", "--out", "one")[0] == 0
    data = json.loads((here / "one" / "leaderboard.json").read_text())
    assert [track["experiment"] for track in data["tracks"]] == ["worlds"]
    code, out, err = cli("report", "results/atlas", "--format", "html")
    assert code == 0 and (here / "atlas-report" / "report.html").exists(), err
    assert not (shelf / "results" / "atlas" / "report.html").exists()
    code, out, err = cli("report", "results/atlas", "--format", "html", "--out", "mine")
    assert code == 0 and "mine/report.html" in out and (here / "mine" / "report.html").exists(), err


def test_columns_that_go_on_fade(visit: Any, tmp_path: Path) -> None:
    path = tmp_path / "leaderboard.html"
    records = [record("random(block=4)", 4, 0.3), record("bisection(order=1)", 5, 1.0)]
    path.write_text(board_page(tracks(records), "a command"))
    tab = visit(path)
    assert tab.locator(".scroll.goes-on").count() == 0
    tab.set_viewport_size({"width": 390, "height": 844})
    tab.locator(".scroll.goes-on").wait_for()


def test_what_an_evaluation_did_not_replay_is_measured_for_the_board(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its baselines have the KL that their cells' records would hold; it is measured once."""
    samplers = ("random(block=8)", "bisection", "left_to_right", "p2(eta=1.0)")
    scene = suite.Scene("tree", "st_er_p0", "endpoints", False, 16, samplers, 16)
    monkeypatch.setitem(suite.SUITES, "quick", (scene,))
    monkeypatch.chdir(tmp_path)
    code, _, err = cli("evaluate", "threshold(tau=0.3)", "--out", "ev", "--workers", "0")
    assert code == 0, err
    assert cli("leaderboard", "ev", "--no-replay", "--out", "without")[0] == 0
    assert not (tmp_path / "without" / "replays.jsonl").exists()
    code, out, err = cli("leaderboard", "ev", "--workers", "1")
    assert code == 0 and "KL/token" in out and "KL per token: 2/2" in err  # within twelve calls

    def of(folder: str) -> dict[str, Any]:
        (track,) = json.loads((tmp_path / folder / "leaderboard.json").read_text())["tracks"]
        return {row["rule"]: row["kl_per_token"] for row in track["entries"]}

    assert of("without")["random"] is None and of("without")["bisection"] is None
    for spec in samplers[:2]:
        cell = replace(scene.cell(spec), metrics=("replay_kl",))
        wanted = run_cell(cell, trace=False)[0]["metrics"]["replay_kl"]
        assert of("ev")[spec.partition("(")[0]][0] == pytest.approx(wanted["value"], abs=1e-5)
    assert of("ev")["random"][0] > 0.01 and of("ev")["left_to_right"] is None
    rows = (tmp_path / "ev" / "replays.jsonl").read_text()
    code, _, err = cli("leaderboard", "ev")
    assert code == 0 and "KL per token" not in err and of("ev")["random"][0] > 0.01
    assert (tmp_path / "ev" / "replays.jsonl").read_text() == rows
    (tmp_path / "ev" / "replays.jsonl").write_text(rows.replace('"value": ', '"value": "x" '[:-1]))
    code, _, err = cli("leaderboard", "ev")
    assert code == 2 and "replays.jsonl" in err and "Traceback" not in err


def test_records_of_a_run_are_replayed_only_when_asked(cli: Any, tmp_path: Path) -> None:
    with RecordFile(tmp_path / "records.jsonl") as out:
        for i, spec in enumerate(("random(block=8)", "bisection(order=1)", "Mine()")):
            made = record(spec, 3 + i, 0.5) | {"task": "endpoints()", "denoiser": "oracle"}
            out.append(made | {"cell": i, "count": 16, "draw": "draw()", "ties": "uniform"})
    assert cli("leaderboard", str(tmp_path))[0] == 0
    assert not (tmp_path / "replays.jsonl").exists()
    code, out, err = cli("leaderboard", str(tmp_path), "--replay", "--out", str(tmp_path / "b"))
    assert code == 0 and "2/2" in err and "KL/token" in out
    assert not (tmp_path / "replays.jsonl").exists()
    assert len((tmp_path / "b" / "replays.jsonl").read_text().splitlines()) == 2


def test_the_replays_of_the_atlas_come_out_again() -> None:
    rows = [r for r in load_replays(RESULTS / "atlas") if r["denoiser"] == "oracle"]
    assert len(rows) > 1_000
    for row in rows[::400]:
        place = {key: row[key] for key in PLACE}
        cell = Cell.checked(**place, metrics=("replay_kl",))
        again = replay_row(vars(cell), "cpu")["replay_kl"]
        assert again["value"] == pytest.approx(row["replay_kl"]["value"], rel=1e-9, abs=1e-9)
        assert again["n"] == row["replay_kl"]["n"] == 128
