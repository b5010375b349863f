"""`maskwalk train`: a model of your own on a graph's walks."""

from pathlib import Path
from typing import Annotated

import typer

from maskwalk.cli import common
from maskwalk.cli.common import bring_in, check_device, out, say_written
from maskwalk.errors import MaskwalkError, whole


def train(
    to: Annotated[
        Path,
        typer.Option(
            "--out",
            parser=common.path,
            help="Directory for the model and checkpoints.",
        ),
    ],
    world: common.World = None,
    graph: common.Graph = None,
    walk: common.Walk = None,
    length: common.Length = None,
    graph_seed: common.GraphSeed = None,
    walks: Annotated[int, typer.Option(help="Training sequences.")] = 100_000,
    steps: Annotated[int, typer.Option(help="Optimiser steps.")] = 50_000,
    batch: Annotated[int, typer.Option(help="Sequences per step.")] = 256,
    lr: Annotated[float, typer.Option(help="Peak learning rate.")] = 3e-4,
    dropout: Annotated[float, typer.Option(help="Dropout rate.")] = 0.1,
    masking: Annotated[
        str, typer.Option(help="uniform (the paper's), coarse(share=0.5) or along(sampler=…).")
    ] = "uniform",
    output: Annotated[
        str, typer.Option(help="softmax (the paper's), chain(rank=32) or entmax(alpha=1.5).")
    ] = "softmax",
    hidden: Annotated[int, typer.Option(help="Width of the network.")] = 256,
    blocks: Annotated[int, typer.Option(help="Transformer blocks.")] = 4,
    heads: Annotated[int, typer.Option(help="Attention heads.")] = 4,
    every: Annotated[int, typer.Option(help="Steps between checkpoints.")] = 2_000,
    seed: Annotated[int, typer.Option(help="Seed of weights, walks and noise.")] = 0,
    device: common.Device = "cpu",
    devices: Annotated[int, typer.Option(help="Processes (GPUs) for data-parallel training.")] = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last checkpoint.")
    ] = False,
    include: common.Include = None,
) -> None:
    """Train the paper's masked diffusion model on sequences of a world, walks if none is named.

    The defaults are the paper's. In under three minutes on two CPU cores:

    \b
    maskwalk train --graph 'st_er(nodes=30, p=0.1)' --hidden 64 --blocks 1 \\
      --heads 2 --batch 64 --steps 4800 --lr 0.006 --dropout 0 --out runs/small

    Then: maskwalk sample --denoiser runs/small --sampler 'entropy(block=1)'

    For a model that is to decode in few calls, --masking 'coarse(share=0.5)' shows it half of its
    training sequences as a coarse-to-fine sampler leaves them; maskwalk list maskings.
    --output chain joins neighbouring positions, for worlds whose tokens depend on their neighbours;
    maskwalk list outputs.
    """
    from maskwalk.training.checkpoints import checkpoints
    from maskwalk.training.distributed import launch
    from maskwalk.training.fit import Plan, check_memory, fit
    from maskwalk.training.settings import Settings

    bring_in(include)
    plan = Plan.checked(
        graph,
        walk,
        length,
        graph_seed,
        walks,
        dropout,
        hidden,
        blocks,
        heads,
        seed,
        world,
        masking,
        output,
    )
    settings = Settings(
        steps=steps, batch=batch, lr=lr, lr_min=min(lr, Settings.lr_min), every=min(every, steps)
    )
    check_memory(plan.config, settings.batch)
    if batch % whole("devices", devices, 1, 1024):
        raise MaskwalkError(f"--batch {batch} cannot be shared by --devices {devices} evenly.")
    if resume and not checkpoints(to):
        out.print(f"There is no checkpoint in {to}: starting at step 0.", soft_wrap=True)
    launch(fit, devices, plan, settings, to, check_device(device), resume)
    say_written(to / "model.safetensors")
    out.print(f"Next: maskwalk sample --denoiser {to} --sampler 'entropy(block=1)'", soft_wrap=True)
