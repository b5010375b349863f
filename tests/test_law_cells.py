"""Shaped results are measured against the law, and reports know how far they are from it."""

from pathlib import Path

import pytest

from maskwalk.bench.cell import run_cell
from maskwalk.bench.experiment import Experiment
from maskwalk.bench.kinds import Departures, kind_of
from maskwalk.bench.law_cells import only_law
from maskwalk.errors import MaskwalkError
from maskwalk.report.arrange import arrange
from maskwalk.report.thin import some_metrics, some_settings

FILE = """
name = "small"
count = 48
metrics = ["coherence", "calls"]
samplers = ["left_to_right", "bisection", "threshold_drawn(tau=0.5)"]
tasks = ["endpoints"]
law = {law}
[[graphs]]
title = "graph"
graph = "st_er(nodes=60, p=0.0)"
walk = "lazy(stay=0.5)"
length = 12
"""


def experiment(directory: Path, law: str = "{ prompts = 32, per_prompt = 8 }") -> Experiment:
    path = directory / "small.toml"
    path.write_text(FILE.replace("{law}", law))
    return Experiment.load(path)


def test_the_laws_cells_are_those_of_shaped_results_and_one_reference(tmp_path: Path) -> None:
    cells = experiment(tmp_path).cells
    law = [cell for cell in cells if cell.metrics == ("rank_tv",)]
    assert [cell.sampler for cell in law] == ["left_to_right()", "threshold_drawn(tau=0.5)"]
    assert {(cell.count, cell.per_prompt) for cell in law} == {(32, 8)}
    assert cells[:3] == experiment(tmp_path).reduced(999, 1).cells  # a quick run has none
    assert len(cells) == 5


def test_a_report_takes_departures_from_them_and_does_not_draw_them(tmp_path: Path) -> None:
    records = []
    for number, entry in enumerate(experiment(tmp_path).entries):
        record, _ = run_cell(entry.cell, trace=False)
        records.append(record | {"experiment": "small", "cell": number, "title": "graph"})
    assert [only_law(record) for record in records] == [False] * 3 + [True] * 2
    departure = Departures(records).of(records[2])
    assert kind_of(records[2]) == "shaped" and departure.value > 4 * departure.se
    study = arrange(records)
    assert len(study.cells) == 3 and "rank_tv" not in [m.key for m in study.metrics]
    (shaped,) = [place for place, kind in study.kinds.items() if kind == "shaped"]
    assert study.law_words(*shaped).startswith("off the law by")
    assert len(arrange(records[3:]).cells) == 2  # alone, they are shown
    thin = some_metrics(some_settings(records, 1), ["coherence"])
    assert arrange(thin).law_words(*shaped).startswith("off the law by")


@pytest.mark.parametrize(
    "law", ["7", "{ prompts = 1 }", "{ per_prompt = 1 }", "{ walks = 3 }", "{ prompts = '2' }"]
)
def test_a_wrong_setting_is_a_sentence(tmp_path: Path, law: str) -> None:
    with pytest.raises(MaskwalkError, match="law"):
        experiment(tmp_path, law)
