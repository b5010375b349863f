"""Training a model for a walk law: its walks, the network's shape, and validation by sampling.

The layer between the trainer, which knows nothing of sampling, and the command line.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import torch

from maskwalk import resources
from maskwalk.decoding.decode import decode
from maskwalk.denoisers.files import Pretrained
from maskwalk.denoisers.network.outputs import PLAIN as SOFTMAX
from maskwalk.denoisers.network.weights import DDiTConfig
from maskwalk.denoisers.resolve import resolve_world
from maskwalk.denoisers.trained import NetworkDenoiser
from maskwalk.errors import seed_number, whole
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from maskwalk.training.checkpoints import name_in
from maskwalk.training.loop import Validate, train
from maskwalk.training.maskings import MASKINGS, check_output
from maskwalk.training.settings import PLAIN, Job, Settings
from maskwalk.training.zoo import HELD, WorldRecipe, chosen, floor, train_zoo
from maskwalk.worlds.sizes import check_sequences, fits
from maskwalk.worlds.tasks import HELD_OUT, TASKS
from maskwalk.worlds.walks.world import walk_parts
from maskwalk.worlds.world import World, build_world

VALIDATION = 128  # walks sampled at every checkpoint
GREEDY = "entropy(block=1)"


@dataclass(frozen=True)
class Plan:
    """What to train: a law (as canonical specs), how many of its walks, and a network."""

    world: str
    walks: int
    dropout: float
    config: DDiTConfig
    seed: int
    masking: str = PLAIN

    @classmethod
    def checked(
        cls,
        graph: str | None,
        walk: str | None,
        length: int | None,
        graph_seed: int | None,
        walks: int,
        dropout: float,
        hidden: int,
        blocks: int,
        heads: int,
        seed: int,
        world: str | None = None,
        masking: str = PLAIN,
        output: str = SOFTMAX,
    ) -> "Plan":
        """A plan from user input; the law is built once, so its mistakes are found here."""
        place = {"graph": graph, "walk": walk, "length": length, "graph_seed": graph_seed}
        spec = resolve_world("oracle", {**place, "world": world})
        law = build_world(spec)
        check_sequences(whole("walks", walks, 1, HELD_OUT), law.length)
        seed_number("seed", seed)
        config = DDiTConfig(law.vocab_size, law.length, hidden=hidden, blocks=blocks, heads=heads)
        config = replace(config, output=output)
        masking = MASKINGS.canonical(masking)
        check_output(MASKINGS.build(masking), masking, config)  # its numbers are checked here, too
        return cls(spec, walks, dropout, config, seed, masking)


def check_memory(config: DDiTConfig, batch: int) -> None:
    """Refuses a network or a batch that no memory here holds, before anything is made."""
    size = 24.0 * config.parameters
    size += (
        4.0
        * batch
        * config.length
        * (40 * config.hidden * config.blocks + config.head.copies * config.rows)
    )
    what = f"Training {config.parameters:,} weights on batches of {batch:,} sequences"
    fits(what, size, "Use a smaller --batch, --hidden or --blocks.")


def fit(plan: Plan, settings: Settings, out: Path, device: str, resume: bool) -> None:
    """Trains the plan's model into `out` (in every process, where several train together)."""
    law = build_world(plan.world)
    bottom, error = floor(law)
    job = Job(
        name_in(Path(out), resume) or "model",
        law.sample(plan.walks, seed=plan.seed + 1),
        plan.seed,
        plan.dropout,
        law.sample(HELD, seed=plan.seed + 1, first=1_000_000_000),
        bottom,
        plan.masking,
    )
    place = walk_parts(plan.world) or {}  # beside the world, as the shipped models say it
    about = [{"world": plan.world, **place, "walk_seed": plan.seed + 1, "floor_se": error}]
    validate = coherence_on({job.name: law})
    train(
        plan.config,
        [job],
        settings,
        out,
        device=device,
        resume=resume,
        validate=validate,
        about=about,
    )


def coherence_on(
    worlds: Mapping[str, World],
    count: int = VALIDATION,
    samplers: dict[str, str] | None = None,
    tasks: Mapping[str, Mapping[str, str]] | None = None,
) -> Validate:
    """Validation: coherence with exact draws, unconditional and by default of greedy entropy.

    `samplers` gives each number's name and the spec of the sampler behind it; `tasks`, for each
    world, names of more numbers and the tasks behind them (greedy entropy again). Where every
    sequence is possible there is nothing to count.
    """
    watched = samplers or {"coherence": GREEDY}

    def coherence(world: World, denoiser: NetworkDenoiser, task: str, sampler: str) -> float | None:
        prompts = TASKS.build(task, world=world, prompts=count, seed=0).tokens
        start = prompts.masked_fill(prompts == world.vocab_size, denoiser.mask_id)
        streams = Streams(0, torch.arange(count, device=denoiser.device))
        rule = SAMPLERS.build(sampler)
        tokens = decode(rule, denoiser, start.to(denoiser.device), streams=streams).tokens
        valid = None if getattr(world, "full_support", False) else world.valid(tokens.cpu())
        return None if valid is None else float(valid.all(1).double().mean())

    def validate(name: str, denoiser: NetworkDenoiser) -> dict[str, float]:
        more = (tasks or {}).get(name, {})
        asked = {key: ("unconditional", spec) for key, spec in watched.items()}
        asked |= {key: (task, GREEDY) for key, task in more.items()}
        numbers = {key: coherence(worlds[name], denoiser, *how) for key, how in asked.items()}
        return {key: value for key, value in numbers.items() if value is not None}

    return validate


def fit_zoo(
    names: list[str],
    out: Path,
    work: Path,
    *,
    settings: Settings,
    device: str,
    resume: bool,
    samples: int = 512,
    commit: str | None = None,
    seed: int = 0,
) -> dict[str, Pretrained]:
    """Trains recipes of `training.zoo` in one batched run and packs them as a zoo into `out`."""
    recipes = chosen(names)
    laws = {name: recipe.law() for name, recipe in recipes.items()}
    watched = {"coherence": "entropy(block=1)", "coherence_bisection": "bisection(order=1)"}
    tasks = {
        name: {"coherence_given": "given(share=0.5)", "coherence_task": recipe.task}
        for name, recipe in recipes.items()
        if isinstance(recipe, WorldRecipe)
    }
    about = {
        "commit": commit or resources.commit(),
        "device": "CPU" if device == "cpu" else torch.cuda.get_device_name(),
        "trained": datetime.now(UTC).date().isoformat(),
    }
    return train_zoo(
        names,
        out,
        work,
        settings=settings,
        device=device,
        resume=resume,
        validate=coherence_on(laws, samples, watched, tasks),
        extra=about,
        seed=seed,
    )
