"""The engine that runs jobs on a Ray cluster (`--engine ray`)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from maskwalk.bench.cluster.connection import Cluster, connect
from maskwalk.bench.cluster.crew import Answer, Crew
from maskwalk.bench.cluster.results import first_line
from maskwalk.bench.plan import Job
from maskwalk.errors import MaskwalkError, real


class OnRay:
    """The engine (run.py) that runs jobs on a Ray cluster."""

    def __init__(
        self,
        cluster: Cluster,
        device: str = "cpu",
        plugins: Sequence[str] = (),
        timeout: float | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.cluster, self.device, self.plugins, self.say = cluster, device, tuple(plugins), say
        self.timeout = None if timeout is None else real("timeout", timeout, 1e-3)
        self.state = ""  # in words: how many workers on how many nodes

    def connect(self) -> Any:
        """Ray, connected; a sentence where there is no such cluster."""
        return connect(self.cluster)

    def __call__(self, jobs: Sequence[Job]) -> Iterator[Answer]:
        if not jobs:
            return
        crew = Crew(self.connect(), self, jobs)
        try:
            for answer in crew.answers():
                self.state = crew.words()
                yield answer
        except crew.ray.exceptions.RayError as problem:
            raise MaskwalkError(
                f"The Ray cluster does not answer: {first_line(problem)} What is finished is kept; "
                "the same command goes on from there."
            ) from None
        finally:
            crew.dismiss()
