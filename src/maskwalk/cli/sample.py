"""`maskwalk sample`: one sampler, one graph, one task."""

import json
from pathlib import Path
from typing import Annotated

import typer

from maskwalk.cli import common
from maskwalk.cli.common import bring_in, check_device, out, say_written


def sample(
    graph: common.Graph = None,
    walk: common.Walk = None,
    length: common.Length = None,
    denoiser: common.Denoiser = "oracle",
    sampler: Annotated[str, typer.Option(help="The sampler, as a spec.")] = "bisection(order=1)",
    task: common.Task = "unconditional",
    preset: common.Preset = "exact",
    count: common.Count = 512,
    per_prompt: common.PerPrompt = 1,
    graph_seed: common.GraphSeed = None,
    seed: common.Seed = 0,
    device: common.Device = "cpu",
    trace: Annotated[Path | None, typer.Option(help="Save the trace as Parquet.")] = None,
    as_json: common.AsJson = False,
    include: common.Include = None,
) -> None:
    """Decode walks with one sampler and say how good they are.

    Example: maskwalk sample --sampler 'entropy(block=2)' --task endpoints

    Example: maskwalk sample --denoiser zoo:st_er_deg7 --sampler 'entropy(block=1)' --count 64
    """
    from maskwalk.bench.cell import Cell, run_cell
    from maskwalk.cli.tables import summary
    from maskwalk.report.walk import walk_summary
    from maskwalk.worlds.walks.build import build_law

    bring_in(include)
    cell = Cell.checked(
        graph=graph,
        graph_seed=graph_seed,
        walk=walk,
        length=length,
        task=task,
        sampler=sampler,
        denoiser=denoiser,
        preset=preset,
        count=count,
        per_prompt=per_prompt,
        seed=seed,
    )
    record, decoded = run_cell(cell, check_device(device), trace=trace is not None or 1)
    if trace is not None and decoded.trace is not None:
        decoded.trace.save(trace)
    if as_json:
        print(json.dumps(summary(record)))
        return
    law = build_law(cell.graph, cell.graph_seed, cell.walk, cell.length)
    some = decoded.tokens[:4]
    out.print(walk_summary(record, some.tolist(), law.valid(some).tolist()))
    if trace is not None:
        say_written(trace)
