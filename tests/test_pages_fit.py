"""Pages of real records fit their window: nothing is cut, and no words lie on others."""

from pathlib import Path
from typing import Any

import pytest

from maskwalk.bench.versions import load_newest
from maskwalk.report import write_report
from maskwalk.report.thin import some_metrics, some_settings

RESULTS = Path(__file__).parent.parent / "results"
WRONG = """() => {
  const wide = document.documentElement.clientWidth, wrong = [];
  if (document.documentElement.scrollWidth > wide) wrong.push("wider than the window");
  for (const svg of document.querySelectorAll(".plot svg")) {
    const box = svg.getBoundingClientRect();
    const words = [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim())
      .map((t) => [t.textContent, t.getBoundingClientRect()]);
    for (const [said, at] of words)
      if (at.left < box.left - 1 || at.right > box.right + 1) wrong.push(`cut: ${said}`);
    for (const [i, [said, a]] of words.entries())
      for (const [other, b] of words.slice(i + 1)) {
        const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (x > 3 && y > 4) wrong.push(`${said} on ${other}`);
      }
  }
  return wrong;
}"""


@pytest.fixture(scope="module", params=["quickstart", "atlas", "worlds"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with long modes, one with many settings at a place, one with many rules."""
    folder = tmp_path_factory.mktemp(request.param)
    records = some_metrics(load_newest(RESULTS / request.param)[0], ["coherence", "calls"])
    if request.param == "worlds":
        records = some_settings(records, 1)
    write_report(records, folder, ("html",))
    return folder / "report.html"


@pytest.mark.parametrize("width", [1400, 390])
def test_nothing_is_cut_and_no_words_lie_on_others(visit: Any, made: Path, width: int) -> None:
    tab = visit(made)
    tab.set_viewport_size({"width": width, "height": 900})
    tab.wait_for_timeout(300)
    assert tab.evaluate("document.querySelectorAll('.plot svg').length") > 3
    assert tab.evaluate(WRONG) == []


def test_the_sequence_is_in_sight_above_the_controls(cli: Any, visit: Any, tmp_path: Path) -> None:
    """On a laptop, without scrolling: the first picture of the README."""
    samplers = ("--sampler", "bisection", "--sampler", "random(block=4)")
    to = ("--task", "endpoints", "--out", str(tmp_path / "play.html"))
    code, _, err = cli("play", *samplers, *to)
    assert code == 0, err
    tab = visit(tmp_path / "play.html", reduced_motion="reduce")
    tab.set_viewport_size({"width": 1400, "height": 900})
    tab.wait_for_timeout(300)
    box = "document.querySelector('{}').getBoundingClientRect().{}"
    low, deck = box.format(".tile-of:last-child", "bottom"), box.format(".deck", "top")
    assert 500 < tab.evaluate(low) <= tab.evaluate(deck)
