"""The jobs of a diagnosis on text: what a policy's blocks lose under the model itself.

Nobody knows the law of text, so the loss has no split by cause. The model's own chain of
conditionals stands for the law: of the positions revealed in one round, what log p loses when each
is drawn without seeing the others. A row has the fields of any diagnosis (diagnosis.py); what only
a known law says (coherence, KL, denoiser error, regret) is null.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from maskwalk.analysis.losses import diagnose, for_json
from maskwalk.analysis.paths import batch_for
from maskwalk.analysis.replay import check_replayable
from maskwalk.bench.plan import Job
from maskwalk.bench.subject import Subject
from maskwalk.bench.texts import batch_on
from maskwalk.decoding.draw import DRAWS, mode_name
from maskwalk.samplers import SAMPLERS
from maskwalk.specs.sources import sources

Row = dict[str, Any]


def text_jobs(
    subject: Subject, samplers: Sequence[str], draw: str, ties: str, orders: int, seed: int
) -> list[Job]:
    """A job for every sampler; those that cannot be replayed are refused before anything runs."""
    for spec in samplers:
        check_replayable(SAMPLERS.build(spec), DRAWS.build(draw))
    how = {"draw": draw, "ties": ties, "orders": orders, "seed": seed}
    return [_job(subject, spec, how) for spec in samplers]


def _job(subject: Subject, sampler: str, how: Row) -> Job:
    files = sources(sampler, how["draw"])
    about = {"sampler": sampler, **how, **subject.about, "files": sorted(files.values())}
    key = hashlib.sha256(json.dumps(["text losses", about], sort_keys=True).encode()).hexdigest()
    says = {"sampler": sampler, "model": subject.name, "seed": how["seed"], "draw": how["draw"]}
    arguments = {"subject": asdict(subject), "sampler": sampler, **how}
    return Job(
        key,
        "text_losses",
        arguments,
        {"label": sampler},
        says=says,
        sources=files | subject.sources,
    )


def text_losses_row(
    subject: Row, sampler: str, draw: str, ties: str, orders: int, seed: int, device: str
) -> Row:
    """The job: one policy's losses on the passages."""
    known = Subject(**subject)
    model, passages = known.load(device)
    length = passages.tokens.shape[1]
    row = diagnose(
        None,
        model.denoiser,
        SAMPLERS.build(sampler),
        passages.tokens.to(model.device),
        passages.given.to(model.device),
        seed=seed,
        draw=DRAWS.build(draw),
        ties=ties,
        orders=orders,
        law=model.denoiser,
        batch=batch_for(model, length, batch_on(device)),
    )
    for part in (*row["rounds"], row["example"]):
        part["denoiser"] = None  # nobody knows how far the model is from the law
    scored = float((~passages.given).sum()) / len(passages)
    place: Row = {
        "world": known.world(length),
        "task": "unconditional()",
        "draw": draw,
        "ties": ties,
    }
    place |= {"seed": seed, "sampler": sampler, "mode": mode_name(draw, ties), "model": known.name}
    place |= {"tokens": scored, "bytes": float(passages.sizes.sum()) / len(passages)}
    place |= {"unit": passages.unit, "sources": sources(sampler, draw) | known.sources}
    return dict(for_json(row | place))


USUAL = 64  # tokens of a text where every setting writes and is replayed, if nobody says


def resolved(subject: Subject, device: str, usual: int | None = None) -> tuple[Subject, list[str]]:
    """The subject with its length said, once it is known to load; and what is odd about it.

    `usual`: the length where nobody names one, if the passages are as long.
    """
    model, passages = subject.load(device)
    if usual is not None and subject.length is None and passages.tokens.shape[1] > usual:
        model, passages = replace(subject, length=usual).load(device)
    notes = [*model.notes, *passages.notes]
    return replace(subject, length=passages.tokens.shape[1]), notes
