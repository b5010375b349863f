"""leaderboard.json and leaderboard.html: the same tracks for a machine and for a person."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from maskwalk import __version__
from maskwalk.decoding.kinds import SHAPED
from maskwalk.report.leaderboard.board import BUDGETS, KL_BUDGET, LAST, Entry, Number, Track
from maskwalk.report.page import pasted, render
from maskwalk.report.words import SHAPED_MEANS, capital, plural
from maskwalk.resources import write_file

JSON, PAGE = "leaderboard.json", "leaderboard.html"
MEANS = {
    "exact": "one token at a time, or shown to have the same law",
    "factorised": "positions are chosen before anything is drawn there",
    SHAPED: SHAPED_MEANS,
}


def write_board(found: Sequence[Track], out: Path, command: str) -> list[Path]:
    """Writes both files into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    files = {
        JSON: json.dumps(board_data(found), indent=1, ensure_ascii=False) + "\n",
        PAGE: board_page(found, command),
    }
    for name, text in files.items():
        write_file(out / name, text.encode())
    return [out / name for name in files]


def board_data(found: Sequence[Track]) -> dict[str, Any]:
    """The board as JSON: every number with half of its 95 % interval."""
    return {
        "version": __version__,
        "budgets": list(BUDGETS),
        "tracks": [
            {
                "experiment": track.name,
                "mode": track.mode,
                "quality": track.quality,
                "scenes": track.scenes,
                "entries": [_data(entry, place) for place, entry in enumerate(track.entries, 1)],
                "partial": [_data(entry, None) for entry in track.partial],
            }
            for track in found
        ],
    }


def _data(entry: Entry, place: int | None) -> dict[str, Any]:
    return {
        "place": place,
        "rule": entry.rule,
        "kind": entry.kind,
        "own": entry.own,
        "settings": entry.settings,
        "scenes": entry.scenes,
        "within": {str(budget): _pair(number) for budget, number in entry.within.items()},
        "area": _pair(entry.area),
        "kl_per_token": _pair(entry.kl),
    }


def _pair(number: Number | None) -> list[float] | None:
    return None if number is None else [round(number.value, 5), round(number.half, 5)]


def board_page(found: Sequence[Track], command: str) -> str:
    """The page as text."""
    return render(
        "leaderboard.html",
        style=pasted("style.css", "leaderboard.css"),
        script=pasted("fade.js", "leaderboard.js"),
        tracks=found,
        budgets=BUDGETS,
        last=LAST,
        kl_budget=KL_BUDGET,
        means=MEANS,
        shaped=SHAPED,
        capital=capital,
        plural=plural,
        command=command,
        version=__version__,
    )
