"""`maskwalk sample`: one sampler, one world, one task."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskwalk.cli import common, complete
from maskwalk.cli.common import bring_in, check_device, out, say_written
from maskwalk.cli.waiting import positions_shown

if TYPE_CHECKING:
    from maskwalk.bench.records import Record


def sample(
    world: common.World = None,
    graph: common.Graph = None,
    walk: common.Walk = None,
    length: common.Length = None,
    graph_seed: common.GraphSeed = None,
    denoiser: common.Denoiser = "oracle",
    sampler: Annotated[
        str | None,
        typer.Option(
            help="The sampler, as a spec or FILE.py:Class (the file is run) \\[the preset's, or "
            "bisection(order=1)].",
            autocompletion=complete.samplers,
        ),
    ] = None,
    task: common.Task = "unconditional",
    preset: common.Preset = "exact",
    draw: common.DrawSpec = None,
    ties: common.Ties = None,
    count: common.Count = 512,
    per_prompt: common.PerPrompt = 1,
    seed: common.Seed = 0,
    device: common.Device = "cpu",
    trace: Annotated[Path | None, typer.Option(help="Save the trace as Parquet.")] = None,
    as_json: common.AsJson = False,
    include: common.Include = None,
) -> None:
    """Decode sequences with one sampler and say how good they are.

    Under torchrun every process decodes its part of them.

    Example: maskwalk sample --sampler 'entropy(block=2)' --task endpoints

    Example: maskwalk sample --denoiser zoo:st_er_deg7 --sampler 'entropy(block=1)' --count 64

    Example: maskwalk sample --denoiser zoo:st_er_deg7 --draw 'draw(floor=0.2)' --count 64

    Example: maskwalk sample --denoiser zoo:st_er_deg7 --preset fast_dllm --count 64
    """
    from maskwalk.bench.verdict.policy import as_spec
    from maskwalk.decoding.processes import rows_shared
    from maskwalk.report.notebook import run

    bring_in(include)
    with rows_shared(check_device(device)) as group, positions_shown(group.first):
        result = run(
            None if sampler is None else as_spec(sampler),
            world=world,
            graph=graph,
            graph_seed=graph_seed,
            walk=walk,
            length=length,
            task=task,
            denoiser=denoiser,
            preset=preset,
            draw=draw,
            ties=ties,
            count=count,
            per_prompt=per_prompt,
            seed=seed,
            device=group.device,
            trace=trace is not None or 1,
        )
    if not group.first:
        return
    if trace is not None and result.trace is not None:
        result.trace.save(trace)
    if as_json:
        print(json.dumps(summary(result.record)))
        return
    from maskwalk.report.sequence import sample_summary

    out.print(sample_summary(result.record, result.shown_sequences()))
    if trace is not None:
        say_written(trace)


def summary(record: "Record") -> dict[str, Any]:
    """What --json prints: the settings and every number, flat."""
    from maskwalk.bench.records import numbers
    from maskwalk.decoding.draw import decoding_in
    from maskwalk.worlds.walks.world import walk_parts

    left_out = ("schema", "key", "metrics", "trace", "described")
    settings = {key: value for key, value in record.items() if key not in left_out}
    settings["decoding"] = decoding_in(record)
    return {**settings, **(walk_parts(record["world"]) or {}), **numbers(record)}
