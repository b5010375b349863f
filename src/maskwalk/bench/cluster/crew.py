"""The workers of one run: they come and go, and every job has one result.

The driver holds the jobs and writes the records; a worker (worker.py) has one job at a time, so no
more than one result for each worker is ever on its way, however many jobs there are. There are as
many workers as fit into the cluster, and more when nodes join. A job whose worker or node is gone
goes to another one; only a job that has cost `DEATHS` workers has failed. A result is taken once:
what a worker that was given up might still send has no receiver.
"""

import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from maskwalk.bench.cluster.connection import Cluster
from maskwalk.bench.cluster.parcel import pack
from maskwalk.bench.cluster.results import check_versions, first_line, taken
from maskwalk.bench.cluster.worker import Worker
from maskwalk.bench.plan import Job
from maskwalk.bench.run import Failure, Result
from maskwalk.errors import MaskwalkError

Answer = tuple[Job, Result | Failure]
DEATHS = 5  # workers a job may cost, those that went with their node not counted
EVERY = 2.0  # seconds between two looks at the nodes
WAITED = 30.0  # seconds without a worker before that is said
PATIENCE = 600.0  # seconds without room for one, or with none that lives, before the run ends
NODE, RAISED = "node has died", "creation task"  # as Ray says it of an actor
GONE = (
    f"Its worker died {DEATHS} times (killed, or out of memory?). Run the same command again, with "
    "fewer workers on a node where memory is short."
)


@runtime_checkable
class Orders(Protocol):
    """What a crew is told (engine.py)."""

    cluster: Cluster
    device: str
    plugins: tuple[str, ...]
    timeout: float | None
    say: Callable[[str], None]


@dataclass
class _Member:
    """A worker, and where it is."""

    actor: Any
    host: str = ""
    node: str = ""
    began: float = 0.0  # its job


class Crew:
    """The workers of one run, and the jobs they have."""

    def __init__(self, ray: Any, engine: Orders, jobs: Sequence[Job]) -> None:
        self.ray, self.engine = ray, engine
        self.todo, self.left = deque(jobs), len(jobs)
        self.deaths: Counter[str] = Counter()
        self.starting: dict[Any, _Member] = {}  # by the reference to what is awaited
        self.busy: dict[Any, tuple[_Member, Job]] = {}
        self.idle: list[_Member] = []
        self.looked = -EVERY
        self.alive = self.roomy = time.monotonic()  # when there last was a worker, and room for one
        self.told = False
        functions = sorted({job.function for job in jobs})
        self.words_for = (engine.device, functions, self.ray.put(pack(jobs, engine.plugins)))

    def answers(self) -> Iterator[Answer]:
        """The results as they come."""
        while self.left:
            self._grow()
            self._hand_out()
            for reference in self._done():
                if reference in self.starting:
                    self._started(reference)
                elif (answer := self._finished(reference)) is not None:
                    self.left -= 1
                    yield answer
            for answer in self._late():
                self.left -= 1
                yield answer

    def _done(self) -> list[Any]:
        """What has come, all of it, after a pause where there is nothing yet."""
        waiting = [*self.busy, *self.starting]
        first, others = self.ray.wait(waiting, timeout=self._pause())
        if not first or not others:
            return list(first)
        more, _ = self.ray.wait(others, num_returns=len(others), timeout=0)
        return [*first, *more]

    def words(self) -> str:
        """How many there are, for a person."""
        members = [*(member for member, _ in self.busy.values()), *self.idle]
        nodes = len({member.node for member in members})
        return f"{_count(len(members), 'worker')} on {_count(nodes, 'node')}"

    def dismiss(self) -> None:
        """Ends all workers."""
        members = [*self.starting.values(), *(m for m, _ in self.busy.values()), *self.idle]
        for member in members:
            self._end(member)

    def _end(self, member: _Member) -> None:
        with suppress(self.ray.exceptions.RayError):  # the cluster itself may be gone
            self.ray.kill(member.actor, no_restart=True)

    # ---- workers

    def _grow(self) -> None:
        """Looks at the nodes now and then, and starts the workers that are lacking."""
        now = time.monotonic()
        if now - self.looked < EVERY:
            return
        self.looked = now
        cluster, nodes = self.engine.cluster, self.ray.nodes()
        room = sum(map(cluster.slots, nodes))
        most = max(1, room) if cluster.workers is None else cluster.workers
        wanted = min(most, len(self.todo) + len(self.busy))
        present = len(self.starting) + len(self.busy) + len(self.idle)
        neighbours = max(1, min(wanted, max(map(cluster.slots, nodes), default=1)))
        for _ in range(wanted - present):
            self._start(neighbours)
        self.alive = now if self.busy or self.idle else self.alive
        self.roomy = now if room else self.roomy
        self._check_patience(now)

    def _start(self, neighbours: int) -> None:
        actor = (
            self.ray.remote(Worker)
            .options(
                num_cpus=1,
                num_gpus=self.engine.cluster.gpus,
                max_restarts=0,
            )
            .remote(*self.words_for, neighbours)
        )
        self.starting[actor.ready.remote()] = _Member(actor)

    def _started(self, reference: Any) -> None:
        """A worker is ready, or cannot be, or was killed before it was."""
        member = self.starting.pop(reference)
        try:
            about = self.ray.get(reference)
        except self.ray.exceptions.RayError as problem:
            self.looked = -EVERY
            if RAISED in str(problem) or time.monotonic() - self.alive > PATIENCE:
                raise MaskwalkError(
                    f"No worker can be started: {first_line(problem)} Install the same maskwalk, "
                    "with its extra ray, on every node."
                ) from None
            return
        if "failure" in about:
            raise MaskwalkError(about["failure"])
        check_versions(about)
        member.host, member.node = about["host"], about["node"]
        self.idle.append(member)

    def _check_patience(self, now: float) -> None:
        cluster = self.engine.cluster
        need = "a processor core" + (f" and {cluster.gpus:g} of a GPU" if cluster.gpus else "")
        if now - self.roomy > PATIENCE:
            raise MaskwalkError(
                f"No node of the cluster had room for a worker ({need}) for {PATIENCE:.0f} s. What "
                "is finished is kept: add nodes, or ask for less, and run the same command again."
            )
        if now - self.alive > WAITED and not self.told:
            self.told = True
            self.engine.say(
                f"Waiting for a worker to start, or for a node with room for one ({need})."
            )

    # ---- jobs

    def _hand_out(self) -> None:
        while self.idle and self.todo:
            member, job = self.idle.pop(), self.todo.popleft()
            member.began = time.monotonic()
            reference = member.actor.work.remote(job.function, job.arguments, job.leaves)
            self.busy[reference] = member, job
        while len(self.idle) > len(self.busy):  # one for each job that may lose its worker
            self._end(self.idle.pop())

    def _finished(self, reference: Any) -> Answer | None:
        """A job's result; None where its worker is gone and another one gets it."""
        member, job = self.busy.pop(reference)
        try:
            line, files = self.ray.get(reference)
        except self.ray.exceptions.RayError as problem:
            return self._bereft(member, job, problem)
        self.idle.append(member)
        return job, taken(job, json.loads(line), files, member.host)

    def _bereft(self, member: _Member, job: Job, problem: Exception) -> Answer | None:
        """A job has lost its worker: it goes behind the others, or has cost too many."""
        self._end(member)  # it may be alive behind a broken connection
        self.looked = -EVERY
        if NODE not in str(problem):
            self.deaths[job.key] += 1
        if self.deaths[job.key] >= DEATHS:
            return job, Failure(GONE)
        self.todo.append(job)
        return None

    def _late(self) -> Iterator[Answer]:
        """Jobs that have taken too long; their workers end."""
        limit = self.engine.timeout
        if limit is None:
            return
        now = time.monotonic()
        for reference, (member, job) in list(self.busy.items()):
            if now - member.began > limit:
                del self.busy[reference]
                self._end(member)
                self.looked = -EVERY
                yield job, Failure(f"It took longer than {limit:g} s.")

    def _pause(self) -> float:
        """Seconds to wait for a result before something else is due."""
        if self.engine.timeout is None or not self.busy:
            return EVERY
        first = min(member.began for member, _ in self.busy.values())
        return min(EVERY, max(0.01, first + self.engine.timeout - time.monotonic()))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
