"""Sequences that a report plays again: the records' own, where they hold no story."""

from pathlib import Path
from typing import Any

import pytest

from maskwalk.report import write_report
from maskwalk.report.arrange import arrange
from maskwalk.report.player.replays import replays
from tests.fake_records import data_of, small
from tests.test_report_watch import SAMPLERS, ran


def bare(record: Any, without: str) -> Any:
    """A record of a long run, without a trace; or an older one, whose trace has no chances."""
    trace = {key: value for key, value in record["trace"].items() if key != without}
    return {**record, "trace": None if without == "trace" else trace}


@pytest.fixture(scope="module")
def walks() -> list[Any]:
    return ran(*SAMPLERS)


@pytest.mark.parametrize("without", ["trace", "prob"])
def test_what_is_played_again_are_the_tokens_of_the_records(
    walks: list[Any], without: str, visit: Any, tmp_path: Path
) -> None:
    (path,) = write_report([bare(r, without) for r in walks], tmp_path, replayed=60.0)
    data = data_of(path.read_text("utf-8"))
    cast = data["casts"][0]
    assert len(cast["s"]) == len(walks)
    for s, reel in zip(cast["s"], cast["reels"]):
        (record,) = [r for r in walks if r["sampler"] == data["samplers"][s]["spec"]]
        tokens = list(reel["given"])
        for changes in reel["steps"]:
            for position, token, *_ in changes:
                tokens[position] = token
        assert tokens == record["trace"]["tokens"]
        assert all(len(guess) == 4 for guesses in reel["ahead"] for guess in guesses)
    tab = visit(path)
    assert tab.locator(".pane").count() == 2 and tab.locator(".tile-of.masked").count() == 0
    assert "#" not in tab.url  # the last round, which nobody chose
    tab.locator("#player").focus()
    tab.keyboard.press("Home")
    shown = tab.locator(".tile-of.masked small").all_inner_texts()
    assert shown and all(words.strip() for words in shown)


def test_stories_that_are_whole_foreign_denoisers_and_files_are_not_played_again(
    walks: list[Any],
) -> None:
    assert replays(arrange(walks)).casts == []
    for change in ({"denoiser": "hf:some/model"}, {"sources": {"mine.py": "0"}}):
        assert replays(arrange([{**bare(r, "trace"), **change} for r in walks])).casts == []


def test_there_is_no_time_and_the_page_says_how_to_watch(walks: list[Any], tmp_path: Path) -> None:
    records = [bare(record, "trace") for record in walks]
    assert replays(arrange(records), 0.0).casts == []
    (path,) = write_report(records, tmp_path)
    text = path.read_text("utf-8")
    assert 'id="watch-elsewhere"' in text and "<pre>maskwalk play --world" in text


def test_the_first_panel_has_a_task_and_is_no_tree(walks: list[Any]) -> None:
    tree = "walk(graph=st_er(nodes=30, p=0.0), law=lazy(stay=0.2), length=10)"
    some = [*ran("random(block=4)", world=tree), *ran("random(block=4)", task="unconditional")]
    study = arrange([bare(record, "trace") for record in (*some, *walks)])
    (cast,) = replays(study).casts
    assert study.panels[cast["p"]].task == "endpoints" and "0.03" in study.panels[cast["p"]].detail


def test_texts_name_a_command(tmp_path: Path) -> None:
    records = small(modes=1, tasks=1, graphs=1)
    for record in records:
        record |= {"world": "text(source=None)", "trace": None, "denoiser": "mine"}
    (path,) = write_report(records, tmp_path, replayed=5.0)
    assert "maskwalk play --denoiser zoo:books_mdm --length 64" in path.read_text("utf-8")
