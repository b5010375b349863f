"""`maskwalk evaluate --denoiser`: a policy against baselines at its calls, on a model of text."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwalk.bench.verdict.on_text import judged, opponent, stand
from maskwalk.stats import normal_difference
from tests.text_files import own_model

Cli = Callable[..., tuple[int, str, str]]
POLICY = '''
from dataclasses import dataclass
import torch
from maskwalk import UnmaskingPolicy


@dataclass(frozen=True)
class LastFirst(UnmaskingPolicy):
    """From the right, one at a time."""

    def choose(self, view, state, rng):
        place = torch.arange(view.masked.shape[1])
        last = torch.where(view.masked, place, -1).amax(1)[:, None]
        return view.masked & (place == last), state
'''


def row(name: str, each: list[float] | None, calls: float = 4.0) -> Any:
    held = None if each is None else {"value": 1.0, "se": 0.1, "each": each, "bound": False}
    return {"sampler": name, "calls": {"value": calls}, "likelihood": held}


def test_the_opponent_is_chosen_on_the_other_half() -> None:
    """Baseline 0 is best on even passages, 1 on odd: each is met where it was not chosen."""
    table = np.array([[0.0, 9.0, 0.0, 9.0], [5.0, 1.0, 5.0, 1.0]])
    assert opponent(table).tolist() == [5.0, 9.0, 5.0, 9.0]
    assert opponent(table[:1]).tolist() == table[0].tolist()


def test_positions_are_paired_and_corrected() -> None:
    hard = np.linspace(0, 50, 40)
    small = np.tile([0.1, -0.1], 20)
    base = [row("base", hard.tolist()), row("worse", (hard + 9).tolist())]
    better, worse, level = ((hard + shift + small).tolist() for shift in (-0.5, 0.5, 0.0))
    found = judged([stand(row("p", each), base) for each in (better, worse, level, None)])
    assert [s.position for s in found] == ["beyond", "inside", "on", "–"]
    assert found[0].best == "base" and found[0].difference is not None
    assert found[0].difference.value == pytest.approx(-0.5)
    one = stand(row("p", (hard - 0.05 + 0.14 * small).tolist()), base)
    many = [stand(row("q", (hard + 9 * small).tolist()), base)] * 3
    assert one.difference is not None and one.difference.p < 0.05
    assert judged([one, *many])[1].position == "on"


def test_a_difference_of_means_with_its_interval() -> None:
    each = np.array([1.0, 2.0, 3.0])
    found = normal_difference(each)
    half = 1.959963984540054 * 1.0 / np.sqrt(3)
    assert (found.value, found.low, found.high) == pytest.approx((2.0, 2.0 - half, 2.0 + half))
    assert normal_difference(np.zeros(3)).p == 1.0 and normal_difference(np.ones(3)).p == 0.0
    assert normal_difference(np.ones(1)).p == 1.0


def test_a_policy_of_the_users_on_a_model_of_the_users(cli: Cli, tmp_path: Path) -> None:
    np.save(tmp_path / "tokens.npy", np.arange(96).reshape(16, 6) * 7 % 4)
    (tmp_path / "mine.py").write_text(POLICY)
    words = ["evaluate", f"{tmp_path / 'mine.py'}:LastFirst", "--denoiser"]
    words += [f"{own_model(tmp_path)}:model", "--texts", str(tmp_path / "tokens.npy")]
    words += ["--length", "6", "--count", "8", "--written", "3", "--paths", "2"]
    words += ["--out", str(tmp_path / "ev")]
    code, out, err = cli(*words, "--json")
    assert code == 0, err
    told = json.loads(out)
    (setting,) = told["settings"]
    assert told["contract"]["kept"] and told["model"] == "own.py:model"
    assert setting["setting"]["calls"]["value"] == 6.0
    assert "left_to_right()" in setting["baselines"] and "random(block=1)" in setting["baselines"]
    assert setting["position"] in ("beyond", "on", "inside")
    kept = (tmp_path / "ev" / "tune.jsonl").read_text()
    code, out, err = cli(*words)
    assert code == 0 and "LastFirst" in out and "Contract: kept." in out, err
    assert "held out: bits per token of held-out text. best baseline" in out
    assert (tmp_path / "ev" / "tune.jsonl").read_text() == kept
    code, _, err = cli("evaluate", "entropy(block=2)", "--texts", "x.txt")
    assert code == 2 and "--denoiser" in err
