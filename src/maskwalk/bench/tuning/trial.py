"""The job of `maskwalk tune`: one setting of a sampler on one model.

calls        of the sequences it decodes
likelihood   of held-out ones forced through it, less is better: bits per byte of text (with every
             passage's nats, for paired differences); nats per token lost against the law of a world
quality      of the sequences it decodes: in a world its coherence; of text the bits per byte that a
             judge finds in it, or the model itself, one token at a time in a random order

A rule that cannot be forced (it looks at its draws, or takes tokens back) has no likelihood.
"""

import hashlib
import json
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from maskwalk.analysis.judge import Judge, load_judge
from maskwalk.analysis.paths import along_paths, batch_for
from maskwalk.analysis.replay import replayable
from maskwalk.bench.cell import Cell, cell_record
from maskwalk.bench.plan import Job
from maskwalk.bench.subject import Subject
from maskwalk.bench.texts import batch_on
from maskwalk.decoding.decode import decode
from maskwalk.decoding.draw import DRAWS, Draw
from maskwalk.decoding.guard import believed_kind
from maskwalk.decoding.kinds import result_kind
from maskwalk.decoding.policy import Sampler
from maskwalk.decoding.reader import answering
from maskwalk.denoisers.language.model import LanguageModel
from maskwalk.denoisers.resolve import own_weights
from maskwalk.samplers import SAMPLERS
from maskwalk.specs.sources import sources
from maskwalk.stats import plain_mean, settled_se
from maskwalk.streams import Streams
from maskwalk.worlds.metrics import METRICS, QUALITY, REPLAY
from maskwalk.worlds.text.held_out import Passages
from maskwalk.worlds.text.metrics import bits_per_byte, token_entropy

Row = dict[str, Any]
ALONE = "random(block=1)"  # the order in which a model reads what was written with it
OTHERS = 1 << 32  # its streams are others than those the texts were drawn with


def text_job(subject: Subject, sampler: str, how: Row, pilot: int = 0) -> Job:
    """A setting on a model of text; a pilot decodes so many texts and counts calls only."""
    files = sources(sampler, how["draw"]) | subject.sources
    about = [subject.about, sampler, how, pilot, sorted(files.values())]
    arguments = {"subject": asdict(subject), "sampler": sampler, "how": how, "pilot": pilot}
    says = {"sampler": sampler, "model": subject.name, "pilot": pilot}
    return Job(_key("tune text", about), "tune_text", arguments, {}, says=says, sources=files)


def world_job(cell: Cell, sampler: str, pilot: int = 0) -> Job:
    """A setting in a world; a pilot decodes so many sequences and counts calls only."""
    cell = replace(cell, sampler=sampler)
    if pilot:
        cell = replace(cell, count=pilot, metrics=(METRICS.cost.key,))
    files = cell.files | own_weights(cell.denoiser)
    says = {"sampler": sampler, "model": cell.denoiser, "pilot": pilot}
    arguments = {"cell": asdict(cell), "pilot": pilot}
    key = _key("tune world", [cell.key, pilot])
    return Job(key, "tune_world", arguments, {}, says=says, sources=files)


def _key(kind: str, about: Any) -> str:
    return hashlib.sha256(json.dumps([kind, about], sort_keys=True).encode()).hexdigest()


def tune_text(subject: Row, sampler: str, how: Row, pilot: int, device: str) -> Row:
    """The job on text."""
    return measured(SAMPLERS.build(sampler), sampler, Subject(**subject), how, pilot, device)


def measured(rule: Sampler, sampler: str, known: Subject, how: Row, pilot: int, device: str) -> Row:
    """The row of a rule, in a table or not, under the name `sampler`."""
    model, passages = known.load(device)
    answers = answering(model.denoiser, how.get("score_grid"), how.get("special", False))
    model = replace(model, denoiser=answers)
    draw = DRAWS.build(how["draw"])
    given, first = passages.given[:1], passages.tokens[:1]
    blank = torch.where(given, first, model.mask).to(model.device)
    count = pilot or how["texts"]
    batch = batch_for(model, blank.shape[1], batch_on(device))
    tokens, calls, widest = [], [], 0
    for some in torch.arange(count, device=model.device).split(batch):
        start = blank.expand(len(some), -1)
        done = decode(
            rule,
            model.denoiser,
            start,
            streams=Streams(how["seed"], some),
            draw=draw,
            ties=how["ties"],
        )
        tokens.append(done.tokens.cpu())
        calls.append(done.calls.cpu())
        widest = max(widest, int(done.widest.max()))
    row = _calls(torch.cat(calls).double(), sampler, known.name, pilot)
    row["kind"] = result_kind(believed_kind(rule), draw.exact, widest <= 1)
    if pilot:
        return row
    written = torch.cat(tokens)
    row["likelihood"] = _held_out(model, passages, rule, draw, how, batch)
    row["quality"] = _read(model, written, passages, how, batch, device)
    row["entropy"] = plain_mean(token_entropy(written)).as_dict()
    return row


def _calls(calls: Tensor, sampler: str, model: str, pilot: int) -> Row:
    found = plain_mean(calls)
    row: Row = {"sampler": sampler, "model": model, "pilot": pilot, "likelihood": None}
    return row | {"calls": found.as_dict() | {"max": float(calls.max())}, "quality": None}


def _held_out(
    model: LanguageModel, passages: Passages, rule: Sampler, draw: Draw, how: Row, batch: int
) -> Row | None:
    """Bits of the passages under the policy, with each passage's nats."""
    if not replayable(rule, draw):
        return None
    paths = along_paths(
        rule,
        model,
        passages.tokens,
        how["paths"],
        seed=how["seed"],
        batch=batch,
        draw=draw,
        ties=how["ties"],
        known=passages.given,
    )
    nats = paths.over()
    more = {"bound": paths.random, "unit": f"bits per {passages.unit}", "better": -1}
    if bool(nats.isinf().any()):  # a truncated draw may give a text probability zero
        return {"value": None, "se": None, "n": len(nats), "each": None, **more}
    each = [round(x, 6) for x in nats.tolist()]
    return bits_per_byte(nats, passages.sizes).as_dict() | {"each": each, **more}


def _read(
    model: LanguageModel,
    written: Tensor,
    passages: Passages,
    how: Row,
    batch: int,
    device: str,
) -> Row:
    """Bits of what was written, under the judge or the model itself."""
    given = passages.given[:1].expand(len(written), -1)
    own = [row[~known].tolist() for row, known in zip(written, given)]
    if how["judge"] is not None:
        texts = [model.decode(row) or "\n" for row in own]
        reading = _judge(how["judge"], device).read(texts)
        found = bits_per_byte(reading.nats, reading.bytes).as_dict()
        return found | {"unit": "bits per byte", "better": -1}
    rule = SAMPLERS.build("left_to_right" if model.causal else ALONE)
    alone = along_paths(
        rule, model, written, 1, seed=how["seed"] ^ OTHERS, batch=batch, known=given
    )
    sizes = (~given).sum(1)
    if model.tokenizer is not None:
        sizes = torch.tensor([max(1, len(model.decode(row).encode())) for row in own])
    found = bits_per_byte(alone.over(), sizes).as_dict()
    return found | {"unit": f"bits per {passages.unit}", "better": -1}


@lru_cache(maxsize=1)
def _judge(source: str, device: str) -> Judge:
    return load_judge(source, device=device)


def tune_world(cell: Row, pilot: int, device: str) -> Row:
    """The job in a world of a known law."""
    known = Cell.from_json(cell)
    record: Any = cell_record(cell, False, device)
    metrics = record["metrics"]
    row: Row = {"sampler": known.sampler, "model": known.denoiser, "pilot": pilot}
    row |= {"calls": metrics[METRICS.cost.key], "kind": record["kind"]}
    if pilot:
        return row | {"likelihood": None, "quality": None}
    loss = next((metrics.get(key) for key in METRICS.reading(REPLAY)), None)
    row["likelihood"] = None if loss is None else loss | {"unit": "nats per token", "better": -1}
    qualities = [key for key in metrics if METRICS.describe(key).role == QUALITY and metrics[key]]
    if not qualities:
        return row | {"quality": None}
    about, found = METRICS.describe(qualities[0]), metrics[qualities[0]]
    se = settled_se(found["value"], found["se"], known.count, about.share)
    return row | {"quality": found | {"se": se, "unit": about.title, "better": about.better}}
