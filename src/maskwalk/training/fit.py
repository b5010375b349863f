"""Training a model for a walk law: its walks, the network's shape, and validation by sampling.

The layer between the trainer, which knows nothing of sampling, and the command line.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import torch

from maskwalk import resources
from maskwalk.decoding.decode import decode
from maskwalk.denoisers.files import Pretrained
from maskwalk.denoisers.network.weights import DDiTConfig
from maskwalk.denoisers.resolve import resolve_world
from maskwalk.denoisers.trained import NetworkDenoiser
from maskwalk.errors import whole
from maskwalk.samplers import SAMPLERS
from maskwalk.streams import Streams
from maskwalk.training.loop import Validate, train
from maskwalk.training.settings import Job, Settings
from maskwalk.training.zoo import HELD, chosen, floor, train_zoo
from maskwalk.worlds.walks.world import walk_parts
from maskwalk.worlds.world import World, build_world

VALIDATION = 128  # walks sampled at every checkpoint


@dataclass(frozen=True)
class Plan:
    """What to train: a law (as canonical specs), how many of its walks, and a network."""

    world: str
    walks: int
    dropout: float
    config: DDiTConfig
    seed: int

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
    ) -> "Plan":
        """A plan from user input; the law is built once, so its mistakes are found here."""
        place = {"graph": graph, "walk": walk, "length": length, "graph_seed": graph_seed}
        spec = resolve_world("oracle", {**place, "world": world})
        law = build_world(spec)
        whole("walks", walks, 1)
        whole("seed", seed, 0, 2**63 - 1)
        config = DDiTConfig(law.vocab_size, law.length, hidden=hidden, blocks=blocks, heads=heads)
        return cls(spec, walks, dropout, config, seed)


def fit(plan: Plan, settings: Settings, out: Path, device: str, resume: bool) -> None:
    """Trains the plan's model into `out` (in every process, where several train together)."""
    law = build_world(plan.world)
    bottom, error = floor(law)
    job = Job(
        Path(out).name or "model",
        law.sample(plan.walks, seed=plan.seed + 1),
        plan.seed,
        plan.dropout,
        law.sample(HELD, seed=plan.seed + 1, first=1_000_000_000),
        bottom,
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
    worlds: Mapping[str, World], count: int = VALIDATION, samplers: dict[str, str] | None = None
) -> Validate:
    """Validation: unconditional coherence with exact draws, by default of greedy entropy.

    `samplers` gives each number's name and the spec of the sampler behind it.
    """
    watched = samplers or {"coherence": "entropy(block=1)"}

    def validate(name: str, denoiser: NetworkDenoiser) -> dict[str, float]:
        world = worlds[name]
        blank = torch.full((count, world.length), denoiser.mask_id, device=denoiser.device)
        streams = Streams(0, torch.arange(count, device=denoiser.device))
        coherences = {}
        for key, spec in watched.items():
            walks = decode(SAMPLERS.build(spec), denoiser, blank, streams=streams).tokens.cpu()
            valid = world.valid(walks)
            if valid is not None:
                coherences[key] = float(valid.all(1).double().mean())
        return coherences

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
) -> dict[str, Pretrained]:
    """Trains recipes of `training.zoo` in one batched run and packs them as a zoo into `out`."""
    recipes = chosen(names)
    laws = {name: recipe.law() for name, recipe in recipes.items()}
    watched = {"coherence": "entropy(block=1)", "coherence_bisection": "bisection(order=1)"}
    about = {
        "commit": commit or resources.commit(),
        "device": "CPU" if device == "cpu" else torch.cuda.get_device_name(),
        "trained": datetime.now(UTC).date().isoformat(),
        "trained_together": len(laws),
    }
    return train_zoo(
        names,
        out,
        work,
        settings=settings,
        device=device,
        resume=resume,
        validate=coherence_on(laws, samples, watched),
        extra=about,
    )
