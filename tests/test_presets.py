"""Presets: what they stand for can be built, pasted back, and is what the public code does."""

import csv
import io
import json
import shlex
from collections.abc import Callable

import pytest
import torch

from maskwalk import run
from maskwalk.bench.cell import Cell
from maskwalk.decoding.draw import DRAWS, decoding_of, mode_name, preset_sampler, race, read_draw
from maskwalk.decoding.kinds import SHAPED, result_kind
from maskwalk.decoding.presets import PRESETS
from maskwalk.report.arrange import arrange
from maskwalk.report.formats import long_csv
from maskwalk.samplers import SAMPLERS

DECODERS = [name for name, preset in PRESETS.items() if preset.sampler]
PLACE = {"graph": "st_er(nodes=5, p=0.2)", "walk": "lazy(stay=0.2)", "length": 6}


def options(line: str) -> dict[str, str]:
    """A line of options, as a shell would read it."""
    words = shlex.split(line)
    return {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2])}


@pytest.mark.parametrize("name", DECODERS)
def test_the_line_of_a_preset_is_the_preset(name: str) -> None:
    preset = PRESETS[name]
    said = options(preset.line)
    by_name = Cell.checked(
        **PLACE, task="unconditional", sampler=preset_sampler(name, ""), preset=name
    )
    by_line = Cell.checked(**PLACE, task="unconditional", **said)
    assert by_name == by_line and by_name.key == by_line.key
    # What a record prints comes back too.
    again = options(decoding_of(by_name.sampler, by_name.draw, by_name.ties))
    assert Cell.checked(**PLACE, task="unconditional", **again) == by_name
    assert preset.source and preset.ties == "index"


@pytest.mark.parametrize("name", DECODERS)
def test_public_decoders_shape_the_law(name: str) -> None:
    """None of them draws from the model's own marginals alone, and none is called exact."""
    draw = DRAWS.build(read_draw(name)[0])
    kind = SAMPLERS.build(preset_sampler(name, "")).law_kind
    assert result_kind(kind, draw.exact, one_at_a_time=True) == SHAPED


def test_a_name_of_a_draw_is_that_of_a_preset_for_any_sampler() -> None:
    assert mode_name(*read_draw("exact")) == "exact"
    assert mode_name(*read_draw("as_published")) == "as_published"
    assert mode_name(*read_draw("llada")) == "draw(temperature=0, over='all'), ties index"
    assert preset_sampler("exact", "bisection") == "bisection"
    assert preset_sampler("draw(top_p=0.9)", "bisection") == "bisection"


def test_every_result_says_its_decoding_in_a_line_that_brings_it_back(
    cli: Callable[..., tuple[int, str, str]],
) -> None:
    """In a notebook, in the table of all records of a report, and in what `diagnose` prints."""
    drawn = {"draw": "draw(top_p=0.9)", "ties": "index"}
    world = "walk(graph=st_er(nodes=5, p=0.2), law=lazy(stay=0.2), length=6)"
    result = run(world=world, sampler="corrected(inner=entropy(block=2))", count=8, **drawn)
    again = Cell.checked(
        world=world, task="unconditional", **options(result.decoding), count=8, length=None
    )
    assert again.key == result.cell.key
    assert result.row()["decoding"] == result.decoding
    (row,) = csv.DictReader(io.StringIO(long_csv(arrange([result.record]))))
    assert row["decoding"] == result.decoding

    words = ["diagnose", "--world", world, "--samplers", "entropy(block=2)", "--count", "4"]
    words += ["--draw", drawn["draw"], "--ties", drawn["ties"]]
    code, shown, said = cli(*words)
    assert code == 0, said
    line = "--sampler 'entropy(block=2)' --draw 'draw(top_p=0.9)' --ties index"
    assert line in shown.splitlines()
    code, shown, said = cli(*words, "--json")
    assert [row["decoding"] for row in json.loads(shown)] == [line], said


def test_the_commands(cli: Callable[..., tuple[int, str, str]]) -> None:
    words = "sample --graph 'st_er(nodes=5, p=0.2)' --walk 'lazy(stay=0.2)' --length 6 --count 4"
    code, shown, _ = cli(*shlex.split(words), "--preset", "fast_dllm", "--json")
    record = json.loads(shown)
    assert code == 0 and record["sampler"] == PRESETS["fast_dllm"].sampler
    assert record["decoding"] == PRESETS["fast_dllm"].line
    code, shown, _ = cli(
        *shlex.split(words), "--preset", "fast_dllm", "--sampler", "random()", "--json"
    )
    record = json.loads(shown)
    assert record["sampler"] == "random(block=1)" and "temperature=0" in record["draw"]
    code, shown, _ = cli("list", "presets")
    assert code == 0 and all(name in shown for name in PRESETS)
    code, _, said = cli(*shlex.split(words), "--preset", "lada")
    assert code == 2 and "llada" in said


def test_the_race_in_float32_lets_rarer_tokens_win() -> None:
    """A token of 1e-3 wins as often as it should; with noise in bfloat16 it loses most of that."""
    log_probs = torch.tensor([[0.999, 0.001]]).log().expand(200_000, -1)
    u = torch.rand((200_000, 2), generator=torch.Generator().manual_seed(0))
    wins = [int(race(log_probs, u, dtype).sum()) for dtype in (torch.float32, torch.bfloat16)]
    assert abs(wins[0] - 200) < 5 * 200**0.5
    assert wins[1] < 100
