"""Colours of families can be told apart on light and on dark; of many families most are grey."""

from itertools import combinations
from math import dist
from pathlib import Path
from typing import Any

import pytest

from maskwalk.bench.labels import KNOWN, SPARE
from maskwalk.report import write_report
from maskwalk.report.arrange import arrange
from maskwalk.report.words import note_words
from maskwalk.worlds.exact.world import NOTE
from maskwalk.worlds.walks.oracles.base import LEAK
from tests import fake_records
from tests.fake_records import with_coherence

LEAST = 0.09  # in OKLab; 0.02 is just visible side by side


def oklab(colour: str) -> tuple[float, ...]:
    """Björn Ottosson's OKLab of an sRGB colour."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    long = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    middle = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    short = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


@pytest.mark.parametrize("theme", [0, 1])
def test_no_two_families_look_alike(theme: int) -> None:
    colours = [look[theme] for look in (*KNOWN.values(), *SPARE)]
    apart = {(a, b): dist(oklab(a), oklab(b)) for a, b in combinations(colours, 2)}
    assert min(apart.values()) > LEAST, min(apart, key=lambda pair: apart[pair])


def test_the_distance_is_that_of_oklab() -> None:
    assert oklab("#ffffff") == pytest.approx((1, 0, 0), abs=1e-4)
    assert dist(oklab("#f29bce"), oklab("#e583ae")) < LEAST  # two that were taken for one


def many() -> list[dict[str, Any]]:
    """Twenty families, of which the first has the best coherence and the fewest calls."""
    records = []
    for i in range(20):
        one = fake_records.record(sampler=f"rule_{chr(97 + i)}()", cell=i)
        one = with_coherence(one, 0.9 if i == 0 else 0.3, 0.01)
        one["metrics"]["calls"] |= {"value": 4.0 if i == 0 else 9.0}
        records.append(one)
    return records


COLOUR = "(f) => getComputedStyle(document.querySelector(`.family.fam${f} .mark path`)).fill"


def test_families_off_the_front_are_grey_until_they_are_pointed_at_or_chosen(
    visit: Any, tmp_path: Path
) -> None:
    (path,) = write_report(many(), tmp_path)
    tab = visit(path)
    names = [family.label for family in arrange(many()).families]
    first, other = names.index("rule a"), names.index("rule c")
    grey = tab.evaluate(COLOUR, other)
    assert tab.evaluate(COLOUR, first) != grey
    assert sum(tab.evaluate(COLOUR, f) == grey for f in range(20)) == 19
    chip = tab.locator(f"[data-family='{other}']")
    chip.hover()
    assert tab.evaluate(COLOUR, other) != grey
    tab.mouse.move(0, 0)
    assert tab.evaluate(COLOUR, other) == grey
    chip.click()
    tab.mouse.move(0, 0)
    assert tab.evaluate(COLOUR, other) != grey and chip.get_attribute("aria-pressed") == "true"
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    tab.get_by_role("button", name="Show all").click()
    tab.mouse.move(0, 0)
    assert chip.get_attribute("aria-pressed") == "true" and tab.evaluate(COLOUR, other) != grey


def test_notes_are_written_as_a_person_would() -> None:
    old = "network in float16, 4096 sequences a call"
    assert note_words(old) == "network in float16, 4,096 sequences per call"
    assert note_words("seed 0.12345, rows=256") == "seed 0.12345, rows=256"
    for note, answer in ((LEAK, "those that break fewest steps"), (NOTE, "every token alike")):
        assert note_words(note).endswith(f"the oracle then answers with {answer}")
