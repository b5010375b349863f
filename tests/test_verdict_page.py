"""The verdict page: what an evaluation says, where its points stand, what an edited file gets."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maskwalk.bench.verdict import suite
from maskwalk.bench.verdict.read import Point, Setting, Stage, read_evaluations
from maskwalk.bench.verdict.run import evaluate
from maskwalk.bench.verdict.words import signed
from maskwalk.errors import MaskwalkError
from maskwalk.report.verdict import figure, forest, verdict_page, write_verdicts
from maskwalk.stats import share_se
from tests.fake_records import data_of

SPECS = ("random(block=24)", "random(block=4)", "bisection", "left_to_right")
SMALL = (
    suite.Scene("tree", "st_er_p0", "endpoints", False, 16, SPECS, 4),
    suite.Scene("degree 7", "st_er_deg7", "unconditional", False, 16, SPECS, 4),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two policies evaluated into one directory."""
    out = tmp_path_factory.mktemp("evaluated")
    for policy in ("low_confidence(steps=4)", "optimal_random"):
        evaluate(policy, SMALL, out=out, workers=0, progress=False)
    return out


def test_the_page_says_what_the_evaluation_says(folder: Path) -> None:
    path = write_verdicts(folder)
    assert path == folder / "verdict.html"
    text = re.sub(r"\s+", " ", path.read_text("utf-8"))
    last = json.loads((folder / "evaluation.json").read_text())
    assert last["policy"] == "optimal_random" and last["verdict"].replace("'", "&#39;") in text
    assert "contract kept" in text and "low_confidence" in text
    for scene in last["scenes"]:
        assert scene["scene"] in text
        for setting in scene["policy"]:
            d = setting["front_difference"]
            value, low, high = (signed(d[key]) for key in ("value", "low", "high"))
            shown = f"{value} <small>[{low}, {high}]</small>"
            assert shown in text, (scene["scene"], setting["setting"])
            loss = setting["loss"]
            assert f'together">{loss["dependence"]:.2f}</td>' in text
    assert "off the law" in text  # the shaped one is measured against it
    assert "<script" not in text and "-0.00" not in text
    assert "may stand beside an interval that leaves out the middle" in text


def test_a_share_of_0_or_1_is_not_certain(folder: Path, tmp_path: Path) -> None:
    """Agresti and Coull's error, in the file, on the page, and for files that say 0."""
    data = json.loads((folder / "evaluation.json").read_text())
    points = [b for scene in data["scenes"] for b in scene["baselines"] + scene["policy"]]
    sure = [point for point in points if point["coherence"] in (0.0, 1.0)]
    assert sure and all(p["coherence_se"] == pytest.approx(share_se(1.0, 16)) for p in sure)
    for point in sure:
        point["coherence_se"] = 0.0  # as an earlier version wrote it
    (tmp_path / "evaluation.json").write_text(json.dumps(data))
    for place in (folder, tmp_path):
        page = write_verdicts(place)
        assert page is not None and "±0.000" not in page.read_text("utf-8")


def test_the_page_says_what_was_typed(folder: Path, cli: Any, tmp_path: Path) -> None:
    text = (write_verdicts(folder) or folder).read_text("utf-8")
    assert "maskwalk evaluate optimal_random --suite own --out DIR" in text  # scenes of one's own
    out = tmp_path / "runs"
    code, _, err = cli("evaluate", "p2()", "--anyway", "--timeout", "0.001", "--out", str(out))
    assert code == 2, err  # nothing is written
    found = evaluate("bisection()", (), out=out, workers=0, progress=False, command="typed 'so'")
    assert found.command == "typed 'so'"
    assert "<pre>typed &#39;so&#39;\n" in (write_verdicts(out) or out).read_text("utf-8")


def test_evaluations_of_a_directory_are_read_the_last_one_first(folder: Path) -> None:
    found = read_evaluations(folder)
    assert [one.policy for one in found] == ["optimal_random", "low_confidence"]
    last = json.loads((folder / "evaluation.json").read_text())
    scene, stage = last["scenes"][0], found[0].scenes[0]
    wanted = [(b["sampler"], b["calls"], b["coherence"], b["on_front"]) for b in scene["baselines"]]
    assert [(p.name, p.cost, p.quality, p.on_front) for p in stage.baselines] == wanted
    assert stage.settings[0].position == scene["policy"][0]["position"]
    assert read_evaluations(folder / "evaluations") == []


def test_points_stand_at_their_calls_and_coherence(folder: Path, visit: Any) -> None:
    """Measured on the page against the grid lines and what is written at them."""
    path = write_verdicts(folder)
    assert path is not None
    tab = visit(path)
    scenes = [scene for one in read_evaluations(folder) for scene in one.scenes]
    measured = tab.evaluate("""() => [...document.querySelectorAll(".scene svg")].map((svg) => {
        const box = (n) => { const b = n.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; };
        const ticks = [...svg.querySelectorAll("line.grid")].map((l) => [
            +l.nextElementSibling.textContent, box(l), l.x1.baseVal.value === l.x2.baseVal.value]);
        return { ticks, baselines: [...svg.querySelectorAll(".baseline")].map(box),
                 mine: [...svg.querySelectorAll(".mine")].map(box) }; })""")  # noqa: E501
    assert len(measured) == len(scenes)
    for page, scene in zip(measured, scenes, strict=True):
        upright = [(value, at[0]) for value, at, is_x in page["ticks"] if is_x]
        level = [(value, at[1]) for value, at, is_x in page["ticks"] if not is_x]

        def at(ticks: list[tuple[float, float]], value: float) -> float:
            (a, one), (b, two) = ticks[0], ticks[-1]
            return one + (value - a) / (b - a) * (two - one)

        points = [*scene.baselines, *(s.point for s in scene.settings)]
        for point, place in zip(points, page["baselines"] + page["mine"], strict=True):
            wanted = (at(upright, point.cost), at(level, point.quality))
            assert tuple(place) == pytest.approx(wanted, abs=1.0), (scene.title, point)
    tab.set_viewport_size({"width": 390, "height": 844})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_front_goes_on_level_and_an_interval_stays_on_its_line() -> None:
    points = [Point("a", 2, 0.2, 0, True), Point("b", 4, 0.8, 0, True), Point("c", 8, 0.5, 0)]
    drawn = figure(Stage("t", "s", "k", points, []))
    places = [tuple(map(float, pair.split(","))) for pair in drawn.front.split()]
    assert len(places) == 3 and places[1][1] == places[2][1] < places[0][1]
    assert places[2][0] == pytest.approx(drawn.baselines[2].x, abs=0.1)
    front = {"value": -0.5, "low": -1.2, "high": 0.1}
    one = Setting(points[0], "on", False, 1.0, None, None, front, None, None, None, None)
    assert forest(one) == {"low": 0.0, "middle": 25.0, "width": pytest.approx(55.0)}


@pytest.mark.parametrize(("wide", "scenes"), [(1300, 7), (1600, 4), (1000, 3)])
def test_type_is_as_large_in_a_last_scene_that_stands_alone(
    folder: Path, visit: Any, tmp_path: Path, wide: int, scenes: int
) -> None:
    (one, *_) = read_evaluations(folder)
    path = tmp_path / "verdict.html"
    several = replace(one, scenes=(one.scenes * 4)[:scenes])
    path.write_text(verdict_page([several]), "utf-8")
    tab = visit(path)
    tab.set_viewport_size({"width": wide, "height": 900})
    widths = tab.evaluate(
        "[...document.querySelectorAll('.scene svg')].map((n) => n.getBoundingClientRect().width)"
    )
    assert len(widths) == scenes and widths == pytest.approx([widths[0]] * scenes, abs=1.0)
    lists = tab.evaluate(
        "[...document.querySelectorAll('.settings')].map((n) => n.getBoundingClientRect().width)"
    )
    assert lists[-1] > 1.3 * lists[0] or wide == 1000  # the rest of the row is the settings'


def test_a_player_is_linked_where_there_is_one(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "evaluation.json", tmp_path)
    link = 'href="report.html#watch"'
    page = (write_verdicts(tmp_path) or tmp_path).read_text("utf-8")
    assert link not in page and "<code>maskwalk report</code>" in page
    assert link in (write_verdicts(tmp_path, player=True) or tmp_path).read_text("utf-8")
    (tmp_path / "report.html").write_text("")
    assert link in (write_verdicts(tmp_path) or tmp_path).read_text("utf-8")


def test_names_stay_text(folder: Path) -> None:
    (one, *_) = read_evaluations(folder)
    evil = "<img src=x onerror=alert(1)>"
    object.__setattr__(one, "policy", evil)
    object.__setattr__(one, "sentence", evil)
    assert "<img" not in verdict_page([one])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.pop("scenes"), "scenes"),
        (lambda d: d["scenes"][0]["policy"][0].update(position="great"), "great"),
        (lambda d: d["scenes"][0]["baselines"][0].update(calls="4"), "calls"),
        (lambda d: d["contract"].update(kept="yes"), "kept"),
    ],
)
def test_an_edited_file_is_a_sentence(folder: Path, tmp_path: Path, change: Any, says: str) -> None:
    data = json.loads((folder / "evaluation.json").read_text())
    change(data)
    (tmp_path / "evaluation.json").write_text(json.dumps(data))
    with pytest.raises(MaskwalkError, match=rf"evaluation\.json is not an evaluation: .*{says}"):
        write_verdicts(tmp_path)


def test_report_writes_it_and_a_broken_contract_has_one_too(
    folder: Path, cli: Any, tmp_path: Path
) -> None:
    (folder / "verdict.html").unlink(missing_ok=True)
    code, out, err = cli("report", str(folder), "--format", "html")
    assert code == 0 and "verdict.html" in out and "report.html" in out, err
    page = (folder / "report.html").read_text("utf-8")
    assert 'href="report.html#watch"' in (folder / "verdict.html").read_text("utf-8")
    assert 'id="watch"' in page and all("first" in cast for cast in data_of(page)["casts"])
    assert '<a href="verdict.html#policy1">The verdict on optimal_random</a>' in page
    own = [one["spec"] for one in data_of(page)["samplers"] if one["own"]]
    assert own and {spec.split("(")[0] for spec in own} == {"optimal_random", "low_confidence"}
    mutant = tmp_path / "mutant.py"
    mutant.write_text(
        "from maskwalk import UnmaskingPolicy\n"
        "class Greedy(UnmaskingPolicy):\n    ranks_by = 'entropy'\n"
        "    def choose(self, view, state, rng):\n"
        "        return view.lowest(-view.score('entropy'), 1), state\n"
    )
    code, out, _ = cli("evaluate", f"{mutant}:Greedy", "--out", str(tmp_path / "o"))
    page = (tmp_path / "o" / "verdict.html").read_text("utf-8")
    assert code == 1 and "contract broken" in page and "What it breaks" in page
    assert f"maskwalk evaluate {mutant}:Greedy --out {tmp_path / 'o'}\n" in page
    assert "On each front" not in page and "Nats lost" not in page
    assert cli("report", str(tmp_path / "o"), "--format", "html")[0] == 0
