"""The evaluation itself: contract, baselines (from the cache where they are), policy, replay."""

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from torch import Tensor

from maskwalk.analysis.contract.answers import Answers
from maskwalk.analysis.contract.redraw import chooses_blindly, redrawn
from maskwalk.analysis.contract.trial import broken_checks
from maskwalk.analysis.losses import diagnose, exact_sequences
from maskwalk.analysis.replay import check_replayable
from maskwalk.bench.bars import Bars
from maskwalk.bench.beside import Beside
from maskwalk.bench.cell import Cell
from maskwalk.bench.plan import Job
from maskwalk.bench.run import Engine, Failure
from maskwalk.bench.time_limit import time_limit
from maskwalk.bench.verdict.cache import Store
from maskwalk.bench.verdict.files import write_evaluation
from maskwalk.bench.verdict.law import departure, law_cell, reference_cell
from maskwalk.bench.verdict.outcomes import Outcome, outcome, traced_outcome
from maskwalk.bench.verdict.policy import (
    Candidate,
    Policy,
    candidate,
    check_world_unknown,
    setting_spec,
)
from maskwalk.bench.verdict.result import Evaluation
from maskwalk.bench.verdict.suite import Scene, scenes
from maskwalk.bench.verdict.verdict import Comparison, compare, judge
from maskwalk.bench.workers import Workers
from maskwalk.decoding.decode import Decoded
from maskwalk.decoding.draw import DRAWS, mode_name, read_draw
from maskwalk.decoding.guard import believed_kind
from maskwalk.decoding.kinds import EXACT, FACTORISED, SHAPED
from maskwalk.decoding.policy import Sampler
from maskwalk.denoiser import Denoiser
from maskwalk.denoisers.resolve import build_denoiser
from maskwalk.errors import MaskwalkError, user_code, whole
from maskwalk.resources import one_thread
from maskwalk.worlds.tasks import TASKS
from maskwalk.worlds.world import build_world

REDRAWN = 32  # sequences of the scored run that are drawn again
NAME = Column(width=36, no_wrap=True, overflow="ellipsis")  # of what is run now
UNCONDITIONAL = TASKS.canonical("unconditional")


def evaluate(
    policy: Policy,
    suite: str | Sequence[Scene] = "quick",
    *,
    anyway: bool = False,
    out: str | Path | None = None,
    workers: int = 2,
    progress: bool = True,
    timeout: float | None = None,
    draw: str = "exact",
    engine: Engine | None = None,
    command: str | None = None,
) -> Evaluation:
    """Contract, suite, and where the policy stands against the baselines' front.

    `policy`: a class (evaluated at every setting of its `sweep`), an instance, a registered spec,
    or "FILE.py:Class". A broken contract ends it there, unless `anyway`. Baselines run in `workers`
    processes beside this one (0: here), or on `engine` (run.py), and are kept in the user's cache,
    or under `out`. `timeout` is how many seconds the contract of a setting, or one of its scenes,
    may take. `draw`: how the policy's tokens are drawn, "draw(floor=0.2)" or a preset; the
    baselines' draws stay exact. A truncated draw shapes the law, so the policy is then measured
    against the law. `command`: what its page says it was made by.
    """
    began = time.perf_counter()
    whole("workers", workers, 0)
    policy_settings, drawn = candidate(policy), read_draw(draw)
    stages = scenes(suite) if isinstance(suite, str) else tuple(suite)
    name = suite if isinstance(suite, str) else "own"
    for sampler in policy_settings.settings.values():
        check_world_unknown(policy_settings.name, sampler)
    contract: dict[str, dict[str, str]] = {}
    for label, sampler in policy_settings.settings.items():
        with time_limit(timeout, f"The contract of {setting_spec(policy_settings.name, label)}"):
            contract[label] = broken_checks(sampler)
    comparisons: tuple[Comparison, ...] = ()
    baselines: dict[Scene, list[Outcome]] = {}
    if anyway or not any(contract.values()):
        store = Store(None if out is None else Path(out))
        with one_thread(), _Bar(progress) as bar:
            comparisons, baselines = _suite(
                policy_settings,
                stages,
                store,
                lambda jobs: (
                    Workers(jobs, workers, timeout=timeout)
                    if engine is None
                    else Beside(engine, jobs)
                ),
                bar,
                timeout,
                drawn,
            )
    result = Evaluation(
        policy_settings.name,
        name,
        tuple(policy_settings.settings),
        contract,
        comparisons,
        baselines,
        time.perf_counter() - began,
        mode_name(*drawn),
        command or _command(policy, name, out, draw, anyway),
    )
    if out is not None:
        write_evaluation(Path(out), result, policy_settings.settings.values())
    return result


def _command(
    policy: Policy, suite: str, out: str | Path | None, draw: str, anyway: bool
) -> str | None:
    """What one would type for this; None where the policy or the suite is an object."""
    if not isinstance(policy, str) or suite == "own":
        return None
    words = ["maskwalk", "evaluate", policy, "--suite", suite]
    words += ["--draw", draw] if draw != "exact" else []
    words += ["--out", str(out)] if out is not None else []
    return shlex.join([*words, *(["--anyway"] if anyway else [])])


def _suite(
    found: Candidate,
    stages: Sequence[Scene],
    store: Store,
    others: Callable[[Sequence[Job]], Workers | Beside],
    bar: "_Bar",
    timeout: float | None,
    drawn: tuple[str, str],
) -> tuple[tuple[Comparison, ...], dict[Scene, list[Outcome]]]:
    cells = {scene: [scene.cell(spec) for spec in scene.baselines] for scene in stages}
    # Networks first: they are the long jobs, and the short ones fill up the end.
    todo = {
        cell.key: Job(cell.key, "outcome", {"cell": asdict(cell)})
        for scene in sorted(stages, key=lambda scene: not scene.model)
        for cell in cells[scene]
        if cell.key not in store.outcomes
    }
    bar.total = len(todo) + 2 * len(stages) * len(found.settings)
    mine: dict[tuple[Scene, str], Outcome] = {}
    more: dict[tuple[Scene, str], dict[str, Any]] = {}
    with others(list(todo.values())) as team:
        for scene in stages:
            for label, sampler in found.settings.items():
                bar.step(f"{label} · {scene.title}", team.ready())
                exact = replace(cells[scene][0], sampler=setting_spec(found.name, label))
                cell = replace(exact, draw=drawn[0], ties=drawn[1])
                answers = Answers() if _says_factorised(cell, sampler) else None
                with time_limit(timeout, f"{cell.sampler} in {scene.title}"):
                    with _told(cell, scene):
                        mine[scene, label], decoded = traced_outcome(cell, sampler, answers)
                    bar.step(f"{label} · {scene.title}", team.ready())
                    more[scene, label] = {"loss": _loss(scene, cell, sampler)}
                    if not _draws_as_told(cell, sampler, decoded, answers):
                        more[scene, label] |= _measured(scene, cell, exact, sampler, store)
        for _, row in team:
            if isinstance(row, Failure):
                raise MaskwalkError(f"A baseline failed: {row.reason}")
            done = Outcome.from_json(row)
            bar.step(f"baselines: {done.sampler}")
            store.add(done)
    baselines = {scene: [store.outcomes[cell.key] for cell in cells[scene]] for scene in stages}
    compared = [
        replace(compare(scene, label, own, baselines[scene]), **more[scene, label])
        for (scene, label), own in mine.items()
    ]
    return judge(compared), baselines


@contextmanager
def _told(cell: Cell, scene: Scene) -> Iterator[None]:
    """What the policy raises becomes a sentence."""
    try:
        with user_code(f"in {scene.title}"):
            yield
    except MaskwalkError:
        raise
    except Exception as problem:
        what = f"{type(problem).__name__}: {problem}"
        raise MaskwalkError(f"{cell.sampler} failed in {scene.title}: {what}.") from problem


def _says_factorised(cell: Cell, sampler: Sampler) -> bool:
    """Whether there is something to check: tokens that are said to be drawn from the marginals."""
    return believed_kind(sampler) == FACTORISED and DRAWS.build(cell.draw).exact


def _draws_as_told(
    cell: Cell, sampler: Sampler, decoded: Decoded, answers: Answers | None = None
) -> bool:
    """Whether its tokens are those its choices and the denoiser's marginals imply.

    As its class says, and, for a file can say anything, in the run that is scored: some of its
    rows are drawn again without the policy, by oracle or model, which are asked once more. Which
    ones, only the finished run tells. Its choices are made again on the `answers` of the run.
    """
    if not _says_factorised(cell, sampler):
        return False
    world, denoiser = build_world(cell.world), _denoiser(cell.denoiser, cell.world)
    prompts = TASKS.build(cell.task, world=world, prompts=cell.count, seed=cell.seed).tokens
    start = prompts.repeat_interleave(cell.per_prompt, 0)
    start = torch.where(start == world.vocab_size, denoiser.mask_id, start)
    if redrawn(decoded, denoiser, start, cell.seed, _some(decoded)) < 1.0:
        return False
    traced = start[: len(decoded.trace.ids)] if decoded.trace is not None else start
    told, known = sampler.in_world(world), Answers() if answers is None else answers
    return chooses_blindly(told, known.of(denoiser), traced, cell.seed, decoded, cell.ties)


def _some(decoded: Decoded) -> Int[Tensor, " rows"]:
    """Rows of a run that are drawn again, picked by its own tokens."""
    assert decoded.trace is not None
    picked = torch.Generator().manual_seed(int(decoded.tokens.sum()))
    return torch.randperm(len(decoded.trace.ids), generator=picked)[:REDRAWN]


def _measured(
    scene: Scene, cell: Cell, exact: Cell, sampler: Sampler, store: Store
) -> dict[str, Any]:
    """How far it is from the law; what says it is factorised and is not is shaped.

    The reference draws exactly, whatever the policy does.
    """
    conditional = cell.task != UNCONDITIONAL
    with _told(cell, scene):
        own = outcome(law_cell(cell, conditional), sampler)
    reference = reference_cell(exact, conditional)
    if reference.key not in store.outcomes:
        store.add(outcome(reference))
    found: dict[str, Any] = {"departure": departure(own, store.outcomes[reference.key])}
    return found | ({"kind": SHAPED} if believed_kind(sampler) != EXACT else {})


def _loss(scene: Scene, cell: Cell, sampler: Sampler) -> dict[str, Any] | None:
    """The dependence/denoiser split by replay, or None where the sampler has none."""
    try:
        draw = DRAWS.build(cell.draw)
        check_replayable(sampler, draw)
        world = build_world(cell.world)
        prompts = TASKS.build(cell.task, world=world, prompts=scene.replayed, seed=cell.seed)
        walks, given = exact_sequences(world, prompts, cell.seed)
        denoiser = _denoiser(cell.denoiser, cell.world)
        told = sampler.in_world(world)
        options: dict[str, Any] = {"seed": cell.seed, "draw": draw, "ties": cell.ties}
        row = diagnose(world, denoiser, told, walks, given, **options)
        return row | {"masked": float((~given).sum(1).double().mean())}
    except MaskwalkError:
        return None


@lru_cache(maxsize=1)
def _denoiser(name: str, world: str) -> Denoiser:
    return build_denoiser(name, build_world(world))


class _Bar:
    """A progress bar on stderr that also counts what others have finished meanwhile."""

    def __init__(self, shown: bool) -> None:
        columns = (
            TextColumn("{task.description}", markup=False, table_column=NAME),
            BarColumn(20),
            MofNCompleteColumn(),
        )
        console = Console(stderr=True, highlight=False)
        self._progress = Bars(
            *columns,
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            shown=shown,
        )
        self._task = self._progress.add_task("", total=None)
        self.total, self._steps = 0, 0

    def step(self, what: str, others: int = 0) -> None:
        """One thing begun: the ones before it are done."""
        self._progress.update(
            self._task,
            total=self.total,
            completed=self._steps + others,
            description=what,
        )
        self._steps += 1

    def __enter__(self) -> "_Bar":
        self._progress.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._progress.stop()
