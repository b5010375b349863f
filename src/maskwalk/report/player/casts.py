"""Which samplers of a report are on its player, panel by panel, and the stages they play on."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from maskwalk.bench.labels import read
from maskwalk.report.player.stages import Stage, spec_stage
from maskwalk.report.study import Study

MOST_CAST = 6  # samplers of a panel
LEADS = ("bisection", "guided_bisection")
TEXT = "text"  # has texts of its own, side by side
Traces = Mapping[tuple[int, int, int], Mapping[str, Any]]  # by mode, panel and sampler


def casts(study: Study, traces: Traces, own: Sequence[str] = ()) -> list[dict[str, Any]]:
    """For every mode and panel with traces: up to six samplers, of as many families as there are.

    Families of one's `own`, those that were evaluated, come first, and `first` says that the
    player begins with the first of them beside bisection.
    `stages` has one stage for all of them, so that panes can be compared; or one for each where
    their walks together are too long for a map.
    """
    places: dict[tuple[int, int], list[int]] = defaultdict(list)
    for mode, panel, sampler in sorted(traces):
        places[mode, panel].append(sampler)
    found = []
    for (mode, panel), samplers in places.items():
        world = str(study.cells[mode, panel, samplers[0]]["world"])
        if read(world).name == TEXT:
            continue
        chosen = varied(study, samplers, {s: traces[mode, panel, s] for s in samplers}, own)
        drawn = stages(world, [traces[mode, panel, s]["tokens"] for s in chosen])
        cast = {"m": mode, "p": panel, "s": chosen, "stages": drawn}
        found.append(cast | _first(study, chosen, own))
    return found


def _first(study: Study, chosen: Sequence[int], own: Sequence[str]) -> dict[str, list[int]]:
    """Of which samplers the player begins: one's own and a bisection; nothing where none is."""
    places = {study.samplers[s].family: s for s in reversed(chosen)}
    mine = [places[name] for name in own if name in places][:1]
    leads = [places[name] for name in LEADS if name in places and name not in own][:1]
    return {"first": [*mine, *leads]} if mine else {}


def stages(world: str, walks: list[list[int]]) -> list[Stage]:
    """A world that cannot be built here shows its tokens."""
    shared = spec_stage(world, walks) or {"kind": "words"}
    if shared["kind"] != "words" or len(walks) == 1:
        return [shared]
    alone = [spec_stage(world, [walk]) or {"kind": "words"} for walk in walks]
    return alone if any(stage["kind"] == "graph" for stage in alone) else [shared]


def varied(
    study: Study, samplers: Iterable[int], traces: Mapping[int, Any], own: Sequence[str] = ()
) -> list[int]:
    """One setting of each family, the middle one by its rounds; then others, up to six.

    One's own first, but for a place that is left to compare them with; then the leads.
    """
    families: dict[str, list[int]] = defaultdict(list)
    for s in sorted(samplers, key=lambda s: (max(traces[s]["rounds"]), s)):
        families[study.samplers[s].family].append(s)
    mine = [name for name in dict.fromkeys(own) if name in families][: MOST_CAST - 1]
    order = sorted(families, key=lambda name: (name not in LEADS, families[name][0]))
    order = [*mine, *(name for name in order if name not in mine)]
    first = [families[name][(len(families[name]) - 1) // 2] for name in order][:MOST_CAST]
    rest = [s for name in order for s in families[name] if s not in first]
    return [*first, *rest[: MOST_CAST - len(first)]]
