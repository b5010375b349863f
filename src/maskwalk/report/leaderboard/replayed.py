"""The loss by replay of an evaluated policy, put into its records: they hold none of their own.

An evaluation holds the nats of a sequence and how many of its tokens were masked; a record's
`replay_kl` is in nats per masked token (worlds/exact/metrics.py), and so is what is put there.
"""

from collections.abc import Sequence
from typing import cast

from maskwalk.bench.records import Record
from maskwalk.bench.verdict.policy import setting_spec
from maskwalk.bench.verdict.read import Setting, Verdict
from maskwalk.report.leaderboard.board import KL
from maskwalk.worlds.tasks import TASKS


def with_replayed(records: Sequence[Record], found: Sequence[Verdict]) -> list[Record]:
    """The same records; those of an evaluated policy have the KL of its replay."""
    lost = {
        (scene.world, TASKS.canonical(scene.task), scene.denoiser, spec): setting
        for one in reversed(found)  # the last evaluation counts
        for scene in one.scenes
        for setting in scene.settings
        for spec in [setting_spec(one.policy, setting.point.name)]
    }
    made = []
    for record in records:
        place = (record["world"], record["task"], record["denoiser"], record["sampler"])
        setting = lost.get(place)
        nats = None if setting is None else _nats(setting)
        if nats is not None and KL not in record["metrics"]:
            record = cast(Record, {**record, "metrics": {**record["metrics"], KL: nats}})
        made.append(record)
    return made


def _nats(setting: Setting) -> dict[str, float | None] | None:
    loss = setting.loss or {}
    nats, error, masked = (loss.get(name) for name in ("kl", "kl_se", "masked"))
    if nats is None or not masked:
        return None
    return {"value": nats / masked, "se": None if error is None else error / masked}
